"""WCAG AA contrast of the colours in report.css, in both themes."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = (files("healbench.report") / "static/report.css").read_text(encoding="utf-8")
TOKENS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", CSS)
}


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_as_defined() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(
    ("front", "back", "least"),
    [(t, b, 4.5) for t in ("text", "soft", "accent", "bad") for b in ("page", "surface")]
    + [("text", "sunken", 4.5), ("soft", "sunken", 4.5), ("text", "accent-soft", 4.5), ("accent", "accent-soft", 4.5)]
    + [("bad", "bad-soft", 4.5), ("control", "page", 3), ("control", "surface", 3), ("text", "fill", 3)]
    + [(fill, back, 3) for fill in ("fill", "bad-fill") for back in ("page", "surface")],
)
def test_colours_can_be_told_apart(front: str, back: str, least: float, theme: int) -> None:
    assert contrast(TOKENS[front][theme], TOKENS[back][theme]) >= least
