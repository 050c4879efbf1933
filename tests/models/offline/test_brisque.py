"""BRISQUE against the original package, and its refusals."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from healbench.models.offline.brisque import brisque

DATA = Path(__file__).parents[2] / "data"
ORACLE: dict[str, float] = json.loads((DATA / "brisque_oracle.json").read_text())["scores"]


def photo(name: str) -> NDArray[np.uint8]:
    return np.asarray(Image.open(DATA / "brisque" / f"{name}.png"))


@pytest.mark.parametrize("name", ORACLE)
def test_score_equals_the_original_package(name: str) -> None:
    assert brisque(photo(name)) == pytest.approx(ORACLE[name], abs=0.05)


def test_every_degradation_scores_worse_than_its_clean_photo() -> None:
    assert brisque(photo("china")) < min(brisque(photo(name)) for name in ("china_blurred", "china_blocky"))
    assert brisque(photo("flower")) < min(brisque(photo(name)) for name in ("flower_noisy", "flower_dark"))


def test_grey_image_equals_the_same_image_in_rgb() -> None:
    grey = photo("flower")[..., 1]
    assert brisque(grey) == pytest.approx(brisque(np.repeat(grey[..., None], 3, axis=2)), abs=0.05)


def test_same_image_gives_exactly_the_same_score_in_any_thread_and_memory_order() -> None:
    image = photo("china")
    turned = np.asfortranarray(image)
    with ThreadPoolExecutor(4) as pool:
        scores = set(pool.map(brisque, [image, turned] * 4))
    assert len(scores) == 1


def test_smallest_accepted_side() -> None:
    image = photo("china")
    assert np.isfinite(brisque(image[60:92, 60:92]))
    with pytest.raises(ValueError, match="at least 32 pixels"):
        brisque(image[60:91, 60:160])


@pytest.mark.parametrize("level", [0, 128, 255])
def test_flat_image_is_refused(level: int) -> None:
    with pytest.raises(ValueError, match="flat colour"):
        brisque(np.full((64, 64, 3), level, np.uint8))


@pytest.mark.parametrize(
    "image",
    [np.zeros((64, 64, 4), np.uint8), np.zeros((64, 64, 3), np.float32), np.zeros(64, np.uint8)],
    ids=["rgba", "float", "one-dimensional"],
)
def test_other_array_is_refused(image: NDArray[np.uint8]) -> None:
    with pytest.raises(ValueError, match="8-bit grey or RGB"):
        brisque(image)
