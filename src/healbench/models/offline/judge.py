"""The embedded judge: a baseline that needs no download, no network and no GPU.

It rates by what two ImageNet classifiers and a sentence encoder make of a picture and by plain measurements of its
pixels, with weights fitted to rated photographs (docs/offline-judge.md says how well, and what it cannot see).
The same picture gets the same ratings alone and in any batch: every picture and every text goes through by itself.
"""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from healbench.errors import UsageError
from healbench.models.offline.content import Content
from healbench.models.offline.features import Floats, features, look, names
from healbench.models.offline.networks import damaged, read_weights, weights_digest
from healbench.models.offline.rationale import Moved, rationale
from healbench.types import (
    DIMENSIONS,
    RATING_MAX,
    RATING_MIN,
    Category,
    Dimension,
    Granularity,
    Judgement,
    Picture,
    QuestionSet,
    Sample,
)

NOTICE = (
    "Offline baseline: these numbers come from the embedded judge, which sees concrete content and image statistics "
    "only; use a vision-language model as judge for results that you report."
)


@dataclass(frozen=True, slots=True)
class Head:
    """A dimension's three linear ratings.

    Attributes:
        mean, scale: of the features over the calibration photographs, shape (features,).
        weights: rating points for each standard deviation of a feature, shape (3, features).
        bias: the mean ratings, shape (3,).
    """

    mean: Floats
    scale: Floats
    weights: Floats
    bias: Floats

    def contributions(self, values: Floats) -> Floats:
        """What each feature adds to or takes from the mean rating, in points, shape (3, features)."""
        return np.asarray(self.weights * ((values - self.mean) / self.scale))

    def moved(self, values: Floats) -> Moved:
        """The evidence behind the mean of the three ratings."""
        return Moved(self.contributions(values).mean(axis=0), values > self.mean)

    def ratings(self, values: Floats) -> Floats:
        """Three ratings before rounding, shape (3,)."""
        return np.asarray(np.clip(self.bias + self.contributions(values).sum(axis=1), RATING_MIN, RATING_MAX))


@functools.cache
def heads() -> Mapping[Dimension, Head]:
    """The fitted ratings of the three dimensions.

    Raises:
        SetupError: the file is missing, damaged or of other features.
    """
    name = "calibration.npz"
    data = read_weights(name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = {
                d: Head(*(arrays[f"{d}.{part}"].astype(np.float64) for part in ("mean", "scale", "weights", "bias")))
                for d in DIMENSIONS
            }
    except Exception as error:  # numpy, zipfile and zlib errors share no base class below Exception
        raise damaged(name, error) from error
    for dimension, head in found.items():
        if head.weights.shape != (3, len(names(dimension))):
            raise damaged(name, ValueError(f"{dimension} has weights of shape {head.weights.shape}"))
    return found


class OfflineJudge:
    """See the module; `healbench score --judge offline`, the default."""

    name = "offline"
    prompt_digest = None
    granularity: Granularity = "item"
    params: Mapping[str, Any] = {}
    notice = NOTICE
    calls = 0

    def __init__(self) -> None:
        self._content = Content()
        self._heads = heads()

    @property
    def digest(self) -> str:
        return weights_digest()

    def judge(
        self, samples: Sequence[Sample], pictures: Sequence[Picture], question_sets: Sequence[QuestionSet]
    ) -> Iterator[Judgement]:
        """One judgement a sample, in order; the samples are shared among the machine's cores."""
        texts = [
            sample.text or questions.category.definition
            for sample, questions in zip(samples, question_sets, strict=True)
        ]
        categories = [questions.category for questions in question_sets]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(self._judge, pictures, texts, categories)

    def _judge(self, picture: Picture, text: str, category: Category) -> Judgement:
        sight = look(self._content, picture.rgb)
        found = features(self._content, sight, text, category)
        ratings = {d: head.ratings(found.values[d]) for d, head in self._heads.items()}
        moved = {d: head.moved(found.values[d]) for d, head in self._heads.items()}
        return Judgement(
            ratings={d: whole(three) for d, three in ratings.items()}, rationale=rationale(sight, found, moved)
        )


def whole(three: Floats) -> tuple[int, int, int]:
    """Ratings as they are given: rounded, halves up."""
    first, second, third = (int(np.floor(rating + 0.5)) for rating in three)
    return first, second, third


def load(argument: str | None) -> OfflineJudge:
    """Factory of the entry point `offline` in `healbench.judge`.

    Raises:
        UsageError: it was given an argument; there is only one.
    """
    if argument is not None:
        raise UsageError(f"the offline judge takes no argument, it was given {argument!r}")
    return OfflineJudge()
