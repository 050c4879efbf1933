"""Samples → scores, in memory or as a run folder with its report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from healbench import __version__
from healbench.judge import Scoring, load_judge, score_samples
from healbench.plugins import load_adapter
from healbench.questions import Questions
from healbench.samples import sample_row, samples_from_paths, with_defaults
from healbench.store import Row, RunFolder
from healbench.suggest import Suggester
from healbench.taxonomy import Taxonomy
from healbench.types import FailureRule, Sample

OnRow = Callable[[Row], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the numbers of a run besides its samples.

    Attributes:
        judge: by name (DESIGN "Judges by name").
        taxonomy: a file that takes the place of the embedded taxonomy.
        questions: a folder that takes the place of the embedded questions.
        rule: when a dimension fails.
        base_url: of the server, for a chat model as judge.
    """

    judge: str = "offline"
    taxonomy: Path | None = None
    questions: Path | None = None
    rule: FailureRule = field(default_factory=FailureRule)
    base_url: str | None = None


def scoring(settings: Settings, *, suggests: bool) -> Scoring:
    """Loads what the settings name.

    Args:
        suggests: whether there are samples without a category.
    """
    taxonomy = Taxonomy.load(settings.taxonomy)
    suggester = Suggester(taxonomy, load_adapter("embedder", "offline")) if suggests else None
    judge = load_judge(settings.judge, base_url=settings.base_url)
    return Scoring(judge, taxonomy, Questions(settings.questions), suggester, settings.rule)


def score(
    images: str | Path | Iterable[str | Path],
    *,
    text: str | None = None,
    category: str | None = None,
    settings: Settings | None = None,
) -> list[Row]:
    """Scores pictures and folders of pictures; the short way in from Python.

    Args:
        text: what the pictures are judged against; by default the definition of the category.
        category: `coarse/fine`; by default a suggestion from each picture.

    Returns:
        One row a picture (contract "Score row"); rows that could not be scored say why under "unscored".

    Raises:
        UsageError: an unknown category, a folder without pictures, the same picture twice.
    """
    settings = settings or Settings()
    paths = [images] if isinstance(images, str | Path) else list(images)
    samples = with_defaults(samples_from_paths([Path(p) for p in paths]), text, category)
    parts = scoring(settings, suggests=any(s.category is None for s in samples))
    if category is not None:
        parts.taxonomy.category(category)
    return list(score_samples(samples, parts))


def score_into(folder: Path, samples: Sequence[Sample], parts: Scoring, on_row: OnRow) -> Row:
    """Scores into a run folder, going on where an earlier start stopped.

    Returns:
        The run's `run.json`.

    Raises:
        RunFolderError: see `RunFolder`.
    """
    config = {
        "judge": parts.judge.name,
        "judge_notice": parts.judge.notice,
        "judge_params": dict(parts.judge.params),
        "taxonomy": _absolute(parts.taxonomy.path),
        "questions": _absolute(parts.questions.path),
        "failure_rule": {"mean_below": parts.rule.mean_below, "rating_at_most": parts.rule.rating_at_most},
    }
    digests = {"judge": parts.judge.digest, "taxonomy": parts.taxonomy.digest}
    with RunFolder(folder, "score", config, digests=digests, versions=versions()) as run:
        run.write_samples(sample_row(s) for s in samples)
        done = {name: list(rows) for name, rows in run.history.items()}
        counts = {"total": len(samples), "scored": 0, "unscored": 0, "cached": 0}
        for row in score_samples(samples, parts, done, run.keep_reply):
            run.append(row)
            counts["unscored" if row["unscored"] else "scored"] += 1
            counts["cached"] += any(row is earlier for earlier in done.get(row["id"], ()))
            on_row(row)
        return run.finish(counts)


def versions() -> dict[str, str]:
    """Of this package and of what its numbers are calculated with."""
    names = ("numpy", "scipy", "pillow", "onnxruntime", "tokenizers")
    return {"healbench": __version__, "python": sys.version.split()[0], **{n: version(n) for n in names}}


def _absolute(path: Path | None) -> str:
    return str(path.resolve()) if path else "embedded"
