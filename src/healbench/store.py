"""The run folder: what a run has finished survives anything that happens to its process.

    run.json          resolved settings, versions, digests, counts; replaced in one step
    samples.jsonl     what was asked for
    judgements.jsonl  one score row a line, only ever appended to
    replies.jsonl     a chat model's own words, by the reference in the row
    report/           made from the three

Rows go to the operating system one by one as they are finished, so a killed process loses none, and to the disk in
batches, so that a power cut loses seconds. A line that was being written when the process died is cut off at the next
start and its row is done again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from healbench.errors import RunFolderError
from healbench.files import append_line, cannot_write, cut_torn_line, json_line, now, replace_file
from healbench.types import RETRIED_CODES

SCHEMA = 1
Row = dict[str, Any]

_SYNC_ROWS = 64
_SYNC_SECONDS = 1.0


class RunFolder:
    """One run's folder, locked for this process while it is open.

    Use as a context manager. Settings are compared with those of the run that the folder already holds: the same
    settings resume it, others are refused, since rows of two settings must not stand in one table.

    Args:
        path: the folder; made if it does not exist.
        command: the verb, e.g. "score".
        config: the resolved settings that can change a number; JSON values.
        digests: of everything the numbers depend on: judge, taxonomy, questions.
        versions: of this package and what it calculates with; recorded, and not compared except for "healbench".

    Raises:
        RunFolderError: another process has it open, it holds a run of other settings, or it cannot be written.
    """

    def __init__(
        self,
        path: Path,
        command: str,
        config: Mapping[str, Any],
        *,
        digests: Mapping[str, str],
        versions: Mapping[str, str],
    ) -> None:
        self.path = path
        self._about: Row = {
            "schema": SCHEMA,
            "command": command,
            "config": dict(config),
            "versions": dict(versions),
            "digests": dict(digests),
        }
        self._lock = FileLock(path / ".lock", timeout=0)
        self._unsynced = 0
        self._synced_at = 0.0
        self._file = -1
        self._started = ""

    def __enter__(self) -> Self:
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path}: is a file; a run needs a folder, choose another --out")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout:
            raise RunFolderError(
                f"{self.path}: another process{_owner(self.path)} is working in this run folder; "
                "wait until it has finished or choose another --out"
            ) from None
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            self._write_owner()
            self._started = self._check_settings()
            self._file = self._open_rows()
            written = list(read_rows(self.path / "judgements.jsonl"))
            self.history: dict[str, list[Row]] = {}  # every row of an id: an earlier one may answer a question again
            for row in written:
                self.history.setdefault(row["id"], []).append(row)
            self.rows = latest_rows(written)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)
        self._lock.release()

    def write_samples(self, samples: Iterable[Row]) -> None:
        """Replaces `samples.jsonl` in one step."""
        replace_file(self.path / "samples.jsonl", "".join(json_line(row) for row in samples))

    def append(self, row: Row) -> None:
        """Adds a finished row.

        Raises:
            RunFolderError: the disk is full or the file cannot be written; what was appended before is safe.
        """
        if self.rows.get(row["id"]) == row:
            return  # tried again with the same outcome: the file already says so
        data = json_line(row).encode()
        try:
            while data:
                data = data[os.write(self._file, data) :]
            self._unsynced += 1
            if self._unsynced >= _SYNC_ROWS or time.monotonic() - self._synced_at > _SYNC_SECONDS:
                self._sync()
        except OSError as error:
            raise cannot_write(self.path / "judgements.jsonl", error) from error
        self.rows[row["id"]] = row
        self.history.setdefault(row["id"], []).append(row)

    def keep_reply(self, reference: str, reply: str) -> None:
        """Adds a model's own words to `replies.jsonl`; they were paid for once."""
        append_line(self.path / "replies.jsonl", {"ref": reference, "reply": reply})

    def finish(self, counts: Mapping[str, int]) -> Row:
        """Writes `run.json` for a run that has come to its end and returns it."""
        self._sync()
        about = {
            **self._about,
            "counts": dict(counts),
            "tokens": None,
            "cost": None,
            "started": self._started,
            "finished": now(),
        }
        replace_file(self.path / "run.json", json.dumps(about, ensure_ascii=False, indent=2) + "\n")
        return about

    def _check_settings(self) -> str:
        """Refuses a folder of other settings; returns when its run was started."""
        path = self.path / "run.json"
        if not path.exists():
            if (self.path / "judgements.jsonl").exists():
                raise RunFolderError(
                    f"{self.path}: holds judgements of unknown settings: run.json is missing; choose another --out"
                )
            started = now()
            about = {
                **self._about,
                "counts": None,
                "tokens": None,
                "cost": None,
                "started": started,
                "finished": None,
            }
            replace_file(path, json.dumps(about, ensure_ascii=False, indent=2) + "\n")
            return started
        before = read_run(self.path)
        changed = list(_differences(before, self._about))
        if changed:
            raise RunFolderError(
                f"{self.path}: holds a run of other settings ({'; '.join(changed)}); "
                "use the same settings to go on with it, or choose another --out"
            )
        return str(before["started"])

    def _open_rows(self) -> int:
        path = self.path / "judgements.jsonl"
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            cut_torn_line(file)
        except OSError as error:
            raise cannot_write(path, error) from error
        return file

    def _sync(self) -> None:
        os.fsync(self._file)
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def _write_owner(self) -> None:
        try:
            (self.path / ".owner").write_text(str(os.getpid()), encoding="ascii")
        except OSError as error:
            raise cannot_write(self.path, error) from error


