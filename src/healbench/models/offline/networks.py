"""The embedded networks: two ImageNet classifiers and a sentence encoder, on onnxruntime and one thread.

Weights are stored small and computed in float32 (see weights/MANIFEST.json). Loading is lazy; one session for
each file is shared by all objects and threads. Nothing here needs torch or a download.
"""

import functools
import hashlib
import json
import threading
from importlib import resources
from typing import Any, Literal, NamedTuple

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray
from PIL import Image
from tokenizers import Tokenizer

from healbench.errors import SetupError

_Floats = NDArray[np.float32]
_INPUT_SIDES = {"lite0": 224, "lite2": 260}
_loading = threading.RLock()

REVISION = "1"
"""To be raised with every change of code that moves an offline rating."""


def read_weights(name: str) -> bytes:
    """Return the content of an embedded weight file.

    Raises:
        SetupError: The file is missing or cannot be read.
    """
    file = resources.files("healbench.models.offline") / "weights" / name
    try:
        return file.read_bytes()
    except OSError as error:
        raise SetupError(
            f"The embedded weight file {name} is missing or unreadable ({file}); reinstall healbench."
        ) from error


def damaged(name: str, error: Exception) -> SetupError:
    """Return the exception that says a weight file is there but cannot be used."""
    return SetupError(f"The embedded weight file {name} is damaged; reinstall healbench. ({error})")


@functools.cache
def _load_session(name: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    data = read_weights(name)
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class below Exception
        raise damaged(name, error) from error


def _session(name: str) -> onnxruntime.InferenceSession:
    with _loading:
        return _load_session(name)


class ImageNetClass(NamedTuple):
    """One of the 1000 classes: its first name, all its names, and what WordNet says it is."""

    label: str
    lemmas: tuple[str, ...]
    definition: str


@functools.cache
def imagenet_classes() -> tuple[ImageNetClass, ...]:
    """Return the 1000 classes in the order of the logits."""
    name = "imagenet_classes.json"
    data = read_weights(name)
    try:
        rows: list[dict[str, Any]] = json.loads(data)
        return tuple(ImageNetClass(row["label"], tuple(row["lemmas"]), row["definition"]) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(name, error) from error


class ImageNet:
    """EfficientNet-lite, trained on ImageNet. Safe to use from several threads."""

    def __init__(self, variant: Literal["lite0", "lite2"] = "lite0") -> None:
        """Choose the network; its file is loaded with the first image."""
        if variant not in _INPUT_SIDES:
            raise ValueError(f"variant must be one of {', '.join(_INPUT_SIDES)}, got {variant!r}")
        self.variant = variant
        self.side = _INPUT_SIDES[variant]

    def logits(self, rgb: NDArray[np.uint8]) -> tuple[_Floats, _Floats]:
        """Return the 1000 logits and the 1280 pooled features of an H×W×3 image."""
        session = _session(f"efficientnet_{self.variant}.onnx")
        logits, features = session.run(["logits", "features"], {"image": self.preprocess(rgb)})
        return logits, features

    def preprocess(self, rgb: NDArray[np.uint8]) -> _Floats:
        """Return the network's input, 1×3×side×side, prepared as in EfficientNet-lite's own evaluation.

        The centred square of side/(side + 32) of the shorter edge, resized bicubically, then (x − 127) / 128.
        Pillow's bicubic filter is what timm uses for these weights.
        """
        if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3 or min(rgb.shape) == 0:
            raise ValueError(f"expected an H×W×3 uint8 image, got {rgb.dtype} of shape {rgb.shape}")
        height, width = rgb.shape[:2]
        crop = max(1, int(self.side / (self.side + 32) * min(height, width)))
        left, top = (width - crop + 1) // 2, (height - crop + 1) // 2
        square = Image.fromarray(np.ascontiguousarray(rgb[top : top + crop, left : left + crop]))
        pixels = np.asarray(square.resize((self.side, self.side), Image.Resampling.BICUBIC), dtype=np.float32)
        return np.ascontiguousarray(((pixels - 127) / 128).transpose(2, 0, 1)[None])


@functools.cache
def _load_tokenizer() -> Tokenizer:
    name = "tokenizer.json"
    data = read_weights(name)
    try:
        return Tokenizer.from_str(data.decode())
    except Exception as error:  # tokenizers raises bare Exception
        raise damaged(name, error) from error


class SentenceEncoder:
    """all-MiniLM-L6-v2: a text's meaning as a unit vector of 384 numbers. Safe to use from several threads.

    Texts go through one at a time, so a vector never depends on what else is encoded. The first 256 tokens
    count.
    """

    def __init__(self, cache_size: int = 4096) -> None:
        """Keep the vectors of the last `cache_size` texts; files are loaded with the first text."""
        self._cached = functools.lru_cache(maxsize=cache_size)(self._encode)

    def encode(self, text: str) -> _Floats:
        """Return the read-only vector of `text`.

        Raises:
            ValueError: The text is blank, or holds half of a surrogate pair and so is no Unicode text.
        """
        if not text.strip():
            raise ValueError("a blank text has no meaning to encode")
        text.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate
        return self._cached(text)

    @staticmethod
    def _encode(text: str) -> _Floats:
        with _loading:
            tokenizer = _load_tokenizer()
        ids = np.array(tokenizer.encode(text).ids, dtype=np.int64)
        (vector,) = _session("minilm.onnx").run(["embedding"], {"ids": ids})
        result: _Floats = vector
        result.flags.writeable = False
        return result


@functools.cache
def weights_digest() -> str:
    """sha256 over what the offline ratings depend on: the manifests of the weights, the concepts and the revision."""
    folder = resources.files("healbench.models.offline")
    parts = [read_weights("MANIFEST.json"), read_weights("CALIBRATION.json"), (folder / "concepts.yaml").read_bytes()]
    return hashlib.sha256(b"\0".join([*parts, REVISION.encode()])).hexdigest()
