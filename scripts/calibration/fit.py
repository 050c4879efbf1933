"""Ratings + sight → the offline judge's weights and how well it does on photographs that it was not fitted to.

    python scripts/calibration/fit.py            # writes calibration/results.json and the embedded weights
    python scripts/calibration/fit.py --check    # only the cross-validation; exits 1 if results.json says otherwise

Nested cross-validation: ten outer folds by photograph, so that all versions and texts of a photograph are in one fold;
the reference photographs and the strength of the penalty (five inner folds) come from the other nine.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from healbench.models.offline.content import Content, Reference, class_meanings, text_key
from healbench.models.offline.features import (
    CONTRASTS,
    STATISTICS,
    Features,
    Sight,
    category_words,
    concepts,
    features,
    names,
)
from healbench.models.offline.judge import Head, whole
from healbench.models.offline.networks import SentenceEncoder
from healbench.models.offline.statistics import Statistics
from healbench.suggest import in_words
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Dimension

Floats = NDArray[np.float64]

DATA = Path(__file__).parents[2] / "calibration"
WEIGHTS = Path(__file__).parents[2] / "src" / "healbench" / "models" / "offline" / "weights"

OUTER, INNER = 10, 5
PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
COPY_WEIGHT = 0.15
"""Of a copy that nobody rated beside a rated picture."""

RESAMPLES = 1000
COPIES = ("blur", "noise", "jpeg")


@dataclass(frozen=True, slots=True)
class Rated:
    """One rating of one version of one photograph under one text."""

    photo: str
    name: str
    category: str
    text: str
    ratings: dict[Dimension, Floats]
    right_text: bool


class Sights:
    """What was seen in the photographs (look.py)."""

    def __init__(self) -> None:
        with np.load(DATA / "sight.npz", allow_pickle=False) as arrays:
            self._row = {str(name): i for i, name in enumerate(arrays["names"])}
            self.logits = arrays["logits"].astype(np.float32)
            self._statistics = arrays["statistics"]

    def logits_of(self, photos: Sequence[str]) -> NDArray[np.float32]:
        chosen: NDArray[np.float32] = self.logits[[self._row[photo] for photo in photos]]
        return chosen

    def sight(self, name: str, content: Content) -> Sight:
        row = self._row[name]
        return Sight(content.standardise(self.logits[row]), Statistics(*map(float, self._statistics[row])))


def reference(logits: NDArray[np.float32], meaning: NDArray[np.float32]) -> Reference:
    """The photographs that others are compared with; evidence in half precision, as it is stored."""
    mean, deviation = logits.mean(axis=0), logits.std(axis=0)
    evidence = ((logits - mean) / deviation).astype(np.float16).astype(np.float32)
    return Reference(mean, deviation, evidence, meaning)


def fit(values: Floats, ratings: Floats, weights: Floats, dimension: Dimension, penalty: float) -> Head:
    """Ridge regression of three ratings; groups of features share one prior variance so that a thousand classes do not
    drown four contrasts."""
    mean = np.average(values, axis=0, weights=weights)
    scale = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights)) + 1e-9
    prior, root = _prior(dimension), np.sqrt(weights)[:, None]
    standard = (values - mean) / scale * prior * root
    bias = np.average(ratings, axis=0, weights=weights)
    gram = standard @ standard.T + penalty * np.eye(len(values))
    slopes = (standard.T @ np.linalg.solve(gram, (ratings - bias) * root)).T * prior
    return Head(mean, scale, slopes, bias)


def _groups(dimension: Dimension) -> list[tuple[int, float]]:
    """(number of features, prior variance of the whole group)"""
    if dimension == "heal":
        classes = len(names("heal")) - len(CONTRASTS) - len(STATISTICS)
        return [(classes, 1.0), (len(CONTRASTS), 0.3), (len(STATISTICS), 0.3)]
    return [(len(names(dimension)), float(len(names(dimension))))]


def _prior(dimension: Dimension) -> Floats:
    return np.concatenate([np.full(count, np.sqrt(total / count)) for count, total in _groups(dimension)])


def choose_penalty(
    values: Floats, ratings: Floats, weights: Floats, photos: Sequence[str], dimension: Dimension
) -> float:
    """The penalty with the smallest squared error over the inner folds."""
    errors = np.zeros(len(PENALTIES))
    for test in folds(photos, INNER, seed=1):
        for i, penalty in enumerate(PENALTIES):
            head = fit(values[~test], ratings[~test], weights[~test], dimension, penalty)
            predicted = np.stack([head.ratings(v) for v in values[test]])
            errors[i] += weights[test] @ ((predicted - ratings[test]) ** 2).sum(axis=1)
    return PENALTIES[int(np.argmin(errors))]


def folds(photos: Sequence[str], count: int, seed: int) -> list[NDArray[np.bool_]]:
    """Masks of the rows of each fold; a photograph is in one fold with all its rows."""
    unique = sorted(set(photos))
    order = np.random.default_rng(seed).permutation(len(unique))
    fold = {unique[p]: i % count for i, p in enumerate(order)}
    of_row = np.array([fold[p] for p in photos])
    return [of_row == k for k in range(count)]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A judge fitted to some photographs."""

    content: Content
    heads: dict[Dimension, Head]
    penalties: dict[Dimension, float]

    def predict(self, found: Features) -> dict[Dimension, float]:
        """Dimension means as the judge gives them, of whole ratings."""
        return {d: float(np.mean(whole(self.heads[d].ratings(found.values[d])))) for d in DIMENSIONS}


