"""The embedded networks on real photos and texts, and their weight files."""

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from healbench.errors import SetupError
from healbench.models.offline import brisque as brisque_module
from healbench.models.offline import networks
from healbench.models.offline.networks import ImageNet, SentenceEncoder, imagenet_classes

Variant = Literal["lite0", "lite2"]
VARIANTS: tuple[Variant, ...] = ("lite0", "lite2")
PHOTOS = Path(__file__).parents[2] / "data" / "offline"
WEIGHTS = Path(str(resources.files("healbench.models.offline") / "weights"))
MANIFEST: list[dict[str, Any]] = json.loads((WEIGHTS / "MANIFEST.json").read_text())["files"]


def photo(name: str) -> NDArray[np.uint8]:
    return np.asarray(Image.open(PHOTOS / name))


# Photos


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("name", "expected"), [("cat.jpg", {"tabby", "tiger cat", "Egyptian cat"}), ("coffee.jpg", {"espresso", "cup"})]
)
def test_known_photo_gets_its_class(variant: Variant, name: str, expected: set[str]) -> None:
    logits, _ = ImageNet(variant).logits(photo(name))
    best = {imagenet_classes()[int(i)].label for i in np.argsort(-logits)[:3]}
    assert best & expected


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_and_features_have_their_shapes_and_repeat_exactly(variant: Variant) -> None:
    image = photo("cat.jpg")
    logits, features = ImageNet(variant).logits(image)
    assert (logits.shape, features.shape) == ((1000,), (1280,))
    assert logits.dtype == features.dtype == np.float32
    with ThreadPoolExecutor(4) as pool:
        for again, features_again in pool.map(ImageNet(variant).logits, [image] * 8):
            assert np.array_equal(again, logits)
            assert np.array_equal(features_again, features)


def test_preprocessing_takes_the_centred_square() -> None:
    wide = np.zeros((100, 300, 3), np.uint8)
    wide[:, 100:200] = 255
    expected = np.full((1, 3, 224, 224), 1.0, np.float32)
    assert np.array_equal(ImageNet("lite0").preprocess(wide), expected)
    assert np.array_equal(ImageNet("lite0").preprocess(wide.transpose(1, 0, 2)), expected)


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (7, 3)])
def test_tiny_image_has_finite_logits(shape: tuple[int, int]) -> None:
    logits, _ = ImageNet().logits(np.full((*shape, 3), 90, np.uint8))
    assert np.isfinite(logits).all()


@pytest.mark.parametrize(
    "image",
    [np.zeros((8, 8), np.uint8), np.zeros((8, 8, 4), np.uint8), np.zeros((8, 8, 3)), np.zeros((0, 8, 3), np.uint8)],
    ids=["grey", "rgba", "float", "empty"],
)
def test_other_array_is_refused(image: NDArray[np.uint8]) -> None:
    with pytest.raises(ValueError, match="H×W×3 uint8"):
        ImageNet().logits(image)


def test_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="lite0, lite2"):
        ImageNet("lite9")  # type: ignore[arg-type]


def test_classes_are_the_thousand_in_model_order() -> None:
    classes = imagenet_classes()
    assert len(classes) == 1000
    assert [classes[i].label for i in (0, 281, 999)] == ["tench", "tabby", "toilet tissue"]
    assert all(c.definition and c.lemmas[0] == c.label for c in classes)


# Texts


def test_vector_has_unit_length_and_repeats_exactly() -> None:
    vector = SentenceEncoder().encode("a calm lake at sunrise")
    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    other = SentenceEncoder(cache_size=0)
    with ThreadPoolExecutor(4) as pool:
        for again in pool.map(other.encode, ["a calm lake at sunrise", "a busy road"] * 4):
            assert np.array_equal(again, vector) or np.array_equal(again, other.encode("a busy road"))


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("a kitten asleep on a blanket", "a sleeping cat", "a stock market crash"),
        ("a calm lake at sunrise", "still water in the early morning", "a mechanic repairs an engine"),
        ("someone crying alone", "a sad and lonely person", "a bowl of fruit"),
    ],
)
def test_related_text_is_nearer_than_unrelated_text(text: str, near: str, far: str) -> None:
    encode = SentenceEncoder().encode
    assert encode(text) @ encode(near) > encode(text) @ encode(far) + 0.2


