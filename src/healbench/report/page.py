"""A run's rows → `report/`: index.html, data/*.js, thumbs/*.webp, summary.json. Needs no server and no network.

Files are written one by one by renaming, index.html last; written twice from the same run they are the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from healbench.report import payload
from healbench.report.summary import Row, Summary, summarize
from healbench.report.thumbs import Progress, make_thumbs
from healbench.stats import Interval, Rate
from healbench.types import Category, FailureRule, HealClass, QuestionSet

STATIC = ("report.css", "report.js", "gallery.js", "panel.js")

LARGE_PICTURES_UP_TO = 1000
"""Runs of more rows show the card's picture in the panel too, to keep the folder small."""

LISTED_PER_REASON = 100
"""So many unscored rows a reason stand in the page; the gallery shows them all."""

MEASURES = {
    "alignment": ("Alignment", "Does the picture show what its text says?"),
    "heal": ("Heal", "Does the picture calm and comfort?"),
    "quality": ("Quality", "Is the picture itself sound?"),
    "total": ("Total", "Alignment + 2 × heal + quality"),
}


@dataclass(frozen=True, slots=True)
class ReportInput:
    """All that the report shows.

    Attributes:
        rows: the current score row of each sample (DESIGN, "Score row").
        images: row id → absolute path of its picture.
        run: the run's `run.json`.
        classes: in the order to show.
        categories: by id (`coarse/fine`), in the order to show.
        questions: by category; a row rated with another digest is shown without question texts.
        notice: the judge's own sentence about its numbers; "" for none.
        rule: when a dimension fails.
        samples: the lines of `samples.jsonl`; instruction, author, licence and source are shown where present.
        title: the page's heading.
    """

    rows: Sequence[Row]
    images: Mapping[str, Path]
    run: Mapping[str, Any]
    classes: Sequence[HealClass]
    categories: Mapping[str, Category]
    questions: Mapping[str, QuestionSet]
    notice: str = ""
    rule: FailureRule = field(default_factory=FailureRule)
    samples: Sequence[Mapping[str, Any]] = ()
    title: str = "HealBench report"


def write_report(
    run_dir: Path, source: ReportInput, *, workers: int | None = None, progress: Progress | None = None
) -> Path:
    """Writes `run_dir/report/` and returns the path of its index.html.

    Args:
        workers: threads that make the small pictures; by default as many as there are cores, at most 8.
        progress: told after each picture how many are done, of how many.

    Raises:
        ValueError: two rows of one id, or a scored row with a number missing.
    """
    summary = summarize(source.rows, source.classes, source.categories)
    rows = payload.display_order(source.rows)
    folder = run_dir / "report"
    (folder / "data").mkdir(parents=True, exist_ok=True)
    large = len(rows) <= LARGE_PICTURES_UP_TO
    thumbs = make_thumbs(rows, source.images, folder / "thumbs", large=large, workers=workers, progress=progress)
    details = payload.Details(rows, source.questions)
    samples = {str(sample.get("id")): sample for sample in source.samples}
    for name in STATIC:
        _write(folder / name, (files("healbench.report") / "static" / name).read_bytes())
    written = {"index.js", "search.js", "details.js"}
    for k, chunk in enumerate(payload.chunks(rows, thumbs, samples, details)):
        written.add(f"{k}.js")
        _write(folder / "data" / f"{k}.js", chunk)
    _write(folder / "data/search.js", payload.script("search", [str(row.get("text") or "") for row in rows]))
    _write(folder / "data/details.js", payload.script("details", details.to_json()))
    index = payload.index(rows, source.classes, source.categories, source.rule)
    _write(folder / "data/index.js", payload.script("index", index))
    text = json.dumps(summary.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    _write(folder / "summary.json", _utf8(text + "\n"))
    _write(folder / "index.html", _utf8(_html(source, summary, index)))
    for old in (folder / "data").iterdir():
        if old.name not in written:
            old.unlink()
    return folder / "index.html"


def _html(source: ReportInput, summary: Summary, index: Mapping[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only a report needs it

    environment = Environment(
        loader=PackageLoader("healbench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        number=_number, span=_span, percent=_percent, percent_span=_percent_span, count=_count, position=_position
    )
    return environment.get_template("index.html.jinja").render(
        title=source.title,
        notice=source.notice,
        rule=source.rule,
        summary=summary,
        measures=MEASURES,
        listed=LISTED_PER_REASON,
        classes=index["classes"],
        categories=index["categories"],
        run_facts=_run_facts(source.run),
    )


def _run_facts(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What run.json says, flat and in its own words: one line a setting."""
    facts: list[tuple[str, str]] = []
    for key in ("command", "started", "finished", "config", "counts", "digests", "versions", "tokens", "cost"):
        value = run.get(key)
        if isinstance(value, Mapping):
            facts.extend((f"{key.capitalize()}: {name}", _plain(v)) for name, v in value.items())
        elif value is not None:
            facts.append((key.capitalize(), _plain(value)))
    return facts


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _number(interval: Interval | None) -> str:
    return "–" if interval is None else f"{interval.mean:.2f}"


def _span(interval: Interval | None) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"{interval.low:.2f} – {interval.high:.2f}"


def _percent(rate: Rate | None) -> str:
    return "–" if rate is None else f"{100 * rate.rate:.0f}%"


def _percent_span(rate: Rate | None) -> str:
    return "" if rate is None else f"{100 * rate.low:.0f} – {100 * rate.high:.0f}%"


def _count(n: int) -> str:
    return f"{n:,}"


def _position(value: float, low: float, high: float) -> str:
    """Where a value lies on an axis of 1000 units."""
    return f"{1000 * (value - low) / (high - low):.1f}"


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")  # a lone surrogate from a JSON escape has no bytes of its own


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
