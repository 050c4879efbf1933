"""Files that survive a kill: lines that are appended whole, files that are replaced in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from healbench.errors import RunFolderError


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Adds a row to a JSONL file and to the disk, after cutting off a line that an earlier process left torn.

    Raises:
        RunFolderError: the disk is full or the file cannot be written.
    """
    data = json_line(row).encode()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            cut_torn_line(file)
            while data:
                data = data[os.write(file, data) :]
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise cannot_write(path, error) from error


def replace_file(path: Path, text: str) -> None:
    """Writes a file in one step: whoever reads it sees the old text or the new, never a part."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line of JSON, with its newline."""
    # Escaping the line separators keeps one row one line for every reader, not only for ours.
    text = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")
    # A file name that is no UTF-8 comes with lone surrogates; escaped, they are JSON and come back as they were.
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def cut_torn_line(file: int) -> None:
    """Removes what follows the last newline: the row that was being written when its process died."""
    end = os.lseek(file, 0, os.SEEK_END)
    position, tail = end, b""
    while position > 0 and b"\n" not in tail:
        step = min(65536, position)
        position -= step
        tail = os.pread(file, step, position)
    keep = position + tail.rfind(b"\n") + 1 if b"\n" in tail else 0
    if keep < end:
        os.ftruncate(file, keep)


def cannot_write(path: Path, error: OSError) -> RunFolderError:
    """The error of a full disk or a read-only folder."""
    return RunFolderError(
        f"{path}: cannot be written ({error.strerror}); finished rows are safe: make room or choose another --out, "
        "and the same command goes on where it stopped"
    )


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
