"""Why the offline judge rated as it did: one sentence a dimension, from the evidence that moved its ratings most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from healbench.models.offline.content import strongest_classes
from healbench.models.offline.features import CONTRASTS, QUALITY, STATISTICS, Features, Floats, Sight
from healbench.models.offline.networks import imagenet_classes
from healbench.types import Dimension

_NOTABLE = 0.15
"""Rating points that a piece of evidence has to move to be named."""

_NAMED = (*CONTRASTS, *STATISTICS)

_PRESENT = 1.0
"""Standard deviations over the reference from which a class is named as seen."""

_FAULTS = {
    "brisque": "unnatural pixel statistics (BRISQUE {brisque:.0f}; clean photographs are near 20)",
    "sharpness": "little fine detail (log-Laplacian {sharpness:.1f})",
    "noise": "noise or texture ({noise:.1f} grey levels)",
    "grain": "visible noise ({noise:.1f} grey levels)",
    "smear": "smeared texture ({noise:.2f} grey levels of it)",
    "blocking": "a compression grid ({blocking:.1f} times the usual steps)",
    "luminance": "its overall brightness ({luminance:.2f})",
    "mid-tone": "exposure far from mid-tone (mean {luminance:.2f})",
    "contrast": "its contrast ({contrast:.2f})",
    "crushed": "crushed shadows ({crushed:.0%} of the pixels)",
    "blown": "blown highlights ({blown:.0%} of the pixels)",
}

_STATISTICS = {
    "edges": "edge density {edges:.0%}",
    "green": "green over {green:.0%} of the picture",
    "blue": "blue over {blue:.0%} of the picture",
    "saturation": "saturation {saturation:.2f}",
    "luminance": "brightness {luminance:.2f}",
    "sharpness": "fine detail {sharpness:.1f}",
}


def rationale(sight: Sight, found: Features, moved: Mapping[Dimension, Floats]) -> dict[Dimension, str]:
    """One sentence a dimension.

    Args:
        moved: what each feature adds to or takes from the dimension's mean rating, in points.
    """
    return {
        "alignment": _alignment(sight, found),
        "heal": _heal(sight, found, moved["heal"]),
        "quality": _quality(sight, moved["quality"]),
    }


def _alignment(sight: Sight, found: Features) -> str:
    seen = ", ".join(f"“{name}”" for name in strongest_classes(sight.evidence))
    fit = "fits better" if found.text > 0 else "fits worse"
    return (
        f"The picture reads as {seen}; the text {fit} than it fits most reference photographs ({found.text:+.1f} SD), "
        f"and the strongest cue of the category is “{found.cues.strongest}” ({found.cues.strength:+.1f} SD)."
    )


def _heal(sight: Sight, found: Features, moved: Floats) -> str:
    rest = moved[-len(_NAMED) :]
    shown = np.where(sight.evidence > _PRESENT, moved[: -len(_NAMED)], 0.0)
    values = np.array([*rest, shown[shown > 0].sum(), shown[shown < 0].sum()])
    quotes = {
        "soothing": f"soothing content such as “{found.soothing.strongest}” ({found.soothing.strength:+.1f} SD)",
        "threatening": f"unsettling content such as “{found.threatening.strongest}” "
        f"({found.threatening.strength:+.1f} SD)",
        "cues": f"the category's cue “{found.cues.strongest}” ({found.cues.strength:+.1f} SD)",
        "breakers": f"the category's breaker “{found.breakers.strongest}” ({found.breakers.strength:+.1f} SD)",
        **{name: text.format(**_measurements(sight)) for name, text in _STATISTICS.items()},
        "shown for": f"what it reads as ({_strongest_classes(shown)})",
        "shown against": f"what it reads as ({_strongest_classes(-shown)})",
    }
    helps, hurts = _both_sides((*_NAMED, "shown for", "shown against"), values)
    sides = [_listed([quotes[name] for name in side]) for side in (helps, hurts)]
    return f"For comfort speak {sides[0] or 'no clear cues'}; against it {sides[1] or 'nothing notable'}."


def _strongest_classes(moved: Floats, count: int = 2) -> str:
    """The classes that moved the rating up most, by name."""
    order = [i for i in np.argsort(-moved, kind="stable")[:count] if moved[i] > 0]
    return ", ".join(f"“{imagenet_classes()[i].label}”" for i in order)


def _quality(sight: Sight, moved: Floats) -> str:
    good, bad = _both_sides(QUALITY, moved)
    values = _measurements(sight)
    faults = _listed([_FAULTS[name].format(**values) for name in bad])
    if faults:
        return f"Quality is pulled down by {faults}."
    strong = _listed([_FAULTS[name].format(**values) for name in good if name in ("brisque", "sharpness")])
    return f"No fault stands out in exposure, sharpness, noise or compression{': ' + strong if strong else ''}."


def _both_sides(features: tuple[str, ...], moved: Floats) -> tuple[list[str], list[str]]:
    """The features that moved the rating up and down most, strongest first."""
    order = np.argsort(-np.abs(moved), kind="stable")
    notable = [i for i in order if abs(moved[i]) >= _NOTABLE]
    return [features[i] for i in notable if moved[i] > 0][:3], [features[i] for i in notable if moved[i] < 0][:3]


def _measurements(sight: Sight) -> dict[str, float]:
    seen = sight.statistics
    return {name: getattr(seen, name) for name in seen.__slots__}


def _listed(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1] if parts else ""
