"""Question sets for anyone's own taxonomy, drafted by a chat model (paper, "Evaluation Criteria and HealScore").

"An [LLM] first generates one coarse-level question for the general healing function and two fine-grained questions for
the concrete or affective cues under each dimension." One call writes the three coarse questions of a coarse category,
one more the six fine ones of each pair; a reply that breaks the rules is sent back once. What comes out is a draft.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from healbench.errors import ChatError, RunFolderError, UsageError
from healbench.files import append_line, cannot_write, json_line, now, replace_file
from healbench.prompts import fill, load_prompt
from healbench.question_drafts import coarse_prompt, fine_prompt, read_coarse, read_fine, reply_schema
from healbench.question_files import (
    HISTORY,
    Content,
    fine_entries,
    function_entries,
    read_content,
    set_verdicts,
    write_content,
)
from healbench.question_rules import near_identical, question_findings
from healbench.questions import Questions, question_digest
from healbench.store import Row, read_rows
from healbench.taxonomy import Taxonomy
from healbench.types import Category, Chat, Embedder, Question, QuestionSet

TEMPLATES = ("questions_rules", "questions_coarse", "questions_fine", "questions_repair")
CHARACTERS_A_TOKEN = 4
COARSE_TOKENS, FINE_TOKENS = 450, 950
"""Rough: what a reply with three or six questions and their anchors comes to."""

Read = Callable[[str], tuple[list[Question], list[str]]]
OnPair = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What writing would cost at most, if no reply has to be sent back."""

    calls: int
    tokens_in: int
    tokens_out: int


@dataclass(slots=True)
class Written:
    """What has come of it, by pair id.

    Attributes:
        there: were in the folder before.
        failed: what was wrong, by pair id; the same rows as in `failed.jsonl`.
    """

    new: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    failed: dict[str, Row] = field(default_factory=dict)