class Calibration:
    """All ratings, and judges fitted to parts of them."""

    def __init__(self) -> None:
        self.taxonomy = Taxonomy.load()
        self.sights = Sights()
        self.rated = [_rated(json.loads(line)) for line in (DATA / "ratings.jsonl").read_text("utf-8").splitlines()]
        self.meaning = class_meanings().astype(np.float16).astype(np.float32)
        self.encoder = SentenceEncoder(cache_size=20_000)

    def features(self, content: Content, rated: Rated) -> Features:
        return features(
            content, self.sights.sight(rated.name, content), rated.text, self.taxonomy.category(rated.category)
        )

    def fitted(self, rows: Sequence[Rated]) -> Fitted:
        """A judge that has seen only these rows."""
        photos = sorted({row.photo for row in rows})
        content = Content(reference(self.sights.logits_of(photos), self.meaning), self.encoder)
        found = [self.features(content, row) for row in rows]
        heads: dict[Dimension, Head] = {}
        penalties: dict[Dimension, float] = {}
        for dimension in DIMENSIONS:
            chosen = [i for i, row in enumerate(rows) if dimension in row.ratings]
            values = np.stack([found[i].values[dimension] for i in chosen])
            ratings = np.stack([rows[i].ratings[dimension] for i in chosen])
            weights = np.ones(len(chosen))
            of = [rows[i].photo for i in chosen]
            if dimension == "quality":
                more_values, more_ratings, more_of = self._copies(content, rows)
                values, ratings = np.concatenate([values, more_values]), np.concatenate([ratings, more_ratings])
                weights = np.concatenate([weights, np.full(len(more_of), COPY_WEIGHT)])
                of += more_of
            penalty = choose_penalty(values, ratings, weights, of, dimension)
            heads[dimension], penalties[dimension] = fit(values, ratings, weights, dimension, penalty), penalty
        return Fitted(content, heads, penalties)

    def _copies(self, content: Content, rows: Sequence[Rated]) -> tuple[Floats, Floats, list[str]]:
        """Copies that nobody rated, with the ratings they would be given: those of the photograph, less what raters
        took off for that kind of degradation where they saw both."""
        whole = {row.name: row.ratings["quality"] for row in rows if "|" not in row.name and row.right_text}
        drops = {
            kind: np.mean(
                [
                    whole[row.photo] - row.ratings["quality"]
                    for row in rows
                    if row.photo in whole and row.name.startswith(f"{row.photo}|{kind}|")
                ],
                axis=0,
            )
            for kind in COPIES
        }
        made = [(photo, kind) for photo in whole for kind in ("clean", *COPIES)]
        category = self.taxonomy.valid[0]
        values = [
            features(content, _copy(self, content, photo, kind), category.definition, category).values["quality"]
            for photo, kind in made
        ]
        ratings = [np.clip(whole[photo] - drops.get(kind, 0.0), 1, 10) for photo, kind in made]
        return np.stack(values), np.stack(ratings), [photo for photo, _ in made]


