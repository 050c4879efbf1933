"""What the embedded parts see in every calibration photograph and its degraded copies → calibration/sight.npz.

    python scripts/calibration/look.py PHOTOS      # the folder that photos.py filled

Arrays: `names` ("photo" or "photo|kind|parameter|seed"), `logits` (float32, one row a name; NaN where only the
statistics are needed), `statistics` (float64, in the order of `healbench.models.offline.statistics.NAMES`).
"""

from __future__ import annotations

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter

from healbench.images import load_picture
from healbench.models.offline.content import mean_logits
from healbench.models.offline.networks import ImageNet
from healbench.models.offline.statistics import measure
from scripts.calibration.photos import PHOTOS, read_photos

RATED_SIDE = 768
"""Raters saw every photograph at this long side; small ones were enlarged."""

COPY_SIDE = 512
COPIES = (("clean", 0.0), ("blur", 2.0), ("noise", 25.0), ("jpeg", 8.0))
"""Copies whose order in quality is required; none of them was rated."""


def degrade(image: Image.Image, kind: str, parameter: float, seed: int) -> Image.Image:
    """A worse copy: Gaussian blur (σ in pixels), noise (σ in grey levels), JPEG (quality) or brightness (factor)."""
    if kind == "blur":
        return image.filter(ImageFilter.GaussianBlur(parameter))
    if kind == "noise":
        pixels = np.asarray(image, dtype=np.float64)
        noisy = pixels + np.random.default_rng(seed).normal(0, parameter, pixels.shape)
        return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
    if kind == "jpeg":
        file = io.BytesIO()
        image.save(file, "JPEG", quality=int(parameter))
        return Image.open(file)
    if kind == "dark":
        return ImageEnhance.Brightness(image).enhance(parameter)
    if kind == "clean":
        return image
    raise ValueError(f"unknown kind of degradation {kind!r}")


def resized(rgb: NDArray[np.uint8], side: int) -> Image.Image:
    """The picture with its long side at `side`, enlarged where it is smaller."""
    image = Image.fromarray(rgb)
    scale = side / max(image.size)
    width, height = (max(1, round(length * scale)) for length in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def main(folder: Path) -> None:
    rated = [json.loads(line) for line in (PHOTOS.parent / "ratings.jsonl").read_text(encoding="utf-8").splitlines()]
    versions: dict[str, list[tuple[str, float, int]]] = {}
    for row in rated:
        if row["version"] is not None:
            version = row["version"]
            versions.setdefault(row["photo"], []).append((version["kind"], version["parameter"], version["seed"]))
    networks = (ImageNet("lite0"), ImageNet("lite2"))
    unseen = np.full(1000, np.nan, dtype=np.float32)

    def look(photo: str) -> list[tuple[str, NDArray[np.float32], NDArray[np.float64]]]:
        (path,) = folder.glob(f"{photo}.*")
        rgb = load_picture(path).rgb
        shown = resized(rgb, RATED_SIDE)
        seen = [(photo, mean_logits(networks, np.asarray(shown)), measure(np.asarray(shown)).as_array())]
        for kind, parameter, seed in sorted(set(versions.get(photo, []))):
            copy = np.asarray(degrade(shown, kind, parameter, seed))
            name = f"{photo}|{kind}|{parameter:g}|{seed}"
            seen.append((name, mean_logits(networks, copy), measure(copy).as_array()))
        small = resized(rgb, COPY_SIDE)
        for kind, parameter in COPIES:
            copy = np.asarray(degrade(small, kind, parameter, 0))
            seen.append((f"{photo}|copy|{kind}", unseen, measure(copy).as_array()))
        return seen

    with ThreadPoolExecutor() as pool:
        found = [row for rows in pool.map(look, [p["id"] for p in read_photos()]) for row in rows]
    names, logits, statistics = zip(*found, strict=True)
    out = PHOTOS.parent / "sight.npz"
    np.savez_compressed(out, names=np.array(names), logits=np.stack(logits), statistics=np.stack(statistics))
    print(f"{len(names)} pictures seen → {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
