import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from healbench import __version__
from healbench.cli import run
from healbench.samples import DEMO
from tests.toys import picture

ROOT = Path(__file__).parents[1]
CAT = "quiet_company/napping_cat"


def healbench(*arguments: str, cwd: Path = ROOT, **options: Any) -> subprocess.CompletedProcess[str]:
    """The installed command in a process of its own."""
    command = [str(Path(sys.executable).with_name("healbench")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, **options)


@pytest.fixture(scope="module")
def cup() -> Path:
    return DEMO.parent / "coffee_cup.jpg"


def test_help_shows_the_stages_in_order_and_a_first_step() -> None:
    done = healbench("--help")
    assert done.returncode == 0
    names = ["taxonomy", "questions", "score", "report", "demo"]
    at = [done.stdout.index(f"{name} ") for name in names]
    assert at == sorted(at)
    assert "healbench demo" in done.stdout
    assert healbench("--version").stdout.strip() == __version__


@pytest.mark.parametrize("code", ["import healbench", "from healbench.cli import app, run; run(['--help'])"])
def test_the_core_and_the_help_load_nothing_heavy(code: str) -> None:
    heavy = ("torch", "transformers", "scipy", "numpy", "onnxruntime", "pydantic", "jinja2", "PIL", "yaml")
    test = f"import sys\n{code}\nprint([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", test], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_one_photo_without_anything_else_is_scored_and_says_what_was_guessed(cup: Path) -> None:
    done = healbench("score", str(cup))
    assert done.returncode == 0, done.stderr
    assert "coffee_cup.jpg" in done.stdout
    assert "suggested from the picture" in done.stdout
    assert "definition of their category" in done.stdout
    assert "Offline baseline" in done.stdout
    assert done.stderr == ""


def test_json_is_one_row_a_line_on_stdout_and_nothing_else(cup: Path, tmp_path: Path) -> None:
    done = healbench("score", str(cup), str(tmp_path / "gone.jpg"), "--category", "warm_home_table", "--json")
    assert done.returncode == 1
    good, bad = map(json.loads, done.stdout.splitlines())
    assert good["category"] == "cozy_interior/warm_home_table"
    assert good["category_source"] == "given"
    assert good["text_source"] == "category"
    assert bad["unscored"]["code"] == "missing"
    assert bad["total"] is None
    assert "unscored: gone.jpg: missing" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score"], "name pictures or folders, or --samples"),
        (["score", "x.jpg", "--samples", "y.jsonl"], "and not both"),
        (["score", "x.jpg", "--category", "napping_ct"], "did you mean quiet_company/napping_cat"),
        (["score", "x.jpg", "--category", "others/others_others"], "is not a valid pair"),
        (["score", "x.jpg", "--text", "  "], "--text is empty"),
        (["score", "x.jpg", "--judge", "gpt"], "unknown judge 'gpt'; there are: offline"),
        (["score", "x.jpg", "--judge", "offline:big"], "takes no argument"),
        (["score", "x.jpg", "--limit", "0"], "--limit 0: must be 1 or more"),
        (["score", "x.jpg", "--limit", "many"], "many"),
        (["score", "--samples", "none.jsonl"], "none.jsonl: cannot be read"),
        (["score", "x.jpg", "--taxonomy", "none.yaml"], "none.yaml: cannot be read"),
        (["score", "x.jpg", "--questions", "none"], "no such folder of questions"),
        (["score", "x.jpg", "--nonsense"], "--nonsense"),
        (["scor"], "scor"),
        (["report", "."], "not a run folder"),
        (["taxonomy", "nowhere"], "unknown category 'nowhere'"),
        (["questions", "green_space"], "a coarse category needs a fine one"),
    ],
)
def test_wrong_use_is_one_message_and_exit_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    out = capsys.readouterr()
    assert message in out.err
    assert "Traceback" not in out.err
    assert out.out == ""


def test_a_taxonomy_file_is_checked_with_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nprovenance: me\nheal_classes: []\ncoarse: []\n")
    assert run(["taxonomy", "check", str(file)]) == 2
    out = capsys.readouterr()
    assert f"{file}:3: heal_classes: " in out.out
    assert f"{file}:4: coarse: " in out.out
    assert run(["taxonomy", "check", "src/healbench/data/taxonomy.yaml"]) == 0
    assert "6 classes, 19 coarse categories, 102 pairs, 92 of them valid" in capsys.readouterr().out


