import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from healbench.cli import run
from healbench.questions import Questions
from healbench.review_csv import read_review, write_review
from healbench.taxonomy import EMBEDDED as TAXONOMY_FILE
from healbench.taxonomy import Taxonomy
from tests.chats import CALLS, PAIRS, ChatServer, about, choice, good_reply, no_schema, raw, status, three_categories

KEY = "sk-test-0123456789"
CAT = PAIRS[0]


def write(server: ChatServer, taxonomy: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The installed command in a process of its own, with a key in its environment."""
    command = [str(Path(sys.executable).with_name("healbench")), "questions", "write", "--taxonomy", str(taxonomy)]
    command += ["--chat", "openai:test-model", "--base-url", server.url, "--out", str(out), *more]
    env = {**os.environ, "OPENAI_API_KEY": KEY}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_embedded_questions_pass_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["questions", "check"]) == 0
    out = capsys.readouterr().out
    assert "embedded: 92 sets, 828 questions, nothing to mend; second reader: " in out
    assert "revised" in out


def test_a_server_that_misbehaves_in_every_way_still_gives_whole_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taxonomy, out = tmp_path / "three.yaml", tmp_path / "out"
    three_categories(taxonomy)
    faults = [status(500, KEY), no_schema, status(429), choice('{"alignment": {"construct": "blue_')]
    with ChatServer(faults=faults, always=no_schema) as server:
        done = write(server, taxonomy, out)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{out}: 3 sets drafted, 0 were there, 0 failed\n"
        assert sorted(done.stderr.splitlines()) == sorted(f"new: {pair}" for pair in PAIRS)
        forms = [r["response_format"]["type"] for r in server.requests]
        assert forms[:3] == ["json_schema", "json_schema", "json_object"]
        assert set(forms[2:]) == {"json_object"}
        assert len(server.answered) == CALLS
        asked = len(server.requests)
        again = write(server, taxonomy, out)
        assert "0 sets drafted, 3 were there" in again.stdout
        assert len(server.requests) == asked
    assert KEY not in done.stdout + done.stderr
    for file in out.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()
    assert run(["questions", "check", "--taxonomy", str(taxonomy), "--questions", str(out)]) == 0
    assert "3 sets, 27 questions, nothing to mend; second reader: 3 draft" in capsys.readouterr().out
    assert run(["questions", CAT, "--taxonomy", str(taxonomy), "--folder", str(out)]) == 0


def test_pairs_that_fail_are_listed_with_exit_1_and_made_up_for_later(tmp_path: Path) -> None:
    taxonomy, out = tmp_path / "three.yaml", tmp_path / "out"
    three_categories(taxonomy)

    def says(prompt: str) -> str:
        return "I would rather talk." if about(prompt) == CAT else good_reply(prompt)

    with ChatServer(says) as server:
        server.faults = [raw("<html>busy</html>", "text/html")]
        done = write(server, taxonomy, out)
        assert done.returncode == 1
        assert "1 sets drafted, 0 were there, 2 failed" in done.stdout
        assert f"failed: {CAT}: fine questions: schema_violation: the reply holds no JSON object" in done.stderr
        assert f"failed: {PAIRS[2]}: coarse questions of blue_space: unparsable" in done.stderr
        assert len((out / "failed.jsonl").read_text().splitlines()) == 2
        server.says = good_reply
        assert write(server, taxonomy, out).returncode == 1
        assert write(server, taxonomy, out, "--again").returncode == 0
        other = write(server, taxonomy, out, "--chat", "openai:other")
        assert other.returncode == 2


def test_a_dry_run_asks_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["questions", "write", "--taxonomy", str(TAXONOMY_FILE), "--chat", "openai:none"]
    assert run([*arguments, "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    assert "at most 111 calls, about " in capsys.readouterr().out
    assert run([*arguments, "--out", str(tmp_path / "out"), "--dry-run", "--limit", "1"]) == 0
    assert "at most 2 calls" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_scores_are_reviewed_and_the_review_is_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, review, out = tmp_path / "run", tmp_path / "review.csv", tmp_path / "next"
    assert run(["demo", "--out", str(folder)]) == 0
    capsys.readouterr()
    assert run(["questions", "review", str(folder), "--out", str(review)]) == 0
    told = capsys.readouterr()
    assert "flags" in told.out
    assert "Offline baseline" in told.out
    assert told.err == f"review: {review}\n"
    assert run(["questions", "review", str(folder), "--json", "--sample", "2"]) == 0
    items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(item["n"] <= 2 and item["within_r"] is None for item in items)

    rows = [row for _, row in read_review(review)]
    first = next(row for row in rows if row.field == "text" and row.id.endswith("quality.1"))
    new = "Is every surface of what is shown rendered like the real thing?"
    edited = {"old": first.old, "new": new, "verdict": "edit", "reason": first.reason, "reviewer": "me"}
    write_review(review, [type(first)("question", first.id, "text", **edited)])
    assert run(["questions", "apply", str(review), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 0 accept, 1 edit, 0 reject; 1 sets changed\n"
    category = Taxonomy.load().category(first.id.split()[0])
    assert Questions(out).of(category).of("quality")[1].text == new
    assert run(["questions", "apply", str(review), "--questions", str(out), "--out", str(tmp_path / "third")]) == 2
    assert f"{review} row 2: conflict" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["questions", "review"], "name one run folder or more"),
        (["questions", "review", "."], "not a run folder"),
        (["questions", "apply", "none.csv", "--out", "next"], "none.csv: cannot be read"),
        (["questions", "check", "--questions", "none"], "no such folder of questions"),
        (["questions", "write", "--chat", "openai:x", "--out", "o"], "taxonomy"),
        (["questions", "write", "--taxonomy", "T", "--chat", "openai:x", "--out", "o"], "OPENAI_API_KEY is not set"),
        (["questions", "write", "--taxonomy", "T", "--chat", "openai", "--out", "o"], "needs the name of a model"),
        (["questions", "write", "--taxonomy", "T", "--chat", "gpt", "--out", "o"], "unknown chat 'gpt'"),
        (["questions", "write", "--taxonomy", "T", "--chat", "openai:x", "--out", "o", "--limit", "0"], "--limit 0"),
    ],
)
def test_wrong_use_is_one_message_and_exit_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert run([str(TAXONOMY_FILE) if a == "T" else a for a in arguments]) == 2
    out = capsys.readouterr()
    assert message in out.err
    assert "Traceback" not in out.err
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_finds_something_names_it_and_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taxonomy = tmp_path / "three.yaml"
    three_categories(taxonomy)
    (tmp_path / "mine").mkdir()
    assert run(["questions", "check", "--taxonomy", str(taxonomy), "--questions", str(tmp_path / "mine")]) == 2
    out = capsys.readouterr()
    assert out.out.count("complete: no questions for") == 3
    assert "3 to mend in" in out.err