def _rated(row: dict[str, Any]) -> Rated:
    version = row["version"]
    name = row["photo"]
    if version is not None:
        name += f"|{version['kind']}|{version['parameter']:g}|{version['seed']}"
    ratings: dict[Dimension, Floats] = {
        d: np.array(row["ratings"][d], dtype=np.float64) for d in DIMENSIONS if d in row["ratings"]
    }
    return Rated(row["photo"], name, row["category"], row["text"], ratings, "text_of" not in row)


def cross_validate(calibration: Calibration) -> dict[str, Any]:
    """Every figure of docs/offline-judge.md."""
    rated = calibration.rated
    photos = [row.photo for row in rated]
    predicted: list[dict[Dimension, float]] = [{} for _ in rated]
    copies: dict[str, dict[str, float]] = {}
    suggested: dict[str, list[str]] = {}
    for test in folds(photos, OUTER, seed=0):
        judge = calibration.fitted([row for row, out in zip(rated, test, strict=True) if not out])
        for i in np.flatnonzero(test):
            predicted[i] = judge.predict(calibration.features(judge.content, rated[i]))
        for photo in sorted({photos[i] for i in np.flatnonzero(test)}):
            copies[photo] = _copies(calibration, judge, photo)
            suggested[photo] = _suggestions(calibration, judge.content, photo)
    return {
        "photographs": len(set(photos)),
        "ratings": sum(row.right_text for row in rated),
        "wrong_texts": sum(not row.right_text for row in rated),
        "dimensions": {d: _agreement(rated, predicted, d) for d in DIMENSIONS},
        "heal_of_originals": _agreement([r for r in rated if "|" not in r.name], _originals(rated, predicted), "heal"),
        "right_against_wrong_text": _auc(rated, predicted),
        "quality_order": _order(calibration, copies),
        "heal_verdict": _verdict(rated, predicted),
        "suggestion": _suggestion(rated, suggested, calibration.taxonomy),
        "raters": _raters(rated),
    }


def _originals(rated: Sequence[Rated], predicted: Sequence[dict[Dimension, float]]) -> list[dict[Dimension, float]]:
    return [p for row, p in zip(rated, predicted, strict=True) if "|" not in row.name]


def _agreement(rated: Sequence[Rated], predicted: Sequence[dict[Dimension, float]], d: Dimension) -> dict[str, Any]:
    rows = [(r.photo, float(r.ratings[d].mean()), p[d]) for r, p in zip(rated, predicted, strict=True) if _counts(r, d)]
    photos, truth, guess = [r[0] for r in rows], np.array([r[1] for r in rows]), np.array([r[2] for r in rows])

    def both(chosen: NDArray[np.intp]) -> tuple[float, float]:
        return float(spearmanr(truth[chosen], guess[chosen]).statistic), pairwise_order(truth[chosen], guess[chosen])

    rho, order = both(np.arange(len(rows)))
    (rho_low, rho_high), (order_low, order_high) = bootstrap(photos, both)
    return {
        "n": len(rows),
        "spearman": _figures(rho, rho_low, rho_high),
        "order_2_points_apart": _figures(order, order_low, order_high),
        "mean_absolute_error": round(float(np.abs(truth - guess).mean()), 2),
    }


def _counts(row: Rated, dimension: Dimension) -> bool:
    return dimension in row.ratings


