"""Why the offline judge rated as it did: one sentence a dimension, from the evidence that moved its ratings most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from healbench.models.offline.content import strongest_classes
from healbench.models.offline.features import CONTRASTS, QUALITY, STATISTICS, Features, Floats, Sight
from healbench.models.offline.networks import imagenet_classes
from healbench.types import Dimension

_NOTABLE = 0.15
"""Rating points that a piece of evidence has to move to be named."""

_PRESENT = 2.0
"""Standard deviations over the reference from which a class is named as seen."""

_OWN_TEXT = 0.8
"""Standard deviations by which a text fits: the tenth percentile of right texts, about the eightieth of wrong ones."""

_NAMED = 3
"""Pieces of evidence that are named on one side."""

# For each feature: what a high value is called, and what a low one is.
_HEAL = {
    "soothing": ("soothing content such as “{soothing}” ({soothing_strength:+.1f} SD)", "little soothing content"),
    "threatening": (
        "unsettling content such as “{threatening}” ({threatening_strength:+.1f} SD)",
        "little unsettling content",
    ),
    "cues": ("the category's cue “{cues}” ({cues_strength:+.1f} SD)", "no clear cue of the category"),
    "breakers": ("the category's breaker “{breakers}” ({breakers_strength:+.1f} SD)", "no breaker of the category"),
    "edges": ("busy hard edges ({edges:.0%} of the pixels)", "few hard edges ({edges:.0%} of the pixels)"),
    "green": ("much green ({green:.0%})", "little green ({green:.0%})"),
    "blue": ("much blue ({blue:.0%})", "little blue ({blue:.0%})"),
    "saturation": ("rich colour (saturation {saturation:.2f})", "muted colour (saturation {saturation:.2f})"),
    "luminance": ("its brightness ({luminance:.2f})", "its darkness ({luminance:.2f})"),
    "sharpness": ("fine detail ({sharpness:.1f})", "softness ({sharpness:.1f})"),
}

_QUALITY = {
    "brisque": (
        "unnatural pixel statistics (BRISQUE {brisque:.0f}; clean photographs are near 20)",
        "natural pixel statistics (BRISQUE {brisque:.0f})",
    ),
    "sharpness": ("fine detail ({sharpness:.1f})", "little fine detail ({sharpness:.1f})"),
    "noise": ("noise or fine texture ({noise:.1f} grey levels)", "smooth surfaces ({noise:.1f} grey levels)"),
    "grain": ("visible noise ({noise:.1f} grey levels)", "little noise"),
    "smear": ("smeared texture (only {noise:.2f} grey levels of it)", "texture that is not smeared"),
    "blocking": ("a compression grid ({blocking:.1f} times the usual steps)", "no compression grid"),
    "luminance": ("brightness ({luminance:.2f})", "darkness ({luminance:.2f})"),
    "mid-tone": ("exposure far from mid-tone (mean {luminance:.2f})", "exposure near mid-tone"),
    "contrast": ("hard contrast ({contrast:.2f})", "soft contrast ({contrast:.2f})"),
    "crushed": ("deep shadows ({crushed:.0%} of the pixels)", "open shadows"),
    "blown": ("blown highlights ({blown:.0%} of the pixels)", "no blown highlights"),
}


@dataclass(frozen=True, slots=True)
class Moved:
    """What each feature of a dimension did to its mean rating.

    Attributes:
        points: added to or taken from the mean rating of the calibration photographs.
        high: whether the feature lies above its mean there.
    """

    points: Floats
    high: NDArray[np.bool_]


def rationale(sight: Sight, found: Features, moved: Mapping[Dimension, Moved]) -> dict[Dimension, str]:
    """One sentence a dimension."""
    return {
        "alignment": _alignment(sight, found),
        "heal": _heal(sight, found, moved["heal"]),
        "quality": _quality(sight, moved["quality"]),
    }


def _alignment(sight: Sight, found: Features) -> str:
    seen = ", ".join(f"“{name}”" for name in strongest_classes(sight.evidence))
    return (
        f"The picture reads as {seen}; the text fits it by {found.text:+.1f} SD (nine in ten right "
        f"texts reached {_OWN_TEXT:+.1f} in calibration, one in five wrong ones did), and of the category's cues "
        f"“{found.cues.strongest}” fits best ({found.cues.strength:+.1f} SD)."
    )


def _heal(sight: Sight, found: Features, moved: Moved) -> str:
    named = (*CONTRASTS, *STATISTICS)
    facts: dict[str, object] = {**_measurements(sight)}
    for name in CONTRASTS:
        contrast = getattr(found, name)
        facts |= {name: contrast.strongest, f"{name}_strength": contrast.strength}
    phrases = _phrases(named, _HEAL, moved.high[-len(named) :], facts)
    shown = np.where(sight.evidence > _PRESENT, moved.points[: -len(named)], 0.0)
    points = np.array([*moved.points[-len(named) :], shown[shown > 0].sum(), shown[shown < 0].sum()])
    phrases += [f"what it reads as ({_strongest(shown)})", f"what it reads as ({_strongest(-shown)})"]
    helps, hurts = _both_sides(phrases, points)
    return f"For comfort: {helps or 'nothing in particular'}; against it: {hurts or 'nothing in particular'}."


def _quality(sight: Sight, moved: Moved) -> str:
    good, bad = _both_sides(_phrases(QUALITY, _QUALITY, moved.high, _measurements(sight)), moved.points)
    return f"For quality: {good or 'nothing in particular'}; against it: {bad or 'nothing in particular'}."


def _phrases(
    names: Sequence[str], words: Mapping[str, tuple[str, str]], high: NDArray[np.bool_], facts: Mapping[str, object]
) -> list[str]:
    return [words[name][0 if above else 1].format(**facts) for name, above in zip(names, high, strict=True)]


def _both_sides(phrases: Sequence[str], points: Floats) -> tuple[str, str]:
    """What moved the rating up and what moved it down, each strongest first."""
    strongest = np.argsort(-np.abs(points), kind="stable")
    order = [i for i in strongest if abs(points[i]) >= _NOTABLE] or [strongest[0]]
    up = [phrases[i] for i in order if points[i] > 0][:_NAMED]
    down = [phrases[i] for i in order if points[i] < 0][:_NAMED]
    return ", ".join(up), ", ".join(down)


def _strongest(points: Floats, count: int = 2) -> str:
    """The classes that moved the rating up most, by name."""
    order = [i for i in np.argsort(-points, kind="stable")[:count] if points[i] > 0]
    return ", ".join(f"“{imagenet_classes()[i].label}”" for i in order)


def _measurements(sight: Sight) -> dict[str, float]:
    seen = sight.statistics
    return {name: getattr(seen, name) for name in seen.__slots__}
