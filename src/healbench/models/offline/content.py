"""What a picture shows, in words: how well a text fits it, without any vision-language model.

Two ImageNet classifiers say how strongly each of 1000 classes is present; a sentence encoder says how near each class
is to a text. A text's match is the class evidence weighted by that nearness, in standard deviations over a fixed set
of reference photographs. It sees concrete content ("a lake"), not mood ("peaceful"), and must not be taken for comfort.
"""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from healbench.models.offline.networks import ImageNet, SentenceEncoder, damaged, imagenet_classes, read_weights

Floats = NDArray[np.float32]

_TEMPERATURE = 0.05
"""How sharply a text picks its classes; measured in the project's notes on content match, not fitted here."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The fixed photographs that a picture is compared with, and the classes' meaning.

    Attributes:
        mean, deviation: of each class logit over the reference photographs, shape (1000,).
        evidence: their standardised logits, shape (photographs, 1000).
        meaning: unit vectors of the classes' names and definitions, shape (1000, 384).
    """

    mean: Floats
    deviation: Floats
    evidence: Floats
    meaning: Floats


@functools.cache
def embedded_reference() -> Reference:
    """The reference that ships with the package; scripts/calibration makes it.

    Raises:
        SetupError: the file is missing or damaged.
    """
    name = "reference.npz"
    data = read_weights(name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            parts = {key: arrays[key].astype(np.float32) for key in ("mean", "deviation", "evidence", "meaning")}
    except Exception as error:  # numpy, zipfile and zlib errors share no base class below Exception
        raise damaged(name, error) from error
    return Reference(**parts)


def text_key(text: str) -> str:
    """A text in the table of known ones."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def known_texts() -> Mapping[str, Floats]:
    """The vectors of the embedded categories and concepts, so that the first picture need not wait for 700 texts."""
    name = "texts.npz"
    data = read_weights(name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            keys, vectors = arrays["keys"], arrays["vectors"].astype(np.float32)
    except Exception as error:  # numpy, zipfile and zlib errors share no base class below Exception
        raise damaged(name, error) from error
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(map(str, keys), vectors, strict=True))


class Content:
    """Matches texts with what the embedded classifiers see. Safe to use from several threads."""

    def __init__(self, reference: Reference | None = None, encoder: SentenceEncoder | None = None) -> None:
        self._reference = reference or embedded_reference()
        self._networks = (ImageNet("lite0"), ImageNet("lite2"))
        self._encoder = encoder or SentenceEncoder()
        self._known = known_texts() if reference is None else {}
        self._weighing = functools.lru_cache(maxsize=4096)(self._weigh)

    def evidence(self, rgb: NDArray[np.uint8]) -> Floats:
        """How strongly each class is present, in standard deviations over the reference, shape (1000,)."""
        return self.standardise(mean_logits(self._networks, rgb))

    def standardise(self, logits: Floats) -> Floats:
        """Logits → evidence."""
        return (logits - self._reference.mean) / self._reference.deviation

    def match(self, evidence: Floats, text: str) -> float:
        """How well a text fits, in standard deviations over the reference: 0 for a fit that is no better than usual."""
        weights, mean, deviation = self._weighing(text)
        return float((evidence @ weights - mean) / deviation)

    def mean_class(self, evidence: Floats, strongest: int = 10) -> Floats:
        """The picture in the space of texts: the meanings of its strongest classes, weighted; a unit vector."""
        classes = np.argsort(-evidence, kind="stable")[:strongest]
        weights = np.exp(evidence[classes] - evidence[classes[0]])
        vector = weights @ self._reference.meaning[classes]
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)

    def text_vector(self, text: str) -> Floats:
        """A text's unit vector, shape (384,)."""
        known = self._known.get(text_key(text))
        vector: Floats = self._encoder.encode(text) if known is None else known
        return vector

    def _weigh(self, text: str) -> tuple[Floats, float, float]:
        nearness = np.maximum(self._reference.meaning @ self.text_vector(text), 0) / _TEMPERATURE
        weights = np.exp(nearness - nearness.max())
        weights = np.asarray(weights / weights.sum(), dtype=np.float32)
        usual = self._reference.evidence @ weights
        return weights, float(usual.mean()), float(usual.std())


def mean_logits(networks: tuple[ImageNet, ImageNet], rgb: NDArray[np.uint8]) -> Floats:
    """The two networks' logits, averaged, shape (1000,)."""
    both = np.stack([network.logits(rgb)[0] for network in networks])
    return np.asarray(both.mean(axis=0), dtype=np.float32)


def class_meanings() -> Floats:
    """The unit vectors of all class names with their definitions, shape (1000, 384); takes seconds, so it ships."""
    encoder = SentenceEncoder(cache_size=1)
    return np.stack([encoder.encode(f"a photo of a {c.label}: {c.definition}") for c in imagenet_classes()])


def strongest_classes(evidence: Floats, count: int = 3) -> tuple[str, ...]:
    """The names of what the picture most likely shows."""
    classes = imagenet_classes()
    return tuple(classes[i].label for i in np.argsort(-evidence, kind="stable")[:count])
