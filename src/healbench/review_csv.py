"""The review CSV (contract "Review row"): what a reader decides about questions, in any spreadsheet.

UTF-8 with a byte order mark, so that spreadsheets open it as UTF-8. A cell that a spreadsheet would run as a formula is
written with an apostrophe before it, which is taken off again on reading.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from healbench.errors import UsageError
from healbench.files import replace_file

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r]")
MAX_CELL = 1_000_000


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One decision. `verdict` is "" until someone decides, then accept, edit or reject.

    Attributes:
        id: `coarse/fine dimension.k`.
        field: text, or anchor.1, anchor.4, anchor.7, anchor.10.
        old: the wording that was reviewed.
        new: the wording that takes its place.
    """

    kind: str
    id: str
    field: str
    old: str
    new: str = ""
    verdict: str = ""
    reason: str = ""
    reviewer: str = ""


COLUMNS = tuple(f.name for f in fields(ReviewRow))


def write_review(path: Path, rows: Iterable[ReviewRow]) -> None:
    """Replaces a review CSV in one step."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(_escape(getattr(row, column)) for column in COLUMNS)
    replace_file(path, "\ufeff" + text.getvalue())


def read_review(path: Path) -> list[tuple[int, ReviewRow]]:
    """The rows with the numbers that a spreadsheet shows: the header is row 1. Empty rows are passed over.

    Spreadsheets save with commas, semicolons or tabs, by the country; the header tells.

    Raises:
        UsageError: not such a file; names the row.
    """
    try:
        # Not read_text: it would turn the line ends inside cells into others.
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8; save it as “CSV UTF-8”") from error
    head = text[:200].split("\n", 1)[0]
    delimiter = next((d for d in (",", ";", "\t") if d in head), ",")
    csv.field_size_limit(MAX_CELL)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, ReviewRow]] = []
    try:
        header = tuple(cell.strip().lower() for cell in next(lines, []))
        if header != COLUMNS:
            raise UsageError(
                f"{path} row 1: the columns are {', '.join(header) or 'missing'}; need {', '.join(COLUMNS)}"
            )
        for number, cells in enumerate(lines, 2):
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(COLUMNS):
                raise UsageError(f"{path} row {number}: has {len(cells)} cells, not {len(COLUMNS)}")
            rows.append((number, ReviewRow(*(_unescape(cell) for cell in cells))))
    except csv.Error as error:
        raise UsageError(f"{path} row {len(rows) + 2}: not CSV ({error})") from error
    return rows


def _escape(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _unescape(cell: str) -> str:
    return cell[1:] if _ESCAPED.match(cell) else cell
