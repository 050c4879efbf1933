"""Plain measurements of a picture's pixels: exposure, contrast, colour, sharpness, noise, compression.

Each has a name that a rationale can quote and a source. They are measured on the picture reduced to 512 pixels on its
long side, since that is how large a person sees it; compression is measured on the original pixels, where its 8×8
grid is.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve, gaussian_laplace, sobel

from healbench.images import resize_long_side
from healbench.models.offline.brisque import MIN_SIDE, brisque

Floats = NDArray[np.float64]

SIDE = 512

_LUMA = np.array([0.299, 0.587, 0.114])
_IMMERKAER = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]])
_FLAT_BRISQUE = 100.0
"""For pictures whose contrast has no distribution, such as one flat colour: the worst end of the scale."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What was measured; all are finite for every picture.

    Attributes:
        brisque: naturalness of the pixel statistics, lower is better, about 0-100 (Mittal et al. 2012).
        sharpness: logarithm of the variance of the Laplacian of the luma (Pech-Pacheco et al. 2000), after a Gaussian
            of 1.5 pixels, so that noise does not pass for detail.
        noise: standard deviation of the noise in grey levels (Immerkær 1996).
        blocking: jump across the 8×8 grid relative to the jumps beside it, 1 where there is no grid (Wang et al. 2000).
        luminance: mean luma, 0-1.
        contrast: standard deviation of the luma, 0-1.
        crushed: share of pixels that are almost black.
        blown: share of pixels that are almost white.
        saturation: mean of (max - min) / max, 0-1.
        colourfulness: Hasler and Süsstrunk 2003, 0 (grey) to about 1.
        edges: share of pixels on a strong edge (visual clutter after Rosenholtz et al. 2007).
        green: share of pixels in which green leads; blue: share in which blue leads.
    """

    brisque: float
    sharpness: float
    noise: float
    blocking: float
    luminance: float
    contrast: float
    crushed: float
    blown: float
    saturation: float
    colourfulness: float
    edges: float
    green: float
    blue: float

    def as_array(self) -> Floats:
        """The measurements in the order of `NAMES`."""
        return np.array(astuple(self))


NAMES = tuple(f.name for f in fields(Statistics))


def measure(rgb: NDArray[np.uint8]) -> Statistics:
    """Measures a picture, uint8 of shape (height, width, 3)."""
    small = resize_long_side(rgb, SIDE).astype(np.float64)
    luma = small @ _LUMA
    largest, smallest = small.max(axis=2), small.min(axis=2)
    red, green, blue = (small[..., c] for c in range(3))
    red_green, yellow_blue = red - green, (red + green) / 2 - blue
    colourfulness = np.hypot(red_green.std(), yellow_blue.std()) + 0.3 * np.hypot(red_green.mean(), yellow_blue.mean())
    gradient = np.hypot(sobel(luma, axis=0), sobel(luma, axis=1))
    return Statistics(
        brisque=_brisque(small.astype(np.uint8)),
        sharpness=float(np.log1p(gaussian_laplace(luma, 1.5).var())),
        noise=_noise(luma),
        blocking=_blocking(rgb),
        luminance=float(luma.mean() / 255),
        contrast=float(luma.std() / 255),
        crushed=float((luma < 12).mean()),
        blown=float((luma > 250).mean()),
        saturation=float(((largest - smallest) / np.maximum(largest, 1)).mean()),
        colourfulness=float(colourfulness / 255),
        edges=float((gradient > 160).mean()),
        green=float(((green > red) & (green > blue)).mean()),
        blue=float(((blue > red) & (blue > green)).mean()),
    )


def _brisque(small: NDArray[np.uint8]) -> float:
    height, width = small.shape[:2]
    if min(height, width) < MIN_SIDE:
        times = -(-MIN_SIDE // min(height, width))
        small = small.repeat(times, axis=0).repeat(times, axis=1)
    try:
        return float(np.clip(brisque(small), -20, 120))
    except ValueError:
        return _FLAT_BRISQUE


def _noise(luma: Floats) -> float:
    """Mean absolute response of a kernel that is blind to planes and slow edges, scaled to a standard deviation."""
    response = convolve(luma, _IMMERKAER, mode="nearest")
    return float(np.sqrt(np.pi / 2) / 6 * np.abs(response).mean())


def _blocking(rgb: NDArray[np.uint8]) -> float:
    """How much larger the steps between neighbours are on the 8×8 grid than off it; the middle 1024 pixels suffice."""
    height, width = rgb.shape[:2]
    top, left = (max(0, (side - 1024) // 2) // 8 * 8 for side in (height, width))
    luma = rgb[top : top + 1024, left : left + 1024] @ _LUMA
    ratios = []
    for steps in (np.abs(np.diff(luma, axis=0)).mean(axis=1), np.abs(np.diff(luma, axis=1)).mean(axis=0)):
        on_grid = np.arange(len(steps)) % 8 == 7
        if on_grid.any():
            ratios.append((steps[on_grid].mean() + 0.5) / (steps[~on_grid].mean() + 0.5))
    return float(np.mean(ratios)) if ratios else 1.0
