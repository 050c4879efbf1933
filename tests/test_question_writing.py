import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from healbench.errors import ChatError, RunFolderError, UsageError
from healbench.plugins import load_adapter
from healbench.prompts import fill
from healbench.question_drafts import reply_schema
from healbench.question_rules import check_questions, verdicts
from healbench.question_writing import plan_writing, write_questions
from healbench.questions import Questions
from healbench.store import read_rows
from healbench.taxonomy import Taxonomy
from tests.chats import CALLS, PAIRS, ChatServer, ScriptedChat, about, good_reply, three_categories

CUE = Questions().of(Taxonomy.load().category(PAIRS[0])).of("heal")[1].text.split()[1]
EMBEDDER = load_adapter("embedder", "offline")


@pytest.fixture
def three(tmp_path: Path) -> Taxonomy:
    return three_categories(tmp_path / "three.yaml")


def rows(path: Path) -> list[dict[str, Any]]:
    return list(read_rows(path))


def spoiled(prompt: str, old: str, new: str) -> str:
    reply = good_reply(prompt)
    assert old in reply
    return reply.replace(old, new)


def test_every_pair_gets_nine_questions_that_keep_the_rules_and_are_marked_draft(
    three: Taxonomy, tmp_path: Path
) -> None:
    chat, out = ScriptedChat(), tmp_path / "out"
    told: list[tuple[str, str]] = []
    done = write_questions(three, chat, out, embedder=EMBEDDER, on_pair=lambda *what: told.append(what))
    assert sorted(done.new) == sorted(PAIRS)
    assert sorted(told) == sorted((pair, "new") for pair in PAIRS)
    assert done.failed == {}
    assert len(chat.prompts) == CALLS
    ours, embedded = Questions(out), Questions()
    for category in three.valid:
        assert ours.of(category).digest == embedded.of(category).digest
        assert [q.kind for q in ours.of(category).questions] == [q.kind for q in embedded.of(category).questions]
        verdict = verdicts(out, category.coarse)[category.fine]
        assert verdict.status == "draft"
        assert "scripted" in verdict.reason
    assert check_questions(ours, three, EMBEDDER) == []
    history = rows(out / "history.jsonl")
    assert sorted(h["id"] for h in history) == sorted([*PAIRS, "quiet_company", "blue_space"])
    assert {h["by"] for h in history} == {"scripted"}
    last = next(h for h in history if h["id"] == PAIRS[0])
    assert last["digest"] == embedded.of(three.category(PAIRS[0])).digest
    assert last["prompt_sha256"] in {r["prompt_sha256"] for r in rows(out / "replies.jsonl")}
    assert not (out / "failed.jsonl").exists()


def test_the_prompt_holds_the_rules_and_all_that_is_known_of_the_pair(three: Taxonomy, tmp_path: Path) -> None:
    chat = ScriptedChat()
    write_questions(three, chat, tmp_path / "out")
    for prompt in chat.prompts:
        assert "at most 30 words" in prompt
        assert "{{" not in prompt
        known = [c for c in three.valid if c.id == about(prompt) or c.coarse == about(prompt)]
        assert known
        for category in known:
            for text in (category.definition, category.healing_function, *category.breakers):
                assert text in prompt
        if "/" in about(prompt):
            assert all(cue in prompt for cue in known[0].visual_cues)
            assert Questions().of(known[0]).questions[0].text in prompt


