"""The command line: one verb a stage, in the paper's order; each a short function over the package.

Results go to stdout, everything else to stderr. Exit 0: all done; 1: some rows are unscored; 2: usage or set-up.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter, config

from healbench import __version__
from healbench.errors import HealBenchError, UsageError

if TYPE_CHECKING:
    from healbench.judge import Scoring
    from healbench.types import Sample

# Each command imports what it needs, so that `healbench --help` costs no more than its own text.
# ruff: noqa: PLC0415

app = App(
    name="healbench",
    help="Measures whether a picture comforts the person who looks at it, and says why it fails.",
    version=__version__,
    config=[
        config.Env("HEALBENCH_", command=True),
        config.Toml("healbench.toml", must_exist=False, search_parents=False),
    ],
    help_format="plaintext",
    help_epilogue="Start with `healbench demo`, or `healbench score photo.jpg`.",
    sort_key=None,
)
taxonomy_app = App(name="taxonomy", help="Show the categories, or check a file of your own.", sort_key=1)
app.command(taxonomy_app)


AsJson = Annotated[bool, Parameter("--json", negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class ScoreOptions:
    """How to score.

    Attributes:
        judge: by name; "offline" is embedded.
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
    category: str | None = None
    text: str | None = None
    out: Path | None = None
    limit: int | None = None
    taxonomy: Path | None = None
    questions: Path | None = None
    fail_below: float = 5.0
    fail_rating: int = 3


@taxonomy_app.default
def show_taxonomy(category: str | None = None, *, taxonomy: Path | None = None, as_json: AsJson = False) -> int:
    """Show all categories, or one in full.

    Args:
        category: `coarse/fine`, or `fine` where that is unique.
        taxonomy: file that takes the place of the embedded one.
        as_json: machine output.
    """
    from healbench.console import print_category, print_taxonomy
    from healbench.taxonomy import Taxonomy

    known = Taxonomy.load(taxonomy)
    if category is not None:
        found = known.category(category)
        _print_json(dataclasses.asdict(found) | {"id": found.id}) if as_json else print_category(found, known)
    elif as_json:
        pairs = [dataclasses.asdict(c) | {"id": c.id} for c in known.categories.values()]
        classes = [dataclasses.asdict(c) for c in known.classes.values()]
        _print_json({"name": known.name, "provenance": known.provenance, "classes": classes, "categories": pairs})
    else:
        print_taxonomy(known)
    return 0


@taxonomy_app.command(name="check")
def check_taxonomy(file: Path) -> int:
    """Check a taxonomy file of your own; mistakes come with their lines.

    Args:
        file: YAML of the shape of the embedded taxonomy.
    """
    from healbench.taxonomy import Taxonomy, check_taxonomy

    problems = check_taxonomy(file)
    for problem in problems:
        print(f"{file}:{problem.line}: {problem.message}")
    if problems:
        _say(f"{len(problems)} to mend in {file}")
        return 2
    known = Taxonomy.load(file)
    coarse = {c.coarse for c in known.categories.values()}
    print(
        f"{file}: {len(known.classes)} classes, {len(coarse)} coarse categories, {len(known.categories)} pairs, "
        f"{len(known.valid)} of them valid"
    )
    return 0


@app.command(sort_key=2)
def questions(
    category: str, *, taxonomy: Path | None = None, folder: Path | None = None, as_json: AsJson = False
) -> int:
    """Print the nine questions of a category.

    Args:
        category: `coarse/fine`, or `fine` where that is unique.
        taxonomy: file that takes the place of the embedded taxonomy.
        folder: folder that takes the place of the embedded questions.
        as_json: machine output.
    """
    from healbench.console import print_questions
    from healbench.questions import Questions
    from healbench.taxonomy import Taxonomy

    found = Taxonomy.load(taxonomy).category(category)
    nine = Questions(folder).of(found)
    _print_json(dataclasses.asdict(nine) | {"category": found.id}) if as_json else print_questions(nine)
    return 0


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


def main() -> None:
    """Entry point of the `healbench` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code; errors that are the user's are one message, no traceback."""
    try:
        return int(app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0)
    except CycloptsError as error:
        _say(f"{error}\nSee `healbench --help`.")
    except HealBenchError as error:
        _say(f"error: {error}")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; Python would complain once more at exit
    except KeyboardInterrupt:
        _say("stopped; finished rows are kept: the same command with the same --out goes on")
        return 130
    return 2


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
    chosen = with_defaults(found[: options.limit], options.text, category)
    settings = Settings(
        options.judge, options.taxonomy, options.questions, FailureRule(options.fail_below, options.fail_rating)
    )
    return chosen, scoring(settings, suggests=any(s.category is None and s.problem is None for s in chosen))


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
                _print_json(row)

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
            _say(f"unscored: {row['id']}: {row['unscored']['code']}: {row['unscored']['message']}")
    if page:
        (_say if as_json else print)(f"report: {page}")
    return 1 if any(row["unscored"] for row in rows) else 0


def _write_report(run_dir: Path) -> Path:
    from healbench.report import write_report
    from healbench.report.source import report_source

    return write_report(run_dir, report_source(run_dir))


def _print_json(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=False), flush=True)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