def pairwise_order(truth: Floats, guess: Floats, apart: float = 2.0) -> float:
    """Share of pairs at least `apart` points apart that the guess puts in the same order; a tie counts half."""
    above, below = np.nonzero(truth[:, None] - truth[None, :] >= apart - 1e-9)
    difference = guess[above] - guess[below]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def bootstrap(
    photos: Sequence[str], statistic: Callable[[NDArray[np.intp]], tuple[float, ...]]
) -> list[tuple[float, float]]:
    """95 % intervals of a statistic over rows, resampling photographs."""
    rows: dict[str, list[int]] = {}
    for i, photo in enumerate(photos):
        rows.setdefault(photo, []).append(i)
    groups = [np.array(r) for r in rows.values()]
    rng = np.random.default_rng(0)
    drawn = [
        statistic(np.concatenate([groups[g] for g in rng.integers(len(groups), size=len(groups))]))
        for _ in range(RESAMPLES)
    ]
    return [(float(low), float(high)) for low, high in np.percentile(np.array(drawn), [2.5, 97.5], axis=0).T]


def _auc(rated: Sequence[Rated], predicted: Sequence[dict[Dimension, float]]) -> dict[str, Any]:
    """How often a photograph's own text gets the higher alignment than a wrong one, over all pairs."""
    rows = [(r.photo, r.right_text, p["alignment"]) for r, p in zip(rated, predicted, strict=True) if "|" not in r.name]
    right, alignment = np.array([r[1] for r in rows]), np.array([r[2] for r in rows])

    def auc(chosen: NDArray[np.intp]) -> tuple[float]:
        good, bad = alignment[chosen][right[chosen]], alignment[chosen][~right[chosen]]
        difference = good[:, None] - bad[None, :]
        return (float(((difference > 0) + 0.5 * (difference == 0)).mean()),)

    (value,) = auc(np.arange(len(rows)))
    ((low, high),) = bootstrap([r[0] for r in rows], auc)
    return {"right": int(right.sum()), "wrong": int((~right).sum()), "auc": _figures(value, low, high)}


def _copies(calibration: Calibration, judge: Fitted, photo: str) -> dict[str, float]:
    """Quality of a photograph's clean and degraded copies; it does not depend on text or category."""
    category = calibration.taxonomy.valid[0]
    return {
        kind: judge.predict(
            features(judge.content, _copy(calibration, judge.content, photo, kind), category.definition, category)
        )["quality"]
        for kind in ("clean", *COPIES)
    }


def _copy(calibration: Calibration, content: Content, photo: str, kind: str) -> Sight:
    seen = calibration.sights.sight(f"{photo}|copy|{kind}", content)
    return Sight(np.zeros_like(seen.evidence), seen.statistics)  # copies were only measured, not classified


def _order(calibration: Calibration, copies: dict[str, dict[str, float]]) -> dict[str, Any]:
    wrong = {
        kind: sorted(photo for photo, quality in copies.items() if quality["clean"] <= quality[kind]) for kind in COPIES
    }
    return {
        "photographs": len(copies),
        **{kind: {"in_order": len(copies) - len(photos), "not": photos} for kind, photos in wrong.items()},
    }


def _verdict(rated: Sequence[Rated], predicted: Sequence[dict[Dimension, float]]) -> dict[str, Any]:
    """Whether heal fails by its mean, rated against predicted."""
    pairs = [
        (r.ratings["heal"].mean() < 5, p["heal"] < 5)
        for r, p in zip(rated, predicted, strict=True)
        if "heal" in r.ratings
    ]
    truth, guess = (np.array(side) for side in zip(*pairs, strict=True))
    return {
        "n": len(pairs),
        "rated_failing": int(truth.sum()),
        "same_verdict": round(float((truth == guess).mean()), 3),
        "failing_found": round(float(guess[truth].mean()), 3),
        "passing_kept": round(float((~guess[~truth]).mean()), 3),
    }


def _suggestions(calibration: Calibration, content: Content, photo: str) -> list[str]:
    categories = calibration.taxonomy.valid
    words = np.stack([content.text_vector(in_words(c)) for c in categories])
    picture = content.mean_class(calibration.sights.sight(photo, content).evidence)
    return [categories[i].id for i in np.argsort(-(words @ picture), kind="stable")[:5]]


