import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healbench.errors import RunFolderError
from healbench.store import RunFolder, latest_rows, read_rows, read_run, row_key

CONFIG: dict[str, Any] = {"judge": "toy", "taxonomy": "embedded"}


def folder(path: Path, **change: Any) -> RunFolder:
    return RunFolder(
        path,
        change.pop("command", "score"),
        {**CONFIG, **change},
        digests={"judge": "1"},
        versions={"healbench": "0", "numpy": "1"},
    )


def row(name: str, total: float | None = 20.0, **change: Any) -> dict[str, Any]:
    unscored = None if total is not None else {"code": "timeout", "message": "slow"}
    key = dict.fromkeys(("image_sha256", "text", "category", "judge", "judge_digest", "question_digest"), "same")
    return {
        "id": name,
        **key,
        "prompt_digest": None,
        "params": {},
        "version": "0",
        "total": total,
        "unscored": unscored,
    } | change


def test_rows_and_run_json_are_there_after_a_run_and_at_the_next_start(tmp_path: Path) -> None:
    with folder(tmp_path / "run") as run:
        run.write_samples([{"id": "a"}])
        run.append(row("a"))
        about = run.finish({"total": 1, "scored": 1, "unscored": 0, "cached": 0})
    assert read_run(tmp_path / "run") == about
    assert about["started"] <= about["finished"]
    assert list(read_rows(tmp_path / "run" / "samples.jsonl")) == [{"id": "a"}]
    with folder(tmp_path / "run") as run:
        assert run.rows == {"a": row("a")}


def test_the_same_row_again_is_not_written_twice(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.append(row("a"))
        run.append(row("a"))
    assert len(list(read_rows(tmp_path / "judgements.jsonl"))) == 1


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.append(row("a"))
    with (
        pytest.raises(RunFolderError, match=r"judge: toy before, offline now.*choose another --out"),
        folder(tmp_path, judge="offline"),
    ):
        pass
    with pytest.raises(RunFolderError, match="command: score before, run now"), folder(tmp_path, command="run"):
        pass
    other = RunFolder(tmp_path, "score", CONFIG, digests={"judge": "2"}, versions={"healbench": "0"})
    with pytest.raises(RunFolderError, match="judge changed its content"), other:
        pass
    newer = RunFolder(tmp_path, "score", CONFIG, digests={"judge": "1"}, versions={"healbench": "9"})
    with pytest.raises(RunFolderError, match="healbench: 0 before, 9 now"), newer:
        pass
    with folder(tmp_path) as run:
        assert run.rows == {"a": row("a")}


def test_a_file_is_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="is a file; a run needs a folder"), folder(tmp_path / "file"):
        pass


def test_a_folder_of_something_else_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match="not JSON"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": 99}')
    with pytest.raises(RunFolderError, match="not a run of this version"):
        read_run(tmp_path)
    (tmp_path / "run.json").unlink()
    (tmp_path / "judgements.jsonl").write_text("")
    with pytest.raises(RunFolderError, match=r"run\.json is missing"), folder(tmp_path):
        pass


@given(cut=st.integers(0, 400))
def test_a_file_cut_anywhere_keeps_its_whole_rows_and_takes_new_ones(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut")
    with folder(path) as run:
        for name in ("a", "b", "治愈\u2028"):
            run.append(row(name))
    file = path / "judgements.jsonl"
    data = file.read_bytes()
    file.write_bytes(data[: len(data) - cut])
    whole = data[: max(0, len(data) - cut)].count(b"\n")
    assert len(list(read_rows(file))) == whole
    with folder(path) as run:
        assert len(run.rows) == whole
        for name in ("a", "b", "治愈\u2028"):
            run.append(row(name))
    assert file.read_bytes() == data


def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.append(row("a"))
    file = tmp_path / "judgements.jsonl"
    file.write_bytes(b'{"id": \n' + file.read_bytes())
    with pytest.raises(RunFolderError, match=r"judgements\.jsonl:1: damaged line"), folder(tmp_path):
        pass


def test_an_unscored_row_never_hides_a_scored_one_of_the_same_key() -> None:
    scored, failed = row("a"), row("a", None)
    assert row_key(scored) == row_key(failed)
    assert latest_rows([scored, failed])["a"] == scored
    assert latest_rows([failed, scored])["a"] == scored
    changed = row("a", None, text="another")
    assert latest_rows([scored, changed])["a"] == changed


def test_a_number_that_is_none_never_reaches_the_file(tmp_path: Path) -> None:
    with folder(tmp_path) as run, pytest.raises(ValueError, match="not JSON compliant"):
        run.append(row("a", float("nan")))
    assert (tmp_path / "judgements.jsonl").read_bytes() == b""


WORK = """
import sys
from pathlib import Path
from tests.test_store import folder, row
with folder(Path(sys.argv[1])) as run:
    print("open", flush=True)
    for i in range(int(sys.argv[2])):
        if str(i) not in run.rows:
            run.append(row(str(i), float(i), padding="x" * 300))
    if len(sys.argv) > 3:
        sys.stdin.read()
    run.finish({})
"""


def start(path: Path, rows: int, *more: str, **options: Any) -> subprocess.Popen[str]:
    root = Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORK), str(path), str(rows), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}"},
        **options,
    )


def test_a_second_process_is_refused_with_the_first_ones_id(tmp_path: Path) -> None:
    with start(tmp_path, 3, "wait") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "open\n"
        with (
            pytest.raises(RunFolderError, match=rf"another process \({first.pid}\) is working in this run folder"),
            folder(tmp_path),
        ):
            pass
        first.communicate("")
    with folder(tmp_path) as run:
        assert len(run.rows) == 3


def test_a_full_disk_is_one_sentence_and_loses_no_finished_row(tmp_path: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    with start(tmp_path, 1000, preexec_fn=limit) as process:
        _, error = process.communicate()
    assert process.returncode == 1
    assert "RunFolderError" in error
    assert "cannot be written (File too large); finished rows are safe" in error
    saved = list(read_rows(tmp_path / "judgements.jsonl"))
    assert 10 < len(saved) < 100
    with start(tmp_path, 1000) as process:
        process.communicate()
    assert [r["id"] for r in read_rows(tmp_path / "judgements.jsonl")] == [str(i) for i in range(1000)]


def kill_and_resume(tmp_path: Path, times: int, rows: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    started = time.monotonic()
    with start(whole, rows) as process:
        process.communicate()
    seconds = time.monotonic() - started
    for moment in range(times):
        with start(killed, rows) as process:
            time.sleep(seconds * (0.3 + 0.7 * ((moment * 0.618) % 1)))
            process.kill()
    assert (killed / "judgements.jsonl").exists()
    with start(killed, rows) as process:
        process.communicate()
    assert process.returncode == 0
    assert (killed / "judgements.jsonl").read_bytes() == (whole / "judgements.jsonl").read_bytes()
    assert json.loads((killed / "run.json").read_text())["finished"]


def test_a_process_killed_while_it_writes_loses_nothing(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, times=4, rows=20_000)


@pytest.mark.long
def test_a_process_killed_twenty_times_while_it_writes_loses_nothing(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, times=20, rows=200_000)
