import csv
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import healbench
from healbench.types import DIMENSIONS, FailureRule, HealScore

TABLE4 = Path(__file__).parent / "data" / "table4_healscore.csv"

ratings = st.tuples(*[st.integers(1, 10)] * 3)


def of_ratings(alignment: tuple[int, ...], heal: tuple[int, ...], quality: tuple[int, ...]) -> HealScore:
    nine: Any = dict(zip(DIMENSIONS, (alignment, heal, quality), strict=True))
    return HealScore(sum(alignment) / 3, sum(heal) / 3, sum(quality) / 3, ratings=nine)


def test_every_row_of_the_papers_table_4_is_the_1_2_1_sum() -> None:
    rows = list(csv.DictReader(TABLE4.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 23
    for row in rows:
        score = HealScore(float(row["alignment"]), float(row["heal"]), float(row["quality"]))
        assert score.total == pytest.approx(float(row["overall"]), abs=0.0021), row["model"]


@pytest.mark.parametrize(
    ("scores", "failures"),
    [
        ((5.0, 5.0, 5.0), ()),
        ((4.99, 5.0, 5.0), ("alignment",)),
        ((5.0, 4.99, 5.0), ("heal",)),
        ((1.0, 1.0, 1.0), ("alignment", "heal", "quality")),
    ],
)
def test_a_dimension_fails_below_five(scores: tuple[float, float, float], failures: tuple[str, ...]) -> None:
    score = HealScore(*scores)
    assert score.failures == failures
    assert score.healing is (not failures)


def test_one_rating_of_three_fails_a_dimension_with_a_good_mean() -> None:
    score = of_ratings((8, 8, 8), (10, 10, 3), (8, 8, 4))
    assert score.failures == ("heal",)


def test_the_rule_is_a_setting() -> None:
    assert HealScore(6, 6, 6, rule=FailureRule(mean_below=6.5)).failures == DIMENSIONS
    nine = dict.fromkeys(DIMENSIONS, (4, 6, 8))
    assert HealScore(6, 6, 6, ratings=nine, rule=FailureRule(rating_at_most=4)).failures == DIMENSIONS


@given(ratings, ratings, ratings)
def test_totals_stay_between_4_and_40_and_agree_with_the_ratings(
    alignment: tuple[int, ...], heal: tuple[int, ...], quality: tuple[int, ...]
) -> None:
    score = of_ratings(alignment, heal, quality)
    assert 4 <= score.total <= 40
    assert score.total * 3 == pytest.approx(sum(alignment) + 2 * sum(heal) + sum(quality))
    for dimension, three in zip(DIMENSIONS, (alignment, heal, quality), strict=True):
        assert (dimension in score.failures) is (sum(three) < 15 or min(three) <= 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.99, 10.01, -3.0])
def test_no_score_is_made_of_what_is_no_rating(bad: float) -> None:
    with pytest.raises(ValueError, match="heal is"):
        HealScore(5, bad, 5)


def test_ratings_must_be_nine_in_range_and_agree_with_the_means() -> None:
    nine = dict.fromkeys(DIMENSIONS, (5, 5, 5))
    with pytest.raises(ValueError, match="not the mean of its ratings"):
        HealScore(5, 6, 5, ratings=nine)
    with pytest.raises(ValueError, match="not three from 1 to 10"):
        HealScore(5, 5, 5, ratings={**nine, "heal": (0, 5, 10)})


def test_the_top_level_exports_are_there_and_pinned() -> None:
    assert healbench.__all__ == ["HealScore", "Taxonomy", "load_judge", "score"]
    for name in healbench.__all__:
        assert getattr(healbench, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        healbench.nothing  # noqa: B018
