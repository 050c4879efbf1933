"""How the questions do on scored pictures: spread, redundancy, halo, ceiling and floor, and a CSV to decide in.

Paper, "Evaluation Criteria and HealScore": "we manually inspect sampled scored results and iteratively refine the
question set". The paper gives no thresholds; those below are common in item analysis and are ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from healbench.errors import RunFolderError, UsageError
from healbench.questions import ANCHORED, Questions
from healbench.review_csv import ReviewRow
from healbench.store import Row, latest_rows, read_rows, read_run
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Dimension

FEW = 20
"""Fewer pictures of a pair than this say little about its questions (a pilot takes about 20)."""
NO_SPREAD = 0.5
"""A standard deviation below half a point: the question hardly tells pictures apart."""
CEILING, FLOOR = 9, 2
EXTREME_SHARE = 0.5
"""More than half of the ratings at 9-10, or at 1-2: the anchors are too easy or too hard."""
REDUNDANT = 0.95
"""Mean correlation with the other two of its dimension from which a question adds nothing to them."""
HALO = 0.8
"""Correlation with a question of another dimension from which a judge may be rating one overall impression."""
MIN_FOR_R = 3
"""Two points always lie on a line, so a correlation of fewer than three is not given."""
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """One question over the pictures of its pair. None where a number is not defined.

    Attributes:
        digest: of the question set that was asked.
        sd: sample standard deviation (n - 1).
        ceiling, floor: shares of ratings 9-10 and 1-2.
        within_r: mean Pearson r with those of the other two questions of its dimension that vary at all.
        cross_r: largest |r| with any question of another dimension.
        flags: few, no spread, ceiling, floor, redundant, halo.
        examples: pictures whose rating lies farthest from the mean, with the rating.
    """

    category: str
    dimension: Dimension
    k: int
    digest: str
    n: int
    mean: float
    sd: float | None
    ceiling: float
    floor: float
    within_r: float | None
    cross_r: float | None
    flags: tuple[str, ...]
    examples: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.category} {self.dimension}.{self.k}"

    @property
    def badness(self) -> tuple[bool, int, float, str]:
        """Sorts the worst first: by its flags, then by its correlations; those on too few pictures come last."""
        few = "few" in self.flags
        return (few, few - len(self.flags), -max(self.within_r or 0.0, self.cross_r or 0.0), self.id)


@dataclass(frozen=True, slots=True)
class Review:
    """The statistics, worst first.

    Attributes:
        runs: `run.json` of each run.
        left_out: how many rows could not take part, by reason.
    """

    items: tuple[ItemStatistics, ...]
    runs: tuple[Row, ...]
    left_out: Mapping[str, int]


def review_rows(run_dirs: Sequence[Path], *, sample: int | None = None, seed: int = 0) -> Review:
    """Statistics of every question over the scored rows of run folders.

    Args:
        sample: at most so many pictures of a pair, drawn at random; the same seed draws the same pictures.

    Raises:
        UsageError: no rows with nine ratings, runs of different judges or taxonomies, or a folder named twice.
        RunFolderError: not a run folder.
    """
    if len({path.resolve() for path in run_dirs}) < len(run_dirs):
        raise UsageError("a run folder is named twice; its rows would count twice")
    if sample is not None and sample < 1:
        raise UsageError(f"--sample {sample}: must be 1 or more")
    runs = [read_run(path) for path in run_dirs]
    _one_judge(run_dirs, runs)
    groups: dict[tuple[str, str], list[tuple[str, Row]]] = {}
    left_out = {"unscored": 0, "without nine ratings": 0}
    for path in run_dirs:
        for row in latest_rows(read_rows(path / "judgements.jsonl")).values():
            if row["unscored"]:
                left_out["unscored"] += 1
            elif not row["ratings"]:
                left_out["without nine ratings"] += 1
            else:
                name = row["id"] if len(run_dirs) == 1 else f"{path.name}:{row['id']}"
                groups.setdefault((row["category"], row["question_digest"]), []).append((name, row))
    if not groups:
        raise UsageError(f"no row with nine ratings ({left_out}); dimension judges say nothing of single questions")
    items: list[ItemStatistics] = []
    for (category, digest), rows in sorted(groups.items()):
        drawn = sorted(rows, key=lambda named: named[0])
        if sample is not None and sample < len(drawn):
            drawn = random.Random(f"{seed} {category}").sample(drawn, sample)
        items += _items(category, digest, drawn)
    return Review(tuple(sorted(items, key=lambda item: item.badness)), tuple(runs), left_out)


def review_table(review: Review) -> list[ReviewRow]:
    """The review CSV: for every question its text and four anchors, to be decided on.

    Raises:
        UsageError: the questions that were asked are no longer those of the run's question folder.
    """
    taxonomy, questions = _asked(review.runs[0])
    rows: list[ReviewRow] = []
    for item in review.items:
        nine = questions.of(taxonomy.category(item.category))
        if nine.digest != item.digest:
            raise UsageError(
                f"{item.category}: {questions.folder} has other questions now than those that were rated; "
                "score again with the present ones, or review before changing them"
            )
        question = nine.of(item.dimension)[item.k]
        rows.append(ReviewRow("question", item.id, "text", question.text, reason=_reason(item)))
        rows += (ReviewRow("question", item.id, f"anchor.{a}", question.anchors[a]) for a in ANCHORED)
    return rows


def _items(category: str, digest: str, rows: Sequence[tuple[str, Row]]) -> Iterator[ItemStatistics]:
    names = [name for name, _ in rows]
    columns = {
        (d, k): np.array([row["ratings"][d][k] for _, row in rows], dtype=np.float64)
        for d in DIMENSIONS
        for k in range(3)
    }
    for (dimension, k), ratings in columns.items():
        within = [_pearson(ratings, other) for (d, j), other in columns.items() if d == dimension and j != k]
        cross = [_pearson(ratings, other) for (d, _), other in columns.items() if d != dimension]
        known_within = [r for r in within if r is not None]
        known_cross = [abs(r) for r in cross if r is not None]
        item = ItemStatistics(
            category=category,
            dimension=dimension,
            k=k,
            digest=digest,
            n=len(ratings),
            mean=float(ratings.mean()),
            sd=float(ratings.std(ddof=1)) if len(ratings) > 1 else None,
            ceiling=float((ratings >= CEILING).mean()),
            floor=float((ratings <= FLOOR).mean()),
            within_r=sum(known_within) / len(known_within) if known_within else None,
            cross_r=max(known_cross) if known_cross else None,
            flags=(),
            examples=_extremes(names, ratings),
        )
        yield _flagged(item)


def _pearson(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """None where it is not defined: too few pictures, or one of the two never varies."""
    if len(one) < MIN_FOR_R or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    a, b = one - one.mean(), other - other.mean()
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


_FLAGS: Mapping[str, Callable[[ItemStatistics], bool]] = {
    "few": lambda item: item.n < FEW,
    "no spread": lambda item: item.sd is not None and item.sd < NO_SPREAD,
    "ceiling": lambda item: item.ceiling > EXTREME_SHARE,
    "floor": lambda item: item.floor > EXTREME_SHARE,
    "redundant": lambda item: item.within_r is not None and item.within_r > REDUNDANT,
    "halo": lambda item: item.cross_r is not None and item.cross_r > HALO,
}


def _flagged(item: ItemStatistics) -> ItemStatistics:
    return replace(item, flags=tuple(flag for flag, holds in _FLAGS.items() if holds(item)))


def _extremes(names: Sequence[str], ratings: NDArray[np.float64]) -> tuple[str, ...]:
    distance = np.abs(ratings - ratings.mean())
    farthest = sorted(range(len(names)), key=lambda i: (-distance[i], names[i]))[:EXAMPLES]
    return tuple(f"{names[i]} ({ratings[i]:.0f})" for i in farthest)


def _reason(item: ItemStatistics) -> str:
    def shown(value: float | None) -> str:
        return "undefined" if value is None else f"{value:.2f}"

    return (
        f"n={item.n} mean={item.mean:.2f} sd={shown(item.sd)} ceiling={item.ceiling:.0%} floor={item.floor:.0%} "
        f"within r={shown(item.within_r)} cross r={shown(item.cross_r)}; flags: {', '.join(item.flags) or 'none'}; "
        f"see {', '.join(item.examples)}"
    )


def _one_judge(run_dirs: Sequence[Path], runs: Sequence[Row]) -> None:
    """Ratings of two judges, or of two taxonomies, share no scale: pooled, they show a spread that neither has."""
    first = runs[0]
    for path, run in zip(run_dirs, runs, strict=True):
        try:
            for part, names in (("config", ("judge", "taxonomy", "questions")), ("digests", ("judge", "taxonomy"))):
                for name in names:
                    if run[part][name] != first[part][name]:
                        raise UsageError(
                            f"{path}: another {name.removesuffix('s')} than in {run_dirs[0]}; review such runs apart"
                        )
        except (KeyError, TypeError) as error:
            raise RunFolderError(f"{path / 'run.json'}: does not say its {error}; was it edited?") from error


def _asked(run: Row) -> tuple[Taxonomy, Questions]:
    taxonomy, questions = (run["config"][name] for name in ("taxonomy", "questions"))
    return (
        Taxonomy.load(None if taxonomy == "embedded" else Path(taxonomy)),
        Questions(None if questions == "embedded" else Path(questions)),
    )