def test_taxonomy_and_questions_are_shown_for_people_and_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["taxonomy"]) == 0
    assert capsys.readouterr().out.count("/") >= 102
    assert run(["taxonomy", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["categories"]) == 102
    assert run(["taxonomy", "napping_cat"]) == 0
    assert "breaks it" in capsys.readouterr().out
    assert run(["questions", "napping_cat"]) == 0
    text = capsys.readouterr().out
    assert text.count("?") >= 9
    assert "{viewer}" not in text
    assert run(["questions", "napping_cat", "--json"]) == 0
    nine = json.loads(capsys.readouterr().out)
    assert nine["category"] == CAT
    assert len(nine["questions"]) == 9


def test_a_run_folder_resumes_is_reported_and_refuses_other_settings(tmp_path: Path, cup: Path) -> None:
    out = tmp_path / "run"
    one = healbench("score", str(cup), "--out", str(out))
    assert one.returncode == 0, one.stderr
    assert one.stdout.splitlines()[-1] == f"report: {out / 'report' / 'index.html'}"
    before = (out / "judgements.jsonl").read_bytes()
    more = healbench("score", str(cup), str(DEMO.parent / "kitten.jpg"), "--out", str(out))
    assert more.returncode == 0, more.stderr
    assert (out / "judgements.jsonl").read_bytes().startswith(before)
    counts = json.loads((out / "run.json").read_text())["counts"]
    assert counts == {"total": 2, "scored": 2, "unscored": 0, "cached": 1}
    other = healbench("score", str(cup), "--out", str(out), "--fail-below", "6")
    assert other.returncode == 2
    assert "holds a run of other settings (failure_rule" in other.stderr
    again = healbench("report", str(out))
    assert again.stdout.strip() == str(out / "report" / "index.html")


def test_settings_come_from_flag_then_environment_then_file(tmp_path: Path, cup: Path) -> None:
    (tmp_path / "healbench.toml").write_text('[score]\ncategory = "friendly_dog"\n')
    row = json.loads(healbench("score", str(cup), "--json", cwd=tmp_path).stdout)
    assert row["category"] == "quiet_company/friendly_dog"
    env = {**os.environ, "HEALBENCH_SCORE_CATEGORY": "mirror_lake"}
    row = json.loads(healbench("score", str(cup), "--json", cwd=tmp_path, env=env).stdout)
    assert row["category"] == "blue_space/mirror_lake"
    row = json.loads(healbench("score", str(cup), "--json", "--category", "napping_cat", cwd=tmp_path, env=env).stdout)
    assert row["category"] == CAT


def test_output_is_utf8_whatever_the_locale_says(cup: Path) -> None:
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [str(Path(sys.executable).with_name("healbench")), "score", str(cup), "--text", "咖啡 ☕"]
    done = subprocess.run([*command, "--json"], capture_output=True, check=True, env=env)
    assert json.loads(done.stdout.decode("utf-8"))["text"] == "咖啡 ☕"
    done = subprocess.run(command, capture_output=True, check=True, env=env)
    assert "2·heal" in done.stdout.decode("utf-8")


def test_a_file_name_that_is_no_utf8_is_scored_and_kept(tmp_path: Path, cup: Path) -> None:
    name = os.fsdecode(b"caf\xe9.jpg")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(cup.read_bytes())
    for _ in range(2):
        done = healbench("score", str(tmp_path / "in"), "--out", str(tmp_path / "run"))
        assert done.returncode == 0, done.stderr
    (row,) = map(json.loads, (tmp_path / "run" / "judgements.jsonl").read_text().splitlines())
    assert row["id"] == name
    assert len(list((tmp_path / "run" / "report" / "thumbs").iterdir())) >= 1


def test_a_reader_that_goes_away_ends_the_command_quietly(cup: Path) -> None:
    command = [str(Path(sys.executable).with_name("healbench")), "taxonomy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_settings_file_that_is_no_toml_is_named(tmp_path: Path, cup: Path) -> None:
    (tmp_path / "healbench.toml").write_text("[score\n")
    done = healbench("score", str(cup), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("healbench.toml: ")


def test_a_dry_run_scores_nothing(tmp_path: Path, cup: Path) -> None:
    done = healbench("score", str(cup), "--dry-run", "--out", str(tmp_path / "run"))
    assert done.returncode == 0
    assert "1 samples (0 with mistakes, 1 with a suggested category)" in done.stdout
    assert not (tmp_path / "run").exists()


def test_bad_rows_of_a_samples_file_are_listed_and_the_others_scored(tmp_path: Path, cup: Path) -> None:
    picture(tmp_path / "p.png")
    (tmp_path / "text.jpg").write_text("not a picture")
    rows = [
        json.dumps({"id": "ok", "image": str(cup), "text": "咖啡 ☕ قهوة", "category": "warm_home_table"}),
        '{"id": "torn"',
        json.dumps({"id": "typo", "image": "p.png", "category": "napping_ct"}),
        json.dumps({"id": "text", "image": "text.jpg", "category": "napping_cat"}),
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(rows), encoding="utf-8")
    done = healbench("score", "--samples", str(tmp_path / "s.jsonl"), "--out", str(tmp_path / "run"), "--json")
    assert done.returncode == 1
    scored = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in scored] == ["ok", "s.jsonl:2", "typo", "text"]
    assert [bool(row["unscored"]) for row in scored] == [False, True, True, True]
    assert "s.jsonl:2: not JSON" in done.stderr
    assert "did you mean quiet_company/napping_cat" in done.stderr
    assert "text.jpg" in done.stderr
    assert f"report: {tmp_path / 'run' / 'report' / 'index.html'}" in done.stderr


def kill_demo(tmp_path: Path, times: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    started = time.monotonic()
    assert healbench("demo", "--out", str(whole)).returncode == 0
    seconds = time.monotonic() - started
    command = [str(Path(sys.executable).with_name("healbench")), "demo", "--out", str(killed)]
    rows_after_kill = []
    for moment in range(times):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(seconds * (0.15 + 0.8 * ((moment * 0.618) % 1)))
            process.kill()
        file = killed / "judgements.jsonl"
        rows_after_kill.append(file.read_bytes().count(b"\n") if file.exists() else 0)
    done = healbench("demo", "--out", str(killed))
    assert done.returncode == 0, done.stderr
    assert (killed / "judgements.jsonl").read_bytes() == (whole / "judgements.jsonl").read_bytes()
    assert rows_after_kill == sorted(rows_after_kill)
    assert rows_after_kill[0] < 37
    summaries = [(folder / "report" / "summary.json").read_text() for folder in (whole, killed)]
    assert json.loads(summaries[0]) == json.loads(summaries[1])


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [str(Path(sys.executable).with_name("healbench")), "demo", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        file = out / "judgements.jsonl"
        while not (file.exists() and file.stat().st_size):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
    assert process.returncode == 130
    assert "the same command with the same --out goes on" in error
    assert "Traceback" not in error
    before = file.read_bytes()
    assert healbench("demo", "--out", str(out)).returncode == 0
    assert file.read_bytes().startswith(before[: before.rfind(b"\n") + 1])


def test_a_run_killed_twice_ends_with_the_same_rows_and_report(tmp_path: Path) -> None:
    kill_demo(tmp_path, times=2)


@pytest.mark.long
def test_a_run_killed_at_twenty_moments_ends_with_the_same_rows_and_report(tmp_path: Path) -> None:
    kill_demo(tmp_path, times=20)


def test_a_taxonomy_and_questions_of_ones_own_take_the_place_of_ours_everywhere(tmp_path: Path, cup: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "name: mine\nprovenance: a test\nheal_classes: [{id: calm, name: Plain Calm, definition: Being calm}]\n"
        "coarse:\n- {id: cups, name: Cups, heal_class: calm, healing_function: Slows down., breakers: [a broken cup],\n"
        "   fine: [{id: full, name: A full cup, definition: A cup of coffee., visual_cues: [a cup of coffee]}]}\n",
        encoding="utf-8",
    )
    sets = tmp_path / "questions"
    sets.mkdir()
    ours = (ROOT / "src" / "healbench" / "data" / "questions" / "quiet_company.yaml").read_text(encoding="utf-8")
    text = ours[: ours.index("  friendly_dog:")].replace("quiet_company", "cups").replace("napping_cat", "full")
    (sets / "cups.yaml").write_text(text, encoding="utf-8")
    out = tmp_path / "run"
    done = healbench("score", str(cup), "--taxonomy", str(mine), "--questions", str(sets), "--out", str(out))
    assert done.returncode == 0, done.stderr
    (row,) = map(json.loads, (out / "judgements.jsonl").read_text().splitlines())
    assert (row["category"], row["heal_class"], row["category_source"]) == ("cups/full", "calm", "suggested")
    assert "Plain Calm" in (out / "report" / "index.html").read_text(encoding="utf-8")
    assert healbench("report", str(out)).returncode == 0
    mine.write_text(mine.read_text().replace("A cup of coffee.", "A cup of tea."))
    done = healbench("score", str(cup), "--taxonomy", str(mine), "--questions", str(sets), "--out", str(out))
    assert done.returncode == 2
    assert "taxonomy changed its content" in done.stderr
    done = healbench("report", str(out))
    assert done.returncode == 2
    assert "has changed since" in done.stderr
