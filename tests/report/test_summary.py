"""The report's numbers against numbers worked out by hand."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest

from healbench.report.summary import UNSCORED_LABELS, Summary, cluster_of, summarize
from healbench.types import Dimension, UnscoredCode
from tests.report.runs import TAXONOMY, Row, scored, synthetic, unscored

FOREST = "green_space/forest_canopy_path"
LAKE = next(c.id for c in TAXONOMY.valid if c.coarse == "blue_space")
CABIN = next(c.id for c in TAXONOMY.valid if c.heal_class == "shelter_and_safety")
IMMERSION = next(c.id for c in TAXONOMY.valid if c.heal_class == "atmospheric_immersion" and not c.residual)
OTHERS = next(c.id for c in TAXONOMY.valid if c.residual)

GOOD: dict[Dimension, tuple[int, int, int]] = {"alignment": (8, 8, 8), "heal": (7, 7, 7), "quality": (9, 9, 9)}
LOW_HEAL: dict[Dimension, tuple[int, int, int]] = {"alignment": (6, 6, 6), "heal": (2, 4, 3), "quality": (5, 5, 5)}
ONE_LOW: dict[Dimension, tuple[int, int, int]] = {"alignment": (9, 9, 3), "heal": (5, 5, 5), "quality": (7, 7, 7)}


def summary(rows: list[Row]) -> Summary:
    return summarize(rows, list(TAXONOMY.classes.values()), TAXONOMY.categories)


@pytest.fixture
def small() -> list[Row]:
    return [
        scored("a", FOREST, GOOD),
        scored("b", LAKE, LOW_HEAL),
        scored("c", CABIN, ONE_LOW),
        unscored("d", CABIN, "refused", "I would rather not"),
    ]


def test_means_rates_and_coverage(small: list[Row]) -> None:
    overall = summary(small).overall
    assert (overall.rows, overall.scored) == (4, 3)
    means = {name: interval.mean for name, interval in overall.means.items() if interval}
    assert means == pytest.approx({"alignment": 7, "heal": 5, "quality": 7, "total": (31 + 17 + 24) / 3})
    rates = {name: (rate.count, rate.n) for name, rate in overall.fails.items() if rate}
    assert rates == {"alignment": (1, 3), "heal": (1, 3), "quality": (0, 3)}
    assert overall.healing is not None
    assert (overall.healing.count, overall.healing.n) == (1, 3)


def test_macro_means_weigh_classes_and_micro_means_rows(small: list[Row]) -> None:
    made = summary(small)
    assert made.macro_classes == 2
    assert made.macro["total"] is not None
    assert made.macro["total"].mean == pytest.approx(((31 + 17) / 2 + 24) / 2)
    assert made.macro["total"].low is None, "one class has a single row"


def test_classes_and_categories_stand_in_the_order_of_the_taxonomy(small: list[Row]) -> None:
    made = summary(list(reversed(small)))
    assert [c.group.id for c in made.classes] == ["natural_restoration", "shelter_and_safety"]
    assert [c.group.id for c in made.categories] == [FOREST, LAKE, CABIN]
    assert [(c.group.rows, c.group.scored) for c in made.categories] == [(1, 1), (1, 1), (2, 1)]


def test_a_class_is_shown_with_and_without_the_residual_category() -> None:
    made = summary([scored("a", IMMERSION, GOOD), scored("b", OTHERS, LOW_HEAL)])
    (entry,) = made.classes
    assert entry.without_residual is not None
    assert entry.group.means["total"] is not None and entry.without_residual.means["total"] is not None
    assert entry.group.means["total"].mean == pytest.approx(24)
    assert entry.without_residual.means["total"].mean == pytest.approx(31)
    assert summary([scored("a", IMMERSION, GOOD)]).classes[0].without_residual is None


def test_unscored_rows_are_listed_and_in_no_mean(small: list[Row]) -> None:
    more = [*small, *(unscored(f"x{k}", FOREST, "timeout", "no reply") for k in range(2))]
    made = summary(more)
    assert made.overall.means == summary(small).overall.means
    assert [(g.code, len(g.rows)) for g in made.unscored] == [("timeout", 2), ("refused", 1)]
    assert made.unscored[1].rows == (("d", "I would rather not"),)
    assert set(UNSCORED_LABELS) == set(get_args(UnscoredCode))


@pytest.mark.parametrize("rows", [[], [unscored("a", FOREST, "refused", "no")]])
def test_without_scores_there_are_no_numbers(rows: list[Row]) -> None:
    made = summary(rows)
    assert made.overall.scored == 0
    assert set(made.overall.means.values()) == {None}
    assert set(made.macro.values()) == {None}
    assert made.overall.healing is None


def test_rows_of_one_prompt_are_one_cluster() -> None:
    rows = [scored(f"a__{k}", FOREST, GOOD, text="the same prompt") for k in range(4)]
    mean = summary(rows).overall.means["total"]
    assert mean is not None
    assert (mean.n, mean.clusters, mean.low) == (4, 1, None)
    own = scored("b", FOREST, GOOD, text="a definition", text_source="category")
    assert cluster_of(own) == ("id", "b"), "nobody gave this text, so it is no prompt"


def test_dimension_rows_count_like_item_rows() -> None:
    made = summary([scored("a", FOREST, scores={"alignment": 6.5, "heal": 4.5, "quality": 7.25})])
    assert made.granularities == ("dimension",)
    assert made.overall.means["total"] is not None and made.overall.fails["heal"] is not None
    assert made.overall.means["total"].mean == pytest.approx(22.75)
    assert made.overall.fails["heal"].rate == 1


def test_sources_and_judges_are_counted() -> None:
    rows = [
        scored("a", FOREST, GOOD, category_source="suggested"),
        scored("b", FOREST, GOOD, text_source="category", judge="other", judge_digest="b"),
    ]
    made = summary(rows)
    assert made.category_sources == {"given": 1, "suggested": 1}
    assert made.text_sources == {"category": 1, "given": 1}
    assert made.judges == (("offline", "a" * 64), ("other", "b"))


def test_categories_that_the_taxonomy_does_not_know() -> None:
    made = summary([scored("a", "mine/own", GOOD, heal_class="mine"), unscored("b", "", "missing", "no file")])
    assert [(c.group.id, c.group.name) for c in made.classes] == [("", "No class"), ("mine", "mine")]
    assert [(c.group.id, c.group.name) for c in made.categories] == [("", "No category"), ("mine/own", "mine/own")]


@pytest.mark.parametrize(("key", "value"), [("heal", None), ("total", math.nan), ("failures", None)])
def test_a_scored_row_without_its_numbers_is_an_error(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"'a' is marked as scored but its {key}"):
        summary([scored("a", FOREST, GOOD) | {key: value}])


def test_two_rows_of_one_id_are_an_error() -> None:
    with pytest.raises(ValueError, match="two rows have the id 'a'"):
        summary([scored("a", FOREST, GOOD), scored("a", FOREST, GOOD)])


def test_the_order_of_rows_changes_nothing() -> None:
    rows = synthetic(60)
    assert json.dumps(summary(rows).to_dict()["overall"]) == json.dumps(summary(rows[::-1]).to_dict()["overall"])
