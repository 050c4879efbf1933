"""A reader's decisions → the next version of the questions, with its history.

All or nothing: every row is checked first, the new folder is made beside its place and moved there in one step.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from healbench.errors import UsageError
from healbench.files import append_line, cannot_write, now
from healbench.question_files import HISTORY, Content, entry_of, read_content, set_verdicts, write_content
from healbench.question_rules import near_identical, question_findings, verdicts
from healbench.questions import Questions
from healbench.review_csv import ReviewRow, read_review
from healbench.store import Row
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Category, Dimension, Embedder, Finding

_ID = re.compile(r"(?P<pair>\S+/\S+) (?P<dimension>\w+)\.(?P<k>[012])")
_FIELD = re.compile(r"text|anchor\.(?:1|4|7|10)")


@dataclass(frozen=True, slots=True)
class Applied:
    """What was decided: rows by verdict, and the pairs whose sets are new."""

    counts: Mapping[str, int]
    pairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Decision:
    """A row with a verdict, taken apart."""

    number: int
    row: ReviewRow
    category: Category
    dimension: Dimension
    k: int

    @property
    def question(self) -> str:
        return f"{self.dimension}.{self.k}"

    @property
    def target(self) -> tuple[str, str, str]:
        """What it changes; the coarse question is one for all pairs of its category."""
        whose = self.category.coarse if self.k == 0 else self.category.id
        return (whose, self.question, self.row.field)

    @property
    def changes(self) -> bool:
        return self.row.verdict != "accept"

    @property
    def new(self) -> str:
        return " ".join(self.row.new.split())

    def read(self, content: Content) -> str:
        entry = entry_of(content, self.category.fine, self.dimension, self.k)
        value: str = entry["text"] if self.row.field == "text" else entry["anchors"][self._anchor]
        return value.strip()

    def write(self, content: Content) -> None:
        entry = entry_of(content, self.category.fine, self.dimension, self.k)
        if self.row.field == "text":
            entry["text"] = self.new
        else:
            entry["anchors"][self._anchor] = self.new

    @property
    def _anchor(self) -> int:
        return int(self.row.field.removeprefix("anchor."))


def apply_review(
    file: Path, questions: Questions, taxonomy: Taxonomy, out: Path, *, embedder: Embedder | None = None
) -> Applied:
    """Makes the next version of a folder of questions from a review CSV. Rows without a verdict decide nothing.

    Args:
        out: a folder that does not exist yet.
        embedder: tells questions of one set that ask nearly the same; without one, that is not checked.

    Raises:
        UsageError: any row is wrong, contradicts another or the present wording, or leads to a question that breaks a
            rule. Each is named with its row; nothing is written.
    """
    if out.exists():
        raise UsageError(f"{out}: exists already; the next version needs a new folder")
    decisions, wrong = _decisions(file, taxonomy)
    contents = {c: read_content(questions.folder / f"{c}.yaml") for c in {d.category.coarse for d in decisions}}
    wrong += _contradictions(decisions, contents)
    _refuse(file, wrong)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
        made = Path(beside) / "questions"
        _copy(questions.folder, made)
        for decision in decisions:
            content = contents[decision.category.coarse]
            if decision.changes and content is not None:
                decision.write(content)
        for content in contents.values():
            if content is not None and any(d.changes and d.category.coarse == content["coarse"] for d in decisions):
                write_content(made, content)
        touched = _touched(decisions, contents, taxonomy)
        after = Questions(made)
        _refuse(file, list(_broken_rules(touched, after, embedder)))
        _record(made, decisions, touched, (questions, after))
        try:
            os.rename(made, out)  # noqa: PTH104 - unlike Path.replace it says so where `out` has appeared meanwhile
        except OSError as error:
            raise cannot_write(out, error) from error
    counts = {verdict: sum(d.row.verdict == verdict for d in decisions) for verdict in ("accept", "edit", "reject")}
    return Applied(counts, tuple(pair.id for pair in touched))


def _decisions(file: Path, taxonomy: Taxonomy) -> tuple[list[_Decision], list[tuple[int, str]]]:
    """The rows with a verdict, and what is wrong with the others by row number."""
    decisions: list[_Decision] = []
    wrong: list[tuple[int, str]] = []
    for number, row in read_review(file):
        if not row.verdict.strip():
            if row.new.strip():
                wrong.append((number, "has a new wording but no verdict; write edit, or empty the cell"))
            continue
        try:
            decisions.append(_decision(number, row, taxonomy))
        except UsageError as error:
            wrong.append((number, str(error)))
    return decisions, wrong


def _decision(number: int, row: ReviewRow, taxonomy: Taxonomy) -> _Decision:
    named = _ID.fullmatch(row.id.strip())
    if row.kind != "question":
        raise UsageError(f"is about a {row.kind!r}; only rows of kind question are applied here")
    if row.verdict not in ("accept", "edit", "reject"):
        raise UsageError(f"the verdict {row.verdict!r} is none of accept, edit, reject")
    if named is None or named["dimension"] not in DIMENSIONS:
        raise UsageError(f"the id {row.id!r} is not of the form coarse/fine dimension.k")
    if not _FIELD.fullmatch(row.field):
        raise UsageError(f"the field {row.field!r} is none of text, anchor.1, anchor.4, anchor.7, anchor.10")
    dimension = next(d for d in DIMENSIONS if d == named["dimension"])
    decision = _Decision(number, row, taxonomy.category(named["pair"]), dimension, int(named["k"]))
    if not decision.changes:
        if decision.new:
            raise UsageError("accepts the old wording and gives a new one; write edit, or empty the cell")
        return decision
    if not decision.new:
        raise UsageError(f"{row.verdict} needs a new wording: a set has nine questions with four anchors each")
    if decision.new == row.old.strip():
        raise UsageError("the new wording is the old one")
    if not row.reviewer.strip():
        raise UsageError(f"{row.verdict} needs the name of its reviewer")
    return decision


def _contradictions(decisions: Sequence[_Decision], contents: Mapping[str, Content | None]) -> list[tuple[int, str]]:
    """Rows that disagree with what the folder holds now, or with another row."""
    wrong: list[tuple[int, str]] = []
    seen: dict[tuple[str, str, str], _Decision] = {}
    for decision in decisions:
        content = contents[decision.category.coarse]
        if content is None or decision.category.fine not in content["fine"]:
            wrong.append((decision.number, f"the questions have no set for {decision.category.id}"))
            continue
        present = decision.read(content)
        if present != decision.row.old.strip():
            wrong.append((decision.number, f"conflict: old is not the present wording, which is {present!r}"))
        earlier = seen.setdefault(decision.target, decision)
        if earlier is not decision and (earlier.changes, earlier.new) != (decision.changes, decision.new):
            wrong.append((decision.number, f"contradicts row {earlier.number}, which decides on the same wording"))
    return wrong


def _touched(
    decisions: Sequence[_Decision], contents: Mapping[str, Content | None], taxonomy: Taxonomy
) -> dict[Category, list[_Decision]]:
    """The pairs whose set changes, with what changes it. A coarse question changes every set of its category."""
    touched: dict[Category, list[_Decision]] = {}
    done: set[tuple[str, str, str]] = set()
    for decision in decisions:
        if not decision.changes or decision.target in done:
            continue
        done.add(decision.target)
        fines = (contents[decision.category.coarse] or {"fine": {}})["fine"]
        for pair in taxonomy.valid:
            shares = decision.k == 0 and pair.coarse == decision.category.coarse and pair.fine in fines
            if shares or pair == decision.category:
                touched.setdefault(pair, []).append(decision)
    return touched


def _broken_rules(
    touched: Mapping[Category, Sequence[_Decision]], after: Questions, embedder: Embedder | None
) -> Iterator[tuple[int, str]]:
    """Rules broken by the questions that change here; what was there before is for `questions check` to say."""
    told: set[tuple[int, str]] = set()
    for pair, changes in touched.items():
        nine = after.of(pair)
        findings = question_findings(nine)
        if embedder is not None:
            findings += near_identical(nine, embedder)
        for finding in findings:
            for change in changes:
                if _is_about(finding, change) and (change.number, finding.rule) not in told:
                    told.add((change.number, finding.rule))
                    yield change.number, f"{finding.place}: {finding.rule}: {finding.message}"


def _is_about(finding: Finding, change: _Decision) -> bool:
    return change.question in f"{finding.place} {finding.message}".split()


def _record(
    made: Path,
    decisions: Sequence[_Decision],
    touched: Mapping[Category, Sequence[_Decision]],
    versions: tuple[Questions, Questions],
) -> None:
    """Who decided what, for every pair that it changes, and the pair's verdict."""
    before, after = versions
    for pair, changes in touched.items():
        earlier = verdicts(made, pair.coarse).get(pair.fine)
        for change in changes:
            append_line(made / HISTORY, _event(change, pair, before.of(pair).digest, after.of(pair).digest))
        revised = dict.fromkeys([*(earlier.revised if earlier else ()), *(c.question for c in changes)])
        reasons = "; ".join(dict.fromkeys(f"{c.question} {c.row.field}: {c.row.reason.strip()}" for c in changes))
        reviewers = ", ".join(dict.fromkeys(c.row.reviewer.strip() for c in changes))
        verdict = {"status": "revised", "revised": sorted(revised), "reason": f"Revised by {reviewers}. {reasons}"}
        set_verdicts(made, pair.coarse, reviewers, {pair.fine: verdict})
    for decision in decisions:
        if not decision.changes:
            digest = after.of(decision.category).digest
            append_line(
                made / HISTORY, _event(decision, decision.category, before.of(decision.category).digest, digest)
            )


def _event(decision: _Decision, pair: Category, before: str, after: str) -> Row:
    return {
        "date": now(),
        "what": decision.row.verdict,
        "id": f"{pair.id} {decision.question}",
        "field": decision.row.field,
        "old": decision.row.old.strip(),
        "new": decision.new if decision.changes else decision.row.old.strip(),
        "by": decision.row.reviewer.strip(),
        "reason": decision.row.reason.strip(),
        "digest_before": before,
        "digest_after": after,
    }


def _copy(source: Path, made: Path) -> None:
    """Sets, verdicts and history; nothing else that may lie there."""
    (made / "reviews").mkdir(parents=True)
    for path in [*source.glob("*.yaml"), *source.glob("reviews/*.yaml"), *source.glob(HISTORY)]:
        shutil.copyfile(path, made / path.relative_to(source))


def _refuse(file: Path, wrong: Sequence[tuple[int, str]], shown: int = 10) -> None:
    if wrong:
        lines = [f"{file} row {number}: {message}" for number, message in sorted(wrong)]
        more = (
            [f"... and {len(lines) - shown} more; nothing was written"]
            if len(lines) > shown
            else ["nothing was written"]
        )
        raise UsageError("\n".join(lines[:shown] + more))
