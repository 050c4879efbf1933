from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healbench.errors import UsageError
from healbench.judge import heal_score, load_judge, score_samples
from healbench.types import DIMENSIONS, FailureRule, HealScore, Judgement, Unscored, UnscoredCode
from tests.toys import CAT, ToyJudge, picture, sample, scoring

NINE = dict.fromkeys(DIMENSIONS, (6, 7, 8))


def test_ratings_become_means_and_the_weighted_sum() -> None:
    score = heal_score(Judgement(ratings={"alignment": (9, 9, 9), "heal": (4, 5, 6), "quality": (6, 7, 9)}))
    assert isinstance(score, HealScore)
    assert [score.alignment, score.heal, score.quality] == pytest.approx([9.0, 5.0, 22 / 3])
    assert score.total == pytest.approx(9 + 10 + 22 / 3)
    assert score.healing


def test_dimension_scores_have_no_ratings_and_fail_by_the_mean_alone() -> None:
    score = heal_score(Judgement(scores={"alignment": 6.0, "heal": 4.9, "quality": 7.5}))
    assert isinstance(score, HealScore)
    assert score.ratings is None
    assert score.failures == ("heal",)


@pytest.mark.parametrize(
    ("judgement", "code"),
    [
        (Judgement(), "missing"),
        (Judgement(ratings={**NINE, "heal": (6, None, 8)}), "missing"),
        (Judgement(ratings={"alignment": (6, 7, 8)}), "missing"),
        (Judgement(ratings={**NINE, "heal": (6, 11, 8)}), "schema_violation"),
        (Judgement(ratings={**NINE, "heal": (6, 0, 8)}), "schema_violation"),
        (Judgement(ratings={**NINE, "heal": (6, 7.5, 8)}), "schema_violation"),  # type: ignore[dict-item]
        (Judgement(scores={"alignment": 6.0, "heal": float("nan"), "quality": 6.0}), "nan"),
        (Judgement(scores={"alignment": 6.0, "heal": 6.0}), "missing"),
        (Judgement(scores={"alignment": 6.0, "heal": 6.0, "quality": 10.5}), "schema_violation"),
        (Judgement(ratings=NINE, unscored=Unscored("refused", "no")), "refused"),
    ],
)
def test_a_failure_is_never_a_number(judgement: Judgement, code: UnscoredCode) -> None:
    outcome = heal_score(judgement)
    assert isinstance(outcome, Unscored)
    assert outcome.code == code


@given(st.lists(st.one_of(st.none(), st.integers(-2, 12)), min_size=9, max_size=9))
def test_a_score_exists_exactly_when_all_nine_ratings_do(nine: list[int | None]) -> None:
    ratings: Any = {d: tuple(nine[3 * i : 3 * i + 3]) for i, d in enumerate(DIMENSIONS)}
    outcome = heal_score(Judgement(ratings=ratings))
    assert isinstance(outcome, HealScore) is all(r is not None and 1 <= r <= 10 for r in nine)


NUMBERS = ("alignment", "heal", "quality", "total", "healing", "failures", "ratings")


def test_a_scored_row_carries_everything_it_depends_on(tmp_path: Path) -> None:
    (row,) = score_samples([sample(picture(tmp_path / "x.png"))], scoring())
    assert row["unscored"] is None
    assert row["total"] == row["alignment"] + 2 * row["heal"] + row["quality"]
    assert row["ratings"]["heal"] == [8, 8, 8]
    assert row["heal_class"] == "living_companionship"
    traced = ("image_sha256", "text", "category", "judge", "judge_digest", "question_digest", "params", "version")
    assert all(row[name] for name in traced)


def test_what_cannot_be_judged_is_an_unscored_row_without_numbers_and_the_others_go_on(tmp_path: Path) -> None:
    good = picture(tmp_path / "good.png")
    torn = tmp_path / "torn.png"
    torn.write_bytes(good.read_bytes()[:50])
    rows = list(
        score_samples(
            [
                sample(tmp_path / "gone.png"),
                sample(torn),
                sample(good, id="invalid", category="others/others_others"),
                sample(good, id="unknown", category="nowhere/at_all"),
                sample(good, id="nothing", category=None),
                sample(good, id="bad line", problem=Unscored("schema_violation", "line 3")),
                sample(good),
            ],
            scoring(),
        )
    )
    codes = [row["unscored"]["code"] if row["unscored"] else None for row in rows]
    assert codes == ["missing", "image_unreadable", *["schema_violation"] * 4, None]
    assert str(torn) in rows[1]["unscored"]["message"]
    for row in rows[:-1]:
        assert all(row[name] is None for name in NUMBERS)


