"""`healbench score`, `report` and `demo`: pictures in, scores and reasons out."""

# ruff: noqa: PLC0415 - see healbench.cli.command

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from healbench.cli.command import AsJson, app, print_json, say
from healbench.errors import UsageError

if TYPE_CHECKING:
    from healbench.judge import Scoring
    from healbench.types import Sample


@Parameter(name="*")
@dataclass(frozen=True)
class ScoreOptions:
    """How to score.

    Attributes:
        judge: "offline" is embedded; "openai:MODEL" asks any OpenAI-compatible server.
        base_url: of that server; without it the key in OPENAI_API_KEY is for the hosted one.
        category: for pictures that come without one; suggested from each picture if not given.
        text: for pictures that come without one; the definition of the category if not given.
        out: run folder for rows and report; the same folder again goes on where it stopped.
        limit: only the first N samples.
        taxonomy: file that takes the place of the embedded categories.
        questions: folder that takes the place of the embedded questions.
        fail_below: a dimension fails when its mean is below this.
        fail_rating: or when one of its three ratings is this or less.
    """

    judge: str = "offline"
    base_url: str | None = None
    category: str | None = None
    text: str | None = None
    out: Path | None = None
    limit: int | None = None
    taxonomy: Path | None = None
    questions: Path | None = None
    fail_below: float = 5.0
    fail_rating: int = 3


@app.command(sort_key=3)
def score(
    *paths: Path,
    samples: Path | None = None,
    options: ScoreOptions = ScoreOptions(),
    as_json: AsJson = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Score pictures and say why they fail.

    Args:
        paths: pictures, or folders of pictures.
        samples: JSONL file, one sample a line: id, image, and if you like text and category.
        as_json: one score row a line on stdout.
        dry_run: say what would be done, and do nothing.
    """
    from healbench.console import print_plan

    chosen, parts = _prepare(paths, samples, options)
    if dry_run:
        print_plan(chosen, parts, options.out)
        return 0
    return _score(chosen, parts, options, as_json)


@app.command(sort_key=4)
def report(run_dir: Path) -> int:
    """Make the HTML report of a run folder again.

    Args:
        run_dir: folder that `score` has written.
    """
    print(_write_report(run_dir))
    return 0


@app.command(sort_key=5)
def demo(*, out: Path = Path("healbench-demo"), as_json: AsJson = False) -> int:
    """Score the photos that come with the package, offline, and write a report.

    Args:
        out: run folder.
        as_json: one score row a line on stdout.
    """
    from healbench.samples import DEMO

    options = ScoreOptions(out=out)
    return _score(*_prepare((), DEMO, options), options, as_json)


def _prepare(paths: Iterable[Path], file: Path | None, options: ScoreOptions) -> tuple[list[Sample], Scoring]:
    from healbench.runs import Settings, scoring
    from healbench.samples import samples_from_jsonl, samples_from_paths, with_defaults
    from healbench.taxonomy import Taxonomy
    from healbench.types import FailureRule

    given = list(paths)
    if bool(given) == (file is not None):
        raise UsageError(
            "name pictures or folders, or --samples FILE.jsonl, and not both; `healbench demo` needs neither"
        )
    if options.text is not None and not options.text.strip():
        raise UsageError("--text is empty; give a text, or leave it out to use the definition of the category")
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit}: must be 1 or more")
    known = Taxonomy.load(options.taxonomy)
    category = known.category(options.category).id if options.category else None
    found = samples_from_jsonl(file, known) if file else samples_from_paths(given)
    chosen = with_defaults(found[: options.limit], _as_utf8(options.text), category)
    settings = Settings(
        options.judge,
        options.taxonomy,
        options.questions,
        FailureRule(options.fail_below, options.fail_rating),
        options.base_url,
    )
    return chosen, scoring(settings, suggests=any(s.category is None and s.problem is None for s in chosen))


def _as_utf8(text: str | None) -> str | None:
    """An argument as its bytes say, also where the locale is not UTF-8."""
    if text is None:
        return None
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("--text is not UTF-8") from error


def _score(chosen: list[Sample], parts: Scoring, options: ScoreOptions, as_json: bool) -> int:
    from healbench.console import Progress, print_scores
    from healbench.judge import score_samples
    from healbench.runs import score_into

    rows: list[dict[str, Any]] = []
    with Progress(len(chosen)) as progress:

        def finished(row: dict[str, Any]) -> None:
            rows.append(row)
            progress.advance(row)
            if as_json:
                print_json(row)

        if options.out is None:
            for row in score_samples(chosen, parts):
                finished(row)
        else:
            score_into(options.out, chosen, parts, finished)
    page = _write_report(options.out) if options.out else None
    if not as_json:
        print_scores(rows, parts.judge.notice)
    for row in rows:
        if row["unscored"]:
            say(f"unscored: {row['id']}: {row['unscored']['code']}: {row['unscored']['message']}")
    if page:
        (say if as_json else print)(f"report: {page}")
    return 1 if any(row["unscored"] for row in rows) else 0


def _write_report(run_dir: Path) -> Path:
    from healbench.report import write_report
    from healbench.report.source import report_source

    return write_report(run_dir, report_source(run_dir))
