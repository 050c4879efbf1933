"""Means, intervals and rates. Every one names its n, and a number that is not finite is an error, never dropped.

Rows that share a prompt are not independent, so intervals resample whole clusters (all rows of a prompt) at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
RESAMPLES = 2000
_DRAWS_AT_ONCE = 2_000_000  # about 64 MB, however many clusters and resamples there are


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its interval.

    Attributes:
        low, high: None where fewer than two clusters were seen: nothing can be said about the spread.
        n: how many values went into the mean.
        clusters: how many independent groups they form.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Rate:
    """A share between 0 and 1 with its Wilson interval. `count` of `n` rows, in `clusters` independent groups."""

    count: int
    n: int
    clusters: int
    rate: float
    low: float
    high: float


def micro_mean(values: ArrayLike) -> float:
    """The mean over rows: each row counts once (the paper's "overall").

    >>> micro_mean([1, 2, 6])
    3.0
    """
    return math.fsum(_finite(values)) / len(_finite(values))


def macro_mean(values: ArrayLike, groups: Sequence[Hashable]) -> float:
    """The mean of the group means: each group counts once.

    >>> macro_mean([1, 2, 6], ["a", "a", "b"])
    3.75
    """
    checked = _finite(values)
    codes, n_groups = _codes(groups, len(checked))
    return math.fsum(micro_mean(checked[codes == g]) for g in range(n_groups)) / n_groups


def bootstrap_mean(
    values: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval:
    """The mean over rows with a percentile bootstrap interval over clusters.

    Each resample draws as many clusters as there are, with replacement, and divides the sum of their values by the
    number of their rows. The result does not depend on the order of the rows.

    Raises:
        ValueError: no values, a value that is not finite, or as many clusters as values are not given.
    """
    return bootstrap_means({"": values}, clusters, seed=seed, resamples=resamples, level=level)[""]


def bootstrap_means(
    columns: Mapping[str, ArrayLike],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> dict[str, Interval]:
    """`bootstrap_mean` of several columns of the same rows; they share the draws, so it costs little more than one."""
    checked = {name: _finite(values) for name, values in columns.items()}
    if not checked:
        return {}
    n = len(next(iter(checked.values())))
    codes, n_clusters = _codes(clusters, n)
    draws = _resampled_means(list(checked.values()), codes, n_clusters, seed, resamples)
    return {
        name: _interval(values, micro_mean(values), None if draws is None else draws[:, k], n_clusters, level)
        for k, (name, values) in enumerate(checked.items())
    }


def bootstrap_macro(
    columns: Mapping[str, ArrayLike],
    clusters: Sequence[Hashable],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> dict[str, Interval]:
    """The mean of the group means with an interval; clusters are resampled within each group.

    A group with a single cluster says nothing about its spread, so then there is no interval.
    """
    checked = {name: _finite(values) for name, values in columns.items()}
    if not checked:
        return {}
    n = len(next(iter(checked.values())))
    group_codes, n_groups = _codes(groups, n)
    total: NDArray[np.float64] | None = np.zeros((resamples, len(checked)))
    n_clusters = 0
    for g in range(n_groups):
        rows = np.flatnonzero(group_codes == g)
        codes, in_group = _codes([clusters[int(i)] for i in rows], len(rows))
        n_clusters += in_group
        draws = _resampled_means([v[rows] for v in checked.values()], codes, in_group, seed + g, resamples)
        total = None if total is None or draws is None else total + draws / n_groups
    return {
        name: _interval(values, macro_mean(values, groups), None if total is None else total[:, k], n_clusters, level)
        for k, (name, values) in enumerate(checked.items())
    }


def wilson(successes: float, n: float, *, level: float = LEVEL) -> tuple[float, float]:
    """The Wilson interval of a share; `successes` may be fractional where `n` is an effective number.

    >>> [round(x, 4) for x in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if not (math.isfinite(n) and math.isfinite(successes) and n > 0 and 0 <= successes <= n):
        raise ValueError(f"{successes} of {n} is not a share")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding must not push the bounds past the share itself at 0 and n.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return min(low, share), max(high, share)


def cluster_rate(hits: Sequence[bool], clusters: Sequence[Hashable], *, level: float = LEVEL) -> Rate:
    """The share of rows that hit, with a Wilson interval in which every cluster counts as one observation.

    That is exact for one row a prompt, and wide rather than narrow for several.
    """
    if not hits:
        raise ValueError("no rows")
    _, n_clusters = _codes(clusters, len(hits))
    count = sum(hits)
    rate = count / len(hits)
    low, high = wilson(n_clusters if count == len(hits) else rate * n_clusters, n_clusters, level=level)
    return Rate(count, len(hits), n_clusters, rate, min(low, rate), max(high, rate))


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"expected a list of at least one number, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"value {int(bad[0])} is {array[bad[0]]}; leave out unscored rows and say how many")
    return array


def _codes(labels: Sequence[Hashable], n: int) -> tuple[NDArray[np.intp], int]:
    """Labels as 0..k-1 in the order of their sorted text, which no reordering of the rows changes."""
    if len(labels) != n:
        raise ValueError(f"{n} values but {len(labels)} labels")
    order = {label: code for code, label in enumerate(sorted(set(labels), key=lambda x: (str(x), repr(x))))}
    return np.fromiter((order[label] for label in labels), dtype=np.intp, count=n), len(order)


def _resampled_means(
    columns: Sequence[NDArray[np.float64]], codes: NDArray[np.intp], n_clusters: int, seed: int, resamples: int
) -> NDArray[np.float64] | None:
    """Means of shape (resamples, columns), or None for fewer than two clusters."""
    if any(len(column) != len(codes) for column in columns):
        raise ValueError("columns of different lengths")
    if n_clusters < 2:
        return None
    counts = np.bincount(codes, minlength=n_clusters).astype(np.float64)
    sums = [_cluster_sums(column, codes) for column in columns]
    table = np.column_stack([*sums, counts])
    rng = np.random.default_rng(seed)
    step = max(1, _DRAWS_AT_ONCE // n_clusters)
    means = np.empty((resamples, len(columns)))
    for start in range(0, resamples, step):
        m = min(step, resamples - start)
        draws = rng.integers(0, n_clusters, size=(m, n_clusters)) + np.arange(m)[:, None] * n_clusters
        times = np.bincount(draws.ravel(), minlength=m * n_clusters).reshape(m, n_clusters)
        drawn = times.astype(np.float64) @ table
        means[start : start + m] = drawn[:, :-1] / drawn[:, -1:]
    return means


def _cluster_sums(column: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    order = np.lexsort((column, codes))  # a fixed order of addition: the same bits however the rows came
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.asarray(np.add.reduceat(column[order], starts))


def _interval(
    values: NDArray[np.float64], mean: float, draws: NDArray[np.float64] | None, n_clusters: int, level: float
) -> Interval:
    smallest, largest = float(values.min()), float(values.max())
    mean = min(max(mean, smallest), largest)
    if draws is None:
        return Interval(mean, None, None, len(values), n_clusters)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    # Rounding in the sums must not leave the range of the values (ties: all equal values give a point).
    return Interval(
        mean, min(max(float(low), smallest), largest), min(max(float(high), smallest), largest), len(values), n_clusters
    )