def read_run(folder: Path) -> Row:
    """The folder's `run.json`.

    Raises:
        RunFolderError: there is none, or it is not one that this version can read.
    """
    path = folder / "run.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunFolderError(f"{folder}: not a run folder: {path.name} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise RunFolderError(f"{path}: not JSON ({error}); was it edited?") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise RunFolderError(f"{path}: not a run of this version (schema {SCHEMA})")
    return about


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSONL file of ours, in order; a torn last line is passed over.

    Raises:
        RunFolderError: a line before the last is not JSON: the file was damaged by something else.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            whole = line.endswith(b"\n")
            try:
                row = json.loads(line)
            except ValueError as error:
                if not whole:
                    return
                raise RunFolderError(
                    f"{path}:{number}: damaged line ({error}); restore the file or remove the line"
                ) from error
            if whole:
                yield row


def latest_rows(rows: Iterable[Row]) -> dict[str, Row]:
    """The row that holds for each id: the last, except that an unscored one never hides a scored one of equal key."""
    latest: dict[str, Row] = {}
    for row in rows:
        before = latest.get(row["id"])
        if before and row["unscored"] and not before["unscored"] and row_key(row) == row_key(before):
            continue
        latest[row["id"]] = row
    return latest


_KEY = (
    "image_sha256",
    "text",
    "category",
    "judge",
    "judge_digest",
    "question_digest",
    "prompt_digest",
    "params",
    "version",
)


def row_key(row: Row) -> tuple[str, ...]:
    """Everything that a score depends on: two rows of equal key must have equal numbers."""
    return tuple(json.dumps(row[name], sort_keys=True) for name in _KEY)


def is_final(row: Row) -> bool:
    """True for a row that the next start need not try again."""
    return row["unscored"] is None or row["unscored"]["code"] not in RETRIED_CODES


def _differences(before: Row, now: Row) -> Iterator[str]:
    if before["command"] != now["command"]:
        yield f"command: {before['command']} before, {now['command']} now"
    if before["versions"].get("healbench") != now["versions"].get("healbench"):
        yield f"healbench: {before['versions'].get('healbench')} before, {now['versions'].get('healbench')} now"
    for part in ("config", "digests"):
        names = [*before[part], *(n for n in now[part] if n not in before[part])]
        for name in names:
            old, new = before[part].get(name), now[part].get(name)
            if old != new:
                yield f"{name}{' changed its content' if part == 'digests' else f': {old} before, {new} now'}"


def _owner(folder: Path) -> str:
    try:
        return f" ({(folder / '.owner').read_text(encoding='ascii')})"
    except OSError:
        return ""
