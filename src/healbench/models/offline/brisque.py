"""BRISQUE: how natural an image's pixel statistics are, without a reference image.

Mittal, Moorthy and Bovik, "No-Reference Image Quality Assessment in the Spatial Domain", IEEE Transactions
on Image Processing 21(12), 2012. Features and support vector regression follow the PyPI package `brisque`
0.2.0 (Apache-2.0), whose trained regression is embedded; this module needs neither OpenCV, scikit-image nor
libsvm, and runs no pickle.

Two limits of the original, kept here. Where a region is perfectly flat, the signs of rounding errors count as
contrast: in graphics that are mostly flat, a change of 1e-15 moves the score by up to 10 points. And the two
diagonals are not treated alike: mirroring a photograph can move the score by 10 points and more.
"""

import functools
import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d
from scipy.special import gammaln

from healbench.models.offline.networks import damaged, read_weights

MIN_SIDE = 32

_Float = NDArray[np.float64]
_OFFSET = np.arange(-3, 4)
_KERNEL = np.exp(-(_OFFSET**2) / (2 * (7 / 6) ** 2))
_KERNEL /= _KERNEL.sum()
_LUMA = np.array([0.2125, 0.7154, 0.0721])


class _Regression(NamedTuple):
    """The trained support vector regression and the ranges its features are scaled by."""

    support_vectors: _Float
    coefficients: _Float
    rho: _Float
    gamma: _Float
    feature_min: _Float
    feature_max: _Float


@functools.cache
def _regression() -> _Regression:
    data = read_weights("brisque.npz")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return _Regression(*(arrays[name] for name in _Regression._fields))
    except Exception as error:  # numpy, zipfile and zlib errors share no base class below Exception
        raise damaged("brisque.npz", error) from error


def brisque(image: NDArray[np.uint8]) -> float:
    """Return the BRISQUE score of a grey (H×W) or RGB (H×W×3) image: lower is better, about 0 to 100.

    Raises:
        ValueError: The image is not 8-bit grey or RGB, has a side below 32 pixels, or is one flat colour,
            for which the statistics do not exist.
    """
    grey = _grey(image)
    features = np.concatenate([_features(grey), _features(_halve(grey))])
    model = _regression()
    scaled = -1 + 2 / (model.feature_max - model.feature_min) * (features - model.feature_min)
    distances = ((model.support_vectors - scaled) ** 2).sum(axis=1)
    score = float((model.coefficients * np.exp(-model.gamma * distances)).sum() - model.rho)
    if not np.isfinite(score):
        raise ValueError("BRISQUE is undefined for this image: its contrast has no distribution")
    return score


def _grey(image: NDArray[np.uint8]) -> _Float:
    """Check the image and return its luminance from 0 to 1."""
    if image.dtype != np.uint8 or not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)):
        raise ValueError(f"BRISQUE needs an 8-bit grey or RGB image, got {image.dtype} {image.shape}")
    height, width = image.shape[:2]
    if min(height, width) < MIN_SIDE:
        raise ValueError(f"BRISQUE needs at least {MIN_SIDE} pixels a side, got {width}×{height}")
    if image.ndim == 2:
        grey = image / 255
    else:  # not `@`: a matrix product rounds differently from one processor to another
        red, green, blue = (image[..., channel] * (_LUMA[channel] / 255) for channel in range(3))
        grey = red + green + blue
    if np.ptp(grey) == 0:
        raise ValueError("BRISQUE is undefined for an image of one flat colour")
    return grey


def _halve(grey: _Float) -> _Float:
    """Halve both sides as `cv2.resize(..., fx=1/2, fy=1/2, interpolation=cv2.INTER_CUBIC)` does.

    At exactly half size every output lies midway between two pixels, so the cubic kernel (a = −0.75) always
    has the same four weights; borders are repeated, and an odd side rounds half to even.
    """
    for axis in (0, 1):
        size = round(grey.shape[axis] / 2)
        padded = np.pad(grey, [(1, 3) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
        lines = np.moveaxis(padded, axis, 0)
        taps = [lines[k : k + 2 * size : 2] for k in range(4)]
        half = 0.59375 * (taps[1] + taps[2]) - 0.09375 * (taps[0] + taps[3])
        grey = np.moveaxis(half, 0, axis)
    return np.ascontiguousarray(grey)


def _smooth(image: _Float) -> _Float:
    """Convolve with the 7×7 Gaussian of σ 7/6; beyond the border the image is 0."""
    down = correlate1d(image, _KERNEL, axis=0, mode="constant")
    smoothed: _Float = correlate1d(down, _KERNEL, axis=1, mode="constant")
    return smoothed


def _features(grey: _Float) -> _Float:
    """Return the 18 features of one scale: how the normalised contrast and its products are distributed."""
    mean = _smooth(grey)
    deviation = np.sqrt(np.abs(mean * mean - _smooth(grey * grey)))
    contrast = (grey - mean) / (deviation + 1 / 255)
    maps = [
        contrast,
        contrast[:, :-1] * contrast[:, 1:],
        contrast[:-1] * contrast[1:],
        contrast[:-1, :-1] * contrast[1:, 1:],
        contrast[1:, :-1] * contrast[:-1, 1:],
    ]
    left, right, ratio = np.array([_moments(values) for values in maps]).T
    shape = _shape(ratio)
    scale = np.exp(gammaln(2 / shape) - (gammaln(1 / shape) + gammaln(3 / shape)) / 2)
    offset = (np.sqrt(right) - np.sqrt(left)) * scale
    products = np.stack([shape, offset, left, right], axis=1)[1:]
    return np.concatenate([[shape[0], (left[0] + right[0]) / 2], products.ravel()])


def _moments(values: _Float) -> tuple[float, float, float]:
    """Return the mean squares below and above 0, and the ratio that fixes the distribution's shape."""
    negative = np.minimum(values, 0)
    negatives = np.count_nonzero(values < 0)
    square_left = float((negative * negative).sum())
    square_all = float((values * values).sum())
    absolute = float(values.sum() - 2 * negative.sum())
    if negatives in (0, values.size) or square_left == 0 or square_all <= square_left:
        raise ValueError("BRISQUE is undefined for this image: its contrast has only one sign")
    left = square_left / negatives
    right = (square_all - square_left) / (values.size - negatives)
    skew = np.sqrt(left / right)
    r_hat = absolute**2 / values.size / square_all
    return left, right, float(r_hat * (skew**3 + 1) * (skew + 1) / (skew**2 + 1) ** 2)


def _shape(ratio: _Float) -> _Float:
    """Solve Γ(2/α)² / (Γ(1/α)·Γ(3/α)) = ratio for the shape α between 0.05 and 50, by bisection of log α.

    The left side grows with α; a ratio beyond its ends gives the end.
    """
    target = np.log(ratio)
    low = np.full_like(ratio, np.log(0.05))
    high = np.full_like(ratio, np.log(50.0))
    for _ in range(50):
        middle = (low + high) / 2
        inverse = np.exp(-middle)
        below = 2 * gammaln(2 * inverse) - gammaln(inverse) - gammaln(3 * inverse) < target
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return np.exp((low + high) / 2)