def test_cached_vector_is_the_same_object_and_cannot_be_changed() -> None:
    encoder = SentenceEncoder()
    vector = encoder.encode("a red kite")
    assert encoder.encode("a red kite") is vector
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 0


def test_text_counts_up_to_the_token_limit() -> None:
    encoder = SentenceEncoder()
    assert np.array_equal(encoder.encode("long " * 254), encoder.encode("long " * 5000))
    assert not np.array_equal(encoder.encode("long " * 253), encoder.encode("long " * 254))


@pytest.mark.parametrize("text", ["", "  \n"])
def test_blank_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="blank"):
        SentenceEncoder().encode(text)


@pytest.mark.parametrize("text", ["🌊", "静かな湖", "\x00", "e\u0301toile"])
def test_unusual_text_gives_a_unit_vector(text: str) -> None:
    assert np.linalg.norm(SentenceEncoder().encode(text)) == pytest.approx(1, abs=1e-6)


def test_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        SentenceEncoder().encode("a lake \ud800")


# Weight files


@pytest.mark.parametrize("entry", MANIFEST, ids=[entry["name"] for entry in MANIFEST])
def test_file_is_the_one_in_the_manifest(entry: dict[str, Any]) -> None:
    data = (WEIGHTS / entry["name"]).read_bytes()
    assert len(data) == entry["bytes"]
    assert hashlib.sha256(data).hexdigest() == entry["sha256"]


def test_manifest_and_licences_cover_every_file_within_fifty_megabytes() -> None:
    files = [path for path in WEIGHTS.iterdir() if path.name not in {"MANIFEST.json", "LICENSES.md"}]
    licences = (WEIGHTS / "LICENSES.md").read_text()
    calibrated = {"CALIBRATION.json", *json.loads((WEIGHTS / "CALIBRATION.json").read_text())["files"]}
    assert {path.name for path in files} == {entry["name"] for entry in MANIFEST} | calibrated
    assert all(f"`{path.name}`" in licences for path in files)
    assert sum(path.stat().st_size for path in files) <= 50_000_000


LOADERS: dict[str, Callable[[], object]] = {
    "efficientnet_lite0.onnx": lambda: ImageNet("lite0").logits(photo("cat.jpg")),
    "minilm.onnx": lambda: SentenceEncoder().encode("a lake"),
    "tokenizer.json": lambda: SentenceEncoder().encode("a lake"),
    "imagenet_classes.json": imagenet_classes,
    "brisque.npz": lambda: brisque_module.brisque(photo("cat.jpg")),
}


@pytest.fixture
def empty_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation whose weight folder is `tmp_path/weights`, with nothing loaded yet."""
    caches = (networks._load_session, networks._load_tokenizer, imagenet_classes, brisque_module._regression)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr("healbench.models.offline.networks.resources.files", lambda _: tmp_path)
    (tmp_path / "weights").mkdir()
    yield tmp_path / "weights"
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage"])
def test_missing_or_damaged_file_is_named(name: str, damage: str, empty_weights: Path) -> None:
    for other in WEIGHTS.iterdir():
        if other.name != name:
            (empty_weights / other.name).symlink_to(other)
    whole = (WEIGHTS / name).read_bytes()
    content = {"empty": b"", "cut": whole[: len(whole) // 2], "garbage": b"\xff\xfenot a weight file" * 9}
    if damage != "missing":
        (empty_weights / name).write_bytes(content[damage])
    with pytest.raises(SetupError, match=name):
        LOADERS[name]()