def plan_writing(taxonomy: Taxonomy, out: Path, limit: int | None = None) -> Plan:
    """Counts the calls for what is not in the folder yet. Replies that a killed run has kept are still counted."""
    calls = letters = answers = 0
    for coarse, pairs in _by_coarse(taxonomy, limit):
        there = read_content(out / f"{coarse}.yaml")
        if there is None:
            calls, answers = calls + 1, answers + COARSE_TOKENS
            letters += len(coarse_prompt(taxonomy, pairs))
        for pair in pairs:
            if there is None or pair.fine not in there["fine"]:
                calls, answers = calls + 1, answers + FINE_TOKENS
                letters += len(fine_prompt(taxonomy, pair, []))
    return Plan(calls, letters // CHARACTERS_A_TOKEN, answers)


def write_questions(
    taxonomy: Taxonomy,
    chat: Chat,
    out: Path,
    *,
    embedder: Embedder | None = None,
    limit: int | None = None,
    again: bool = False,
    on_pair: OnPair | None = None,
) -> Written:
    """Drafts the sets of a taxonomy into a folder that `Questions` can read, going on where an earlier start stopped.

    Args:
        embedder: tells questions of one set that ask nearly the same; without one, that is not checked here.
        limit: only the first N valid pairs.
        again: ask anew for pairs that are not there, even where a reply is kept; it was paid for and broke the rules.
        on_pair: called with each pair's id and "new", "there" or "failed".

    Raises:
        UsageError: the folder holds sets of another taxonomy, another chat or other prompts.
        RunFolderError: another process is writing there, or it cannot be written.
        SetupError: the chat can give no reply at all.
    """
    prompts = hashlib.sha256("\0".join(load_prompt(name) for name in TEMPLATES).encode()).hexdigest()
    settings = {"taxonomy": taxonomy.digest, "chat": chat.name, "chat_digest": chat.digest, "prompts": prompts}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(out, error) from error
    try:
        with FileLock(out / ".lock", timeout=0):
            _check_settings(out / "write.json", settings)
            return _Writer(taxonomy, chat, out, embedder, again).write(limit, on_pair or (lambda pair, outcome: None))
    except Timeout:
        raise RunFolderError(
            f"{out}: another process is writing questions there; wait, or choose another --out"
        ) from None


class _Writer:
    def __init__(self, taxonomy: Taxonomy, chat: Chat, out: Path, embedder: Embedder | None, again: bool) -> None:
        self.taxonomy = taxonomy
        self.chat = chat
        self.out = out
        self.embedder = embedder
        kept = {} if again else {row["prompt_sha256"]: row["reply"] for row in read_rows(out / "replies.jsonl")}
        self.replies: dict[str, str] = kept
        self.told = {_same(row) for row in read_rows(out / HISTORY)}

    def write(self, limit: int | None, on_pair: OnPair) -> Written:
        done = Written()
        for coarse, pairs in _by_coarse(self.taxonomy, limit):
            self._write_coarse(coarse, pairs, done)
            for pair in pairs:
                state = "failed" if pair.id in done.failed else "there" if pair.id in done.there else "new"
                on_pair(pair.id, state)
            self._write_failed(done)
        return done

    def _write_coarse(self, coarse: str, pairs: Sequence[Category], done: Written) -> None:
        """One file, replaced in one step once every pair of the category is written or has failed."""
        path = self.out / f"{coarse}.yaml"
        before = read_content(path)
        there = before["fine"] if before else {}
        done.there += [p.id for p in pairs if p.fine in there]
        missing = [p for p in pairs if p.fine not in there]
        if not missing:
            return
        told: list[Row] = []
        try:
            function, entries = self._function(coarse, before, told)
        except ChatError as error:
            done.failed |= {p.id: _failure(p.id, f"coarse questions of {coarse}", error) for p in missing}
            return
        new: Content = {}
        for pair in missing:
            try:
                new[pair.fine] = self._fine(pair, function, told)
                done.new.append(pair.id)
            except ChatError as error:
                done.failed[pair.id] = _failure(pair.id, "fine questions", error)
        if not new:
            return
        order = [c.fine for c in self.taxonomy.valid if c.coarse == coarse]
        fine = {name: (there | new)[name] for name in order if name in there or name in new}
        self._save({"coarse": coarse, "function": entries, "fine": fine}, list(new), told)

    def _function(self, coarse: str, before: Content | None, told: list[Row]) -> tuple[list[Question], Content]:
        every = [c for c in self.taxonomy.valid if c.coarse == coarse]
        if before is not None:
            written = next((c for c in every if c.fine in before["fine"]), every[0])
            known = Questions(self.out).of(written)
            return [q for q in known.questions if q.k == 0], before["function"]

        def read(reply: str) -> tuple[list[Question], list[str]]:
            questions, wrong = read_coarse(reply)
            return questions, wrong or self._findings(every[0], questions, questions)

        asked, questions = self._draft(coarse, coarse_prompt(self.taxonomy, every), "coarse", read)
        told.append(self._event(coarse, asked, questions))
        return questions, function_entries(questions)

    def _fine(self, pair: Category, function: list[Question], told: list[Row]) -> Content:
        def read(reply: str) -> tuple[list[Question], list[str]]:
            questions, wrong = read_fine(reply)
            return questions, wrong or self._findings(pair, questions, [*function, *questions])

        asked, questions = self._draft(pair.id, fine_prompt(self.taxonomy, pair, function), "fine", read)
        told.append(self._event(pair.id, asked, [*function, *questions]))
        return fine_entries(questions)

    def _draft(self, what: str, prompt: str, level: str, read: Read) -> tuple[str, list[Question]]:
        """The prompt that was answered by the rules, and the questions; one reply may be sent back."""
        schema = reply_schema(self.taxonomy, level)
        reply = self._reply(what, prompt, schema)
        questions, wrong = read(reply)
        if wrong:
            findings = "\n".join(f"- {w}" for w in wrong)
            values = {"prompt": prompt, "reply": reply, "findings": findings}
            prompt = fill(load_prompt("questions_repair"), values)
            questions, wrong = read(self._reply(what, prompt, schema))
        if wrong:
            raise ChatError("schema_violation", "; ".join(wrong))
        return prompt, questions

    def _reply(self, what: str, prompt: str, schema: dict[str, Any]) -> str:
        key = hashlib.sha256(prompt.encode()).hexdigest()
        if key not in self.replies:
            reply = self.chat.reply(prompt, schema=schema)
            row = {"prompt_sha256": key, "about": what, "chat": self.chat.name, "reply": reply, "date": now()}
            append_line(self.out / "replies.jsonl", row)
            self.replies[key] = reply
        return self.replies[key]

    def _findings(self, pair: Category, new: Sequence[Question], whole: Sequence[Question]) -> list[str]:
        """The rules that the new questions break, and questions of the whole set that are near twins."""
        findings = question_findings(QuestionSet(pair, tuple(new), "", ""))
        if self.embedder is not None:
            findings += near_identical(QuestionSet(pair, tuple(whole), "", ""), self.embedder)
        known = {c for category in self.taxonomy.categories.values() for c in category.constructs}
        strange = [
            f"construct: {q.construct!r} is none of those listed" for q in new if known and q.construct not in known
        ]
        return [f"{f.place.removeprefix(pair.id).strip()} {f.rule}: {f.message}".strip() for f in findings] + strange

    def _event(self, what: str, prompt: str, questions: Sequence[Question]) -> Row:
        return {
            "what": "write",
            "id": what,
            "by": self.chat.name,
            "prompt_sha256": hashlib.sha256(prompt.encode()).hexdigest(),
            "digest": question_digest(what, tuple(sorted(questions, key=lambda q: (_ORDER.index(q.dimension), q.k)))),
        }

    def _save(self, content: Content, new: list[str], told: list[Row]) -> None:
        """History and verdicts first: a process that dies in between does this again, and adds nothing twice."""
        for row in told:
            if _same(row) not in self.told:
                append_line(self.out / HISTORY, {"date": now(), **row})
                self.told.add(_same(row))
        draft = {
            "status": "draft",
            "revised": [],
            "reason": f"Drafted by {self.chat.name}; no reader has checked it yet.",
        }
        set_verdicts(self.out, content["coarse"], "nobody yet", {fine: dict(draft) for fine in new})
        write_content(self.out, content)

    def _write_failed(self, done: Written) -> None:
        path = self.out / "failed.jsonl"
        if done.failed:
            replace_file(path, "".join(json_line(row) for row in done.failed.values()))
        else:
            path.unlink(missing_ok=True)


_ORDER = ("alignment", "heal", "quality")


def _by_coarse(taxonomy: Taxonomy, limit: int | None) -> Iterator[tuple[str, list[Category]]]:
    chosen = taxonomy.valid[:limit]
    for coarse in dict.fromkeys(c.coarse for c in chosen):
        yield coarse, [c for c in chosen if c.coarse == coarse]


def _failure(pair: str, part: str, error: ChatError) -> Row:
    return {"id": pair, "part": part, "code": error.code, "message": str(error), "date": now()}


def _same(row: Row) -> str:
    """A row of the history without its date: the same change is told once, whenever it is made again."""
    return json.dumps({k: v for k, v in row.items() if k != "date"}, sort_keys=True)


def _check_settings(path: Path, settings: Row) -> None:
    if not path.exists():
        replace_file(path, json.dumps({"schema": 1, **settings}, indent=2) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [
            f"{k.replace('_', ' ')}: {before[k]} before, {settings[k]} now"
            for k in settings
            if before[k] != settings[k]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not as this version writes it ({error}); choose another --out") from error
    if changed:
        raise UsageError(
            f"{path.parent}: holds questions of other settings ({'; '.join(changed)}); choose another --out"
        )
