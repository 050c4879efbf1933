"""Run folder → all that its report shows."""

from __future__ import annotations

from pathlib import Path

from healbench.errors import RunFolderError, UsageError
from healbench.questions import Questions
from healbench.report.page import ReportInput
from healbench.store import latest_rows, read_rows, read_run
from healbench.taxonomy import Taxonomy
from healbench.types import FailureRule


def report_source(run_dir: Path) -> ReportInput:
    """Reads a run folder, also one whose run is not finished.

    Raises:
        RunFolderError: it is no run folder, holds no row yet, or is damaged.
        UsageError: the taxonomy or the questions of the run are no longer where they were.
    """
    run = read_run(run_dir)
    samples = list(read_rows(run_dir / "samples.jsonl"))
    latest = latest_rows(read_rows(run_dir / "judgements.jsonl"))
    rows = [latest[s["id"]] for s in samples if s["id"] in latest]
    if not rows:
        raise RunFolderError(f"{run_dir}: holds no row yet; let its run go on first")
    taxonomy = Taxonomy.load(_path(run["config"]["taxonomy"]))
    if taxonomy.digest != run["digests"]["taxonomy"]:
        raise UsageError(
            f"{taxonomy.path or 'the embedded taxonomy'}: has changed since {run_dir} was made; restore it"
        )
    questions = Questions(_path(run["config"]["questions"]))
    used = {row["category"] for row in rows if row["category"] in taxonomy.categories and row["question_digest"]}
    rule = run["config"]["failure_rule"]
    try:
        sets = {name: questions.of(taxonomy.categories[name]) for name in sorted(used)}
    except UsageError as error:
        raise UsageError(f"{error} (the questions of {run_dir} are gone or changed)") from error
    return ReportInput(
        rows=rows,
        images={s["id"]: Path(s["image"]) for s in samples},
        run=run,
        classes=list(taxonomy.classes.values()),
        categories=taxonomy.categories,
        questions=sets,
        notice=run["config"]["judge_notice"],
        rule=FailureRule(rule["mean_below"], rule["rating_at_most"]),
        samples=samples,
        title="HealBench report",
    )


def _path(setting: str) -> Path | None:
    return None if setting == "embedded" else Path(setting)
