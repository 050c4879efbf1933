"""Picture, text and category → the numbers that the offline judge rates by, each with a name to quote."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources

import numpy as np
import yaml
from numpy.typing import NDArray

from healbench.models.offline.content import Content
from healbench.models.offline.networks import imagenet_classes
from healbench.models.offline.statistics import Statistics, measure
from healbench.types import Category, Dimension

Floats = NDArray[np.float64]

_STRONGEST_CONCEPTS = 3
_STRONGEST_CUES = 2

ALIGNMENT = ("text", "category", "cues")
CONTRASTS = ("soothing", "threatening", "cues", "breakers")
STATISTICS = ("edges", "green", "blue", "saturation", "luminance", "sharpness")
QUALITY = (
    "brisque",
    "sharpness",
    "noise",
    "grain",
    "smear",
    "blocking",
    "luminance",
    "mid-tone",
    "contrast",
    "crushed",
    "blown",
)

_NOISE_FROM, _NOISE_TO = 7.0, 16.0
"""Grey levels: 95 of 100 clean calibration photographs measure less than the first, half of the noisy copies more than
the second."""

_UNNATURAL_FROM, _UNNATURAL_TO = 25.0, 45.0
"""BRISQUE between which noise is taken for noise: fine natural texture measures as much, but looks natural."""

_GRID_FROM, _GRID_TO = 1.1, 1.6
"""Times the usual steps: 95 of 100 clean calibration photographs have less than the first, all copies at JPEG quality 8
more than the second."""

_NATURAL_TEXTURE = 0.5
"""Grey levels: 95 of 100 clean calibration photographs measure more; less means smeared by blur or compression."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the embedded parts see in a picture before any text is read.

    Attributes:
        evidence: of each ImageNet class, in standard deviations over the reference photographs, shape (1000,).
    """

    evidence: NDArray[np.float32]
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Concepts:
    """The concrete things that are taken for soothing and for threatening (concepts.yaml)."""

    soothing: tuple[str, ...]
    threatening: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contrast:
    """How strongly a list of phrases is present, and which of them is strongest, in standard deviations."""

    strength: float
    strongest: str


@dataclass(frozen=True, slots=True)
class Features:
    """The inputs of the three dimensions' ratings, and the phrases behind them."""

    values: dict[Dimension, Floats]
    soothing: Contrast
    threatening: Contrast
    cues: Contrast
    breakers: Contrast
    text: float


@functools.cache
def concepts() -> Concepts:
    """The embedded lists."""
    file = resources.files("healbench.models.offline") / "concepts.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Concepts(tuple(content["soothing"]), tuple(content["threatening"]))


def category_words(category: Category) -> str:
    """The category as a text that a picture can fit."""
    return f"{category.name}: {category.definition}"


def names(dimension: Dimension) -> tuple[str, ...]:
    """The names of a dimension's features, in order."""
    if dimension == "alignment":
        return ALIGNMENT
    if dimension == "quality":
        return QUALITY
    return (*(f"shows {c.label}" for c in imagenet_classes()), *CONTRASTS, *STATISTICS)


def look(content: Content, rgb: NDArray[np.uint8]) -> Sight:
    """Everything that needs the pixels."""
    return Sight(content.evidence(rgb), measure(rgb))


def features(content: Content, sight: Sight, text: str, category: Category) -> Features:
    """Everything that needs the words as well."""
    fits = functools.partial(content.match, sight.evidence)
    text_fit = fits(text)
    cues = _strongest(content, sight, category.visual_cues, _STRONGEST_CUES)
    breakers = _strongest(content, sight, category.breakers, _STRONGEST_CUES)
    soothing = _strongest(content, sight, concepts().soothing, _STRONGEST_CONCEPTS)
    threatening = _strongest(content, sight, concepts().threatening, _STRONGEST_CONCEPTS)
    contrasts = np.array([c.strength for c in (soothing, threatening, cues, breakers)])
    seen = np.array([getattr(sight.statistics, name) for name in STATISTICS])
    return Features(
        values={
            "alignment": np.array([text_fit, fits(category_words(category)), cues.strength]),
            "heal": np.concatenate([np.clip(sight.evidence, 0.5, 6), contrasts, seen]),
            "quality": _quality(sight.statistics),
        },
        soothing=soothing,
        threatening=threatening,
        cues=cues,
        breakers=breakers,
        text=text_fit,
    )


def _strongest(content: Content, sight: Sight, phrases: tuple[str, ...], count: int) -> Contrast:
    fits = np.array([content.match(sight.evidence, phrase) for phrase in phrases])
    order = np.argsort(-fits, kind="stable")
    return Contrast(float(fits[order[:count]].mean()), phrases[int(order[0])])


def _quality(seen: Statistics) -> Floats:
    return np.array(
        [
            np.clip(seen.brisque, 0, 100),
            seen.sharpness,
            np.log(seen.noise + 0.5),
            _ramp(seen.noise, _NOISE_FROM, _NOISE_TO) * _ramp(seen.brisque, _UNNATURAL_FROM, _UNNATURAL_TO),
            max(0.0, np.log(_NATURAL_TEXTURE / (seen.noise + 0.01))),
            _ramp(seen.blocking, _GRID_FROM, _GRID_TO),
            seen.luminance,
            abs(seen.luminance - 0.45),
            seen.contrast,
            seen.crushed,
            seen.blown,
        ]
    )


def _ramp(value: float, low: float, high: float) -> float:
    """0 up to `low`, 1 from `high` on, straight between."""
    return float(np.clip((value - low) / (high - low), 0, 1))
