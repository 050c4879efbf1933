"""The calibration data and the figures that are published about the offline judge."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS
from scripts.calibration import table
from scripts.calibration.fit import Calibration, cross_validate, pairwise_order
from scripts.calibration.photos import read_photos

DATA = Path(__file__).parents[1] / "calibration"
RESULTS = json.loads((DATA / "results.json").read_text(encoding="utf-8"))


def test_every_rating_is_of_a_listed_photograph_and_whole() -> None:
    photos = {p["id"]: p for p in read_photos()}
    assert len(photos) >= 160
    for photo in photos.values():
        assert len(photo["sha256"]) == 64
        assert photo["package"]
        assert photo["path"]
        assert photo["licence"]
    taxonomy = Taxonomy.load()
    rated: Counter[str] = Counter()
    for line in (DATA / "ratings.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert row["photo"] in photos
        assert taxonomy.category(row["category"]).id == row["category"]
        wanted = ("alignment",) if "text_of" in row else DIMENSIONS
        assert set(row["ratings"]) == set(wanted)
        for three in row["ratings"].values():
            assert len(three) == 3
            assert all(isinstance(r, int) and 1 <= r <= 10 for r in three)
        rated["wrong text" if "text_of" in row else "degraded" if row["version"] else "original"] += 1
        if not row["version"] and "text_of" not in row:
            rated[f"seen {row['photo']}"] += 1
    assert sum(name.startswith("seen") for name in rated) == len(photos)
    assert rated["degraded"] >= 40
    assert rated["wrong text"] >= 60


def test_the_judge_does_what_is_asked_of_it() -> None:
    rho, rho_low, _ = RESULTS["dimensions"]["heal"]["spearman"]
    assert rho >= 0.6
    assert rho_low > 0.4
    assert RESULTS["dimensions"]["heal"]["order_2_points_apart"][0] >= 0.82
    assert RESULTS["right_against_wrong_text"]["auc"][0] > 0.85
    # Photographs: the cut-outs on white (tux_...) are none.
    order = RESULTS["quality_order"]
    assert order["blur"]["not"] == []
    assert [name for name in order["noise"]["not"] if not name.startswith("tux_")] == []
    assert order["jpeg"]["not"] == []


def test_the_page_shows_the_figures_of_the_cross_validation() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page()


def test_pairwise_order_counts_like_the_definition() -> None:
    rng = np.random.default_rng(0)
    truth, guess = rng.integers(1, 11, 40).astype(float), rng.integers(1, 5, 40).astype(float)
    points = [
        1.0 if guess[i] > guess[j] else 0.5 if guess[i] == guess[j] else 0.0
        for i in range(40)
        for j in range(40)
        if truth[i] - truth[j] >= 2
    ]
    assert pairwise_order(truth, guess) == pytest.approx(np.mean(points))
    assert pairwise_order(truth, truth) == 1
    assert pairwise_order(truth, -truth) == 0


@pytest.mark.long
def test_the_cross_validation_gives_the_published_figures() -> None:
    found = cross_validate(Calibration())
    for dimension in DIMENSIONS:
        for figure in ("spearman", "order_2_points_apart"):
            published = RESULTS["dimensions"][dimension][figure]
            assert found["dimensions"][dimension][figure] == pytest.approx(published, abs=0.02)
    auc = RESULTS["right_against_wrong_text"]["auc"]
    assert found["right_against_wrong_text"]["auc"] == pytest.approx(auc, abs=0.02)
    assert found["raters"] == RESULTS["raters"]


@pytest.mark.long
def test_shuffled_ratings_cannot_be_predicted() -> None:
    calibration = Calibration()
    rng = np.random.default_rng(0)
    rows = [row for row in calibration.rated if row.right_text and "|" not in row.name]
    order = rng.permutation(len(rows))
    shuffled = [
        type(row)(row.photo, row.name, row.category, row.text, rows[k].ratings, True)
        for row, k in zip(rows, order, strict=True)
    ]
    half = len(rows) // 2
    train = {row.photo for row in shuffled[:half]}
    copies = [row for row in calibration.rated if "|" in row.name and row.photo in train]
    judge = calibration.fitted([*shuffled[:half], *copies])
    test = [row for row in shuffled[half:] if row.photo not in train]
    guess = [judge.predict(calibration.features(judge.content, row))["heal"] for row in test]
    assert abs(spearmanr(guess, [row.ratings["heal"].mean() for row in test]).statistic) < 0.3