def test_a_text_that_is_left_out_is_the_definition_and_says_so(tmp_path: Path) -> None:
    (row,) = score_samples([sample(picture(tmp_path / "x.png"), text=None)], scoring())
    assert row["text_source"] == "category"
    assert row["text"] == scoring().taxonomy.category(CAT).definition


def judged(tmp_path: Path, **change: Any) -> tuple[list[str], dict[str, Any]]:
    """What is asked again when one thing has changed since the first start, and the first row."""
    path = picture(tmp_path / "x.png")
    first = sample(path)
    (row,) = score_samples([first], scoring())
    judge = ToyJudge()
    parts = scoring(judge)
    if "digest" in change:
        judge.digest = change.pop("digest")
    if "rule" in change:
        parts = replace(parts, rule=change.pop("rule"))
    if change.pop("pixels", False):
        picture(path, grey=10)
    list(score_samples([replace(first, **change)], parts, {row["id"]: [row]}))
    return judge.asked, row


@pytest.mark.parametrize(
    "change",
    [
        {"text": "b"},
        {"category": "quiet_company/friendly_dog"},
        {"digest": "2"},
        {"pixels": True},
        {"text": None},
        {"rule": FailureRule(mean_below=6)},
    ],
)
def test_a_row_is_judged_again_when_anything_it_depends_on_changes(tmp_path: Path, change: dict[str, Any]) -> None:
    assert judged(tmp_path, **change)[0] == ["x.png"]


def test_a_row_of_the_same_question_is_not_asked_again(tmp_path: Path) -> None:
    assert judged(tmp_path)[0] == []


@pytest.mark.parametrize(("code", "again"), [("timeout", True), ("refused", False), ("unparsable", False)])
def test_only_failures_that_may_pass_are_tried_again(tmp_path: Path, code: UnscoredCode, again: bool) -> None:
    first = sample(picture(tmp_path / "x.png"))
    failing = ToyJudge(lambda _: Judgement(unscored=Unscored(code, "then")))
    (row,) = score_samples([first], scoring(failing))
    judge = ToyJudge()
    (second,) = score_samples([first], scoring(judge), {row["id"]: [row]})
    assert judge.asked == (["x.png"] if again else [])
    assert (second["unscored"] is None) is again


def test_a_picture_that_comes_back_is_not_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    history: list[dict[str, Any]] = []
    judge = ToyJudge()
    for grey in (200, 10, 200, 10):
        (row,) = score_samples([sample(picture(path, grey))], scoring(judge), {"x.png": history})
        history.append(row)
    assert judge.asked == ["x.png", "x.png"]
    assert history[2] is history[0]
    assert history[3] is history[1]


def test_rows_come_in_order_however_many_there_are(tmp_path: Path) -> None:
    path = picture(tmp_path / "x.png")
    samples = [sample(path if i % 3 else tmp_path / "gone.png", id=str(i)) for i in range(50)]
    assert [row["id"] for row in score_samples(samples, scoring())] == [str(i) for i in range(50)]


def test_a_judge_that_answers_too_little_is_an_error_not_a_shift(tmp_path: Path) -> None:
    class Lazy(ToyJudge):
        def judge(self, samples: Any, pictures: Any, question_sets: Any) -> Iterator[Judgement]:
            yield from list(super().judge(samples, pictures, question_sets))[:-1]

    path = picture(tmp_path / "x.png")
    with pytest.raises(ValueError, match="shorter"):
        list(score_samples([sample(path), sample(path, id="2")], scoring(Lazy())))


def test_an_unknown_judge_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown judge 'ofline'; did you mean 'offline'"):
        load_judge("ofline")
