"""Intervals against scipy, and what must hold for any data."""

from __future__ import annotations

import math
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from healbench.stats import (
    bootstrap_macro,
    bootstrap_mean,
    bootstrap_means,
    cluster_rate,
    macro_mean,
    micro_mean,
    wilson,
)

SCORES = st.floats(min_value=1, max_value=10, allow_nan=False, width=32)
CLUSTERED = st.lists(st.tuples(SCORES, st.integers(0, 5)), min_size=1, max_size=30)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_interval_agrees_with_scipy_for_one_value_a_cluster(n: int) -> None:
    values = np.random.default_rng(n).normal(6, 2, n)
    ours = bootstrap_mean(values, range(n), resamples=20_000)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean())
    assert (ours.n, ours.clusters) == (n, n)
    tolerance = 0.03 * (theirs.high - theirs.low)
    assert ours.low == pytest.approx(theirs.low, abs=tolerance)
    assert ours.high == pytest.approx(theirs.high, abs=tolerance)


def test_clusters_of_equal_size_are_a_bootstrap_of_their_means() -> None:
    values = np.random.default_rng(3).normal(6, 2, 120).reshape(30, 4)
    values += np.random.default_rng(4).normal(0, 3, (30, 1))
    ours = bootstrap_mean(values.ravel(), np.repeat(np.arange(30), 4).tolist(), resamples=20_000)
    theirs = scipy_stats.bootstrap(
        (values.mean(axis=1),), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.clusters == 30
    assert ours.n == 120
    assert ours.low == pytest.approx(theirs.low, abs=0.06)
    assert ours.high == pytest.approx(theirs.high, abs=0.06)
    alone = bootstrap_mean(values.ravel(), range(120))
    assert alone.low is not None and ours.low is not None
    assert ours.low < alone.low, "ignoring that rows share a prompt makes the interval too narrow"


def test_unequal_clusters_weigh_by_their_rows() -> None:
    interval = bootstrap_mean([1, 1, 1, 9], ["a", "a", "a", "b"])
    assert (interval.mean, interval.low, interval.high) == (3.0, 1.0, 9.0)


@pytest.mark.parametrize("values", [[4.0], [4.0, 7.0]])
def test_one_cluster_has_a_mean_and_no_interval(values: list[float]) -> None:
    interval = bootstrap_mean(values, ["same prompt"] * len(values))
    assert interval.mean == pytest.approx(sum(values) / len(values))
    assert interval.low is interval.high is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_an_error(bad: float) -> None:
    for call in (
        lambda: bootstrap_mean([1, bad], "ab"),
        lambda: bootstrap_macro({"x": [1, bad]}, "ab", "ab"),
        lambda: micro_mean([1, bad]),
        lambda: macro_mean([1, bad], "ab"),
        lambda: wilson(bad, 3),
        lambda: wilson(1, bad),
    ):
        with pytest.raises(ValueError, match=r"value 1 is|is not a share"):
            call()


def test_nothing_and_mismatches_are_errors() -> None:
    with pytest.raises(ValueError, match="at least one number"):
        bootstrap_mean([], [])
    with pytest.raises(ValueError, match="2 values but 1 labels"):
        bootstrap_mean([1, 2], ["a"])
    with pytest.raises(ValueError, match="different lengths"):
        bootstrap_means({"x": [1, 2], "y": [1]}, "ab")
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="no rows"):
        cluster_rate([], [])


@given(CLUSTERED, st.randoms(use_true_random=False))
def test_interval_lies_within_the_values_and_ignores_their_order(
    rows: list[tuple[float, int]], shuffler: random.Random
) -> None:
    interval = bootstrap_mean([v for v, _ in rows], [c for _, c in rows], resamples=200)
    smallest, largest = min(v for v, _ in rows), max(v for v, _ in rows)
    assert smallest <= interval.mean <= largest
    if len({c for _, c in rows}) < 2:
        assert interval.low is None and interval.high is None
    else:
        assert interval.low is not None and interval.high is not None
        assert smallest <= interval.low <= interval.high <= largest
    shuffler.shuffle(rows)
    assert bootstrap_mean([v for v, _ in rows], [c for _, c in rows], resamples=200) == interval


@given(SCORES, st.integers(2, 30))
def test_ties_are_a_point(value: float, n: int) -> None:
    interval = bootstrap_mean([value] * n, range(n), resamples=50)
    assert (interval.low, interval.mean, interval.high) == (value, value, value)


def test_columns_share_the_draws_and_the_seed_decides() -> None:
    x, y = np.random.default_rng(0).normal(6, 2, (2, 50))
    together = bootstrap_means({"x": x, "y": y}, range(50))
    assert together["x"].low == pytest.approx(bootstrap_mean(x, range(50)).low, abs=1e-12)
    assert together["y"].high == pytest.approx(bootstrap_mean(y, range(50)).high, abs=1e-12)
    assert bootstrap_mean(x, range(50), seed=1) != bootstrap_mean(x, range(50), seed=2)


def test_macro_counts_each_group_once() -> None:
    values, groups = [2.0, 4.0, 6.0, 6.0, 6.0, 9.0], ["a", "a", "b", "b", "b", "b"]
    assert micro_mean(values) == pytest.approx(5.5)
    assert macro_mean(values, groups) == pytest.approx((3 + 6.75) / 2)
    interval = bootstrap_macro({"x": values}, range(6), groups)["x"]
    assert interval.mean == pytest.approx(4.875)
    assert (interval.n, interval.clusters) == (6, 6)
    assert interval.low is not None and interval.high is not None
    assert 4 <= interval.low < 4.875 < interval.high <= 6.5
    lonely = bootstrap_macro({"x": [*values, 1.0]}, range(7), [*groups, "c"])["x"]
    assert lonely.mean == pytest.approx((3 + 6.75 + 1) / 3)
    assert lonely.low is None, "a group of one says nothing about its spread"


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 1])
def test_wilson_agrees_with_scipy(n: int, share: float) -> None:
    successes = round(share * n)
    theirs = scipy_stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_share_and_mirrors(pair: tuple[int, int]) -> None:
    successes, n = pair
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    mirrored = wilson(n - successes, n)
    assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]))


def test_rows_of_one_prompt_make_a_rate_no_surer() -> None:
    alone = cluster_rate([True, False, False, False], range(4))
    assert (alone.count, alone.n, alone.clusters, alone.rate) == (1, 4, 4, 0.25)
    assert (alone.low, alone.high) == pytest.approx(wilson(1, 4))
    five_times = cluster_rate([True, False, False, False] * 5, [0, 1, 2, 3] * 5)
    assert (five_times.low, five_times.high) == pytest.approx((alone.low, alone.high))
    assert (five_times.n, five_times.clusters) == (20, 4)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=20))
def test_cluster_rate_stays_a_share(rows: list[tuple[bool, int]]) -> None:
    rate = cluster_rate([hit for hit, _ in rows], [cluster for _, cluster in rows])
    assert 0 <= rate.low <= rate.rate <= rate.high <= 1


def test_a_whole_benchmark_fits_in_memory() -> None:
    n = 15_330
    values = np.random.default_rng(0).uniform(1, 10, n)
    tracemalloc.start()
    interval = bootstrap_mean(values, range(n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert interval.low is not None and interval.high is not None
    half = 1.96 * values.std() / math.sqrt(n)
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.1)