def _suggestion(rated: Sequence[Rated], suggested: dict[str, list[str]], taxonomy: Taxonomy) -> dict[str, Any]:
    """How often the suggested category is the rater's, on original photographs."""
    rows = [(row.category, suggested[row.photo]) for row in rated if row.right_text and "|" not in row.name]
    coarse = [(c.split("/")[0], s[0].split("/")[0]) for c, s in rows]
    classes = [(taxonomy.categories[c].heal_class, taxonomy.categories[s[0]].heal_class) for c, s in rows]
    return {
        "n": len(rows),
        "same_pair": round(float(np.mean([c == s[0] for c, s in rows])), 3),
        "among_5": round(float(np.mean([c in s for c, s in rows])), 3),
        "same_coarse": round(float(np.mean([c == s for c, s in coarse])), 3),
        "same_class": round(float(np.mean([c == s for c, s in classes])), 3),
    }


def _raters(rated: Sequence[Rated]) -> dict[str, Any]:
    """Agreement of two raters on the pictures that both saw."""
    seen: dict[str, list[Rated]] = {}
    for row in rated:
        if row.right_text:
            seen.setdefault(row.name, []).append(row)
    twice = [rows for rows in seen.values() if len(rows) == 2]
    figures: dict[str, Any] = {"pictures": len(twice)}
    for d in DIMENSIONS:
        one, two = (np.array([rows[i].ratings[d].mean() for rows in twice]) for i in (0, 1))
        figures[d] = round(float(spearmanr(one, two).statistic), 3)
    figures["same_category"] = round(float(np.mean([a.category == b.category for a, b in twice])), 3)
    return figures


def _figures(value: float, low: float, high: float) -> list[float]:
    return [round(value, 3), round(low, 3), round(high, 3)]


def write_weights(calibration: Calibration) -> None:
    """Fits to everything and writes what the judge loads."""
    judge = calibration.fitted(calibration.rated)
    photos = sorted({row.photo for row in calibration.rated})
    seen = reference(calibration.sights.logits_of(photos), calibration.meaning)
    np.savez_compressed(
        WEIGHTS / "reference.npz",
        mean=seen.mean,
        deviation=seen.deviation,
        evidence=seen.evidence.astype(np.float16),
        meaning=seen.meaning.astype(np.float16),
    )
    arrays = {
        f"{d}.{part}": getattr(judge.heads[d], part).astype(np.float32)
        for d in DIMENSIONS
        for part in ("mean", "scale", "weights", "bias")
    }
    np.savez_compressed(WEIGHTS / "calibration.npz", **arrays)
    texts = sorted(_embedded_texts(calibration.taxonomy))
    vectors = np.stack([calibration.encoder.encode(text) for text in texts]).astype(np.float16)
    np.savez_compressed(WEIGHTS / "texts.npz", keys=np.array([text_key(text) for text in texts]), vectors=vectors)
    about = {
        "made_by": "scripts/calibration/fit.py",
        "penalties": judge.penalties,
        "files": {
            name: hashlib.sha256((WEIGHTS / name).read_bytes()).hexdigest()
            for name in ("reference.npz", "calibration.npz", "texts.npz")
        },
    }
    (WEIGHTS / "CALIBRATION.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _embedded_texts(taxonomy: Taxonomy) -> set[str]:
    """Every text that the judge and the suggestion ask for with the embedded taxonomy."""
    texts = {*concepts().soothing, *concepts().threatening}
    for category in taxonomy.valid:
        texts |= {in_words(category), category_words(category), category.definition}
        texts |= {*category.visual_cues, *category.breakers}
    return texts


def main(*, check: bool) -> int:
    calibration = Calibration()
    results = cross_validate(calibration)
    print(json.dumps(results, indent=2))
    file = DATA / "results.json"
    if check:
        return 0 if json.loads(file.read_text(encoding="utf-8")) == results else 1
    file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    write_weights(calibration)
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