def test_a_second_start_asks_nothing_and_changes_nothing(three: Taxonomy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_questions(three, ScriptedChat(), out)
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    chat = ScriptedChat()
    done = write_questions(three, chat, out)
    assert (done.new, sorted(done.there), chat.prompts) == ([], sorted(PAIRS), [])
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    assert plan_writing(three, out).calls == 0


def test_a_run_that_died_before_its_file_was_there_tells_nothing_twice(three: Taxonomy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_questions(three, ScriptedChat(), out)
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    (out / "blue_space.yaml").unlink()
    chat = ScriptedChat()
    assert write_questions(three, chat, out).new == [PAIRS[2]]
    assert chat.prompts == []
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


def test_a_limited_run_is_gone_on_with(three: Taxonomy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert plan_writing(three, out, limit=1).calls == 2
    assert len(write_questions(three, ScriptedChat(), out, limit=1).new) == 1
    assert plan_writing(three, out).calls == CALLS - 2
    chat = ScriptedChat()
    assert len(write_questions(three, chat, out).new) == 2
    assert len(chat.prompts) == CALLS - 2
    whole = tmp_path / "whole"
    write_questions(three, ScriptedChat(), whole)
    for path in whole.rglob("*.yaml"):
        assert (out / path.relative_to(whole)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("?", ".", "one question: is not one sentence"),
        ('"10"', '"9"', "anchors.9"),
        (CUE, "beautiful", "heal asks of comfort: asks of 'beautiful'"),
        ("attachment_safety", "made_up", "'made_up' is none of those listed"),
        ('"heal"', '"feel"', "heal: Field required"),
        ("{", "(", "the reply holds no JSON object"),
        ('"construct"', '"extra": 1, "construct"', "Extra inputs are not permitted"),
        ('": {', '": ', "Invalid JSON"),
    ],
)
def test_a_reply_that_breaks_a_rule_is_sent_back_once_with_the_reason(
    three: Taxonomy, tmp_path: Path, old: str, new: str, finding: str
) -> None:
    def says(prompt: str) -> str:
        first = "What is wrong with it" not in prompt
        hit = about(prompt) == (PAIRS[0] if old != "attachment_safety" else "quiet_company")
        return spoiled(prompt, old, new) if first and hit else good_reply(prompt)

    chat = ScriptedChat(says)
    done = write_questions(three, chat, tmp_path / "out")
    assert done.failed == {}
    (repair,) = [p for p in chat.prompts if "What is wrong with it" in p]
    assert finding in repair
    assert len(chat.prompts) == CALLS + 1


def test_two_questions_that_ask_the_same_are_sent_back(three: Taxonomy, tmp_path: Path) -> None:
    def says(prompt: str) -> str:
        reply = json.loads(good_reply(prompt))
        if about(prompt) == PAIRS[0] and "What is wrong with it" not in prompt:
            reply["heal"]["affective"]["text"] = reply["heal"]["concrete"]["text"]
        return json.dumps(reply)

    chat = ScriptedChat(says)
    assert write_questions(three, chat, tmp_path / "out", embedder=EMBEDDER).failed == {}
    assert any("heal.1 and heal.2 ask nearly the same" in p for p in chat.prompts)


def test_fences_and_a_sentence_around_the_json_do_no_harm(three: Taxonomy, tmp_path: Path) -> None:
    chat = ScriptedChat(lambda prompt: f"Here they are:\n```json\n{good_reply(prompt)}\n```\nEnjoy.")
    assert write_questions(three, chat, tmp_path / "out").failed == {}
    assert len(chat.prompts) == CALLS


def test_a_pair_that_stays_bad_is_left_out_with_its_reason_and_the_others_go_on(
    three: Taxonomy, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    bad = ScriptedChat(lambda p: spoiled(p, "?", "!") if about(p) == PAIRS[0] else good_reply(p))
    done = write_questions(three, bad, out)
    assert sorted(done.new) == sorted(PAIRS[1:])
    (row,) = rows(out / "failed.jsonl")
    assert (row["id"], row["code"]) == (PAIRS[0], "schema_violation")
    assert "one question" in row["message"]
    with pytest.raises(UsageError, match="has none for"):
        Questions(out).of(three.category(PAIRS[0]))
    assert "napping_cat" not in verdicts(out, "quiet_company")
    paid = ScriptedChat()
    assert list(write_questions(three, paid, out).failed) == [PAIRS[0]]
    assert paid.prompts == []
    asked = ScriptedChat()
    assert write_questions(three, asked, out, again=True).new == [PAIRS[0]]
    assert len(asked.prompts) == 1
    assert not (out / "failed.jsonl").exists()
    assert list(yaml.safe_load((out / "quiet_company.yaml").read_text(encoding="utf-8"))["fine"]) == [
        "napping_cat",
        "friendly_dog",
    ]


def test_without_coarse_questions_a_category_is_left_out_and_tried_again(three: Taxonomy, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def says(prompt: str) -> str:
        if about(prompt) == "quiet_company":
            raise ChatError("rate_limited", "too fast")
        return good_reply(prompt)

    done = write_questions(three, ScriptedChat(says), out)
    assert done.new == [PAIRS[2]]
    assert {row["code"] for row in done.failed.values()} == {"rate_limited"}
    assert not (out / "quiet_company.yaml").exists()
    assert sorted(write_questions(three, ScriptedChat(), out).new) == sorted(PAIRS[:2])


def test_braces_in_a_definition_stay_data(tmp_path: Path) -> None:
    hostile = "A {cat} with {{rules}}, {{id}}, {viewer} and %s \\1 $x."
    three = three_categories(tmp_path / "three.yaml", definition=hostile)
    chat = ScriptedChat()
    assert write_questions(three, chat, tmp_path / "out").failed == {}
    assert sum(hostile in prompt for prompt in chat.prompts) == 2
    assert all(prompt.count("Rules, all checked") == 1 for prompt in chat.prompts)
    with pytest.raises(KeyError):
        fill("{{gone}}", {})


def test_another_taxonomy_or_chat_is_refused_in_the_same_folder(three: Taxonomy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_questions(three, ScriptedChat(), out)
    with pytest.raises(UsageError, match="chat: scripted before, other now"):
        write_questions(three, ScriptedChat(name="other"), out)
    other = three_categories(tmp_path / "other.yaml", definition="Another cat.")
    with pytest.raises(UsageError, match="holds questions of other settings \\(taxonomy"):
        write_questions(other, ScriptedChat(), out)
    (out / "write.json").write_text("[]")
    with pytest.raises(UsageError, match="not as this version writes it"):
        write_questions(three, ScriptedChat(), out)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot be written"):
        write_questions(three, ScriptedChat(), tmp_path / "file")


def test_a_file_that_was_spoiled_by_hand_is_named_with_its_line(three: Taxonomy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_questions(three, ScriptedChat(), out, limit=1)
    file = out / "blue_space.yaml"
    file.write_text(file.read_text().replace("10:", "9:", 1))
    with pytest.raises(UsageError, match=r"blue_space\.yaml:\d+: .*anchors"):
        write_questions(three, ScriptedChat(), out)


def test_the_schema_forbids_what_the_reader_would_refuse(three: Taxonomy) -> None:
    def closed(schema: dict[str, Any]) -> bool:
        if schema["type"] != "object":
            return True
        whole = schema["required"] == list(schema["properties"]) and schema["additionalProperties"] is False
        return whole and all(closed(s) for s in schema["properties"].values())

    for level in ("coarse", "fine"):
        assert closed(reply_schema(three, level))
    construct = reply_schema(three, "coarse")["properties"]["heal"]["properties"]["construct"]
    assert "kindchenschema" in construct["enum"]


@pytest.mark.parametrize("answered", [0, 1, 2, 4])
def test_a_killed_run_repeats_no_call_that_was_answered(three: Taxonomy, tmp_path: Path, answered: int) -> None:
    assert three.path is not None
    out = tmp_path / "out"
    with ChatServer() as server:
        command = [str(Path(sys.executable).with_name("healbench")), "questions", "write", "--taxonomy"]
        command += [str(three.path), "--chat", "openai:test-model", "--base-url", server.url, "--out", str(out)]
        server.hold_after = answered
        env = {**os.environ, "OPENAI_API_KEY": ""}
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            assert server.holding.wait(60)
            process.send_signal(signal.SIGKILL)
        assert len(rows(out / "replies.jsonl")) == answered
        with (out / "replies.jsonl").open("ab") as torn:
            torn.write(b'{"prompt_sha256": "torn')
        lost = len(server.requests) - answered
        assert lost == 1
        server.hold_after = None
        asked = len(server.requests)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(server.requests) - asked == CALLS - answered
    assert len(rows(out / "replies.jsonl")) == CALLS
    write_questions(three, ScriptedChat(name="openai:test-model"), tmp_path / "same")
    for path in (tmp_path / "same").rglob("*.yaml"):
        assert (out / path.relative_to(tmp_path / "same")).read_bytes() == path.read_bytes()
    assert len(rows(out / "history.jsonl")) == CALLS
