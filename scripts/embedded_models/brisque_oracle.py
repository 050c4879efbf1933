# mypy: disable-error-code="import-not-found"
"""Make tests/data/brisque/: small photos and the scores that the original `brisque` package gives them.

    python brisque_oracle.py PHOTO_DIR [--out DIR] [--scores FILE]

Runs in the environment of requirements-oracle.txt. PHOTO_DIR holds scikit-learn's `china.jpg` and `flower.jpg`.
Every image is stored, so the test needs neither scikit-learn nor the same resampling or JPEG code.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from brisque import BRISQUE
from PIL import Image, ImageFilter

DATA = Path(__file__).parents[2] / "tests/data"


def variants(china: Image.Image, flower: Image.Image) -> dict[str, Image.Image]:
    """Return clean, blurred, blocky, noisy, dark and odd-sized versions of the two photos."""
    noise = np.random.default_rng(0).normal(0, 25, (flower.height, flower.width, 3))
    noisy = np.clip(np.asarray(flower) + noise, 0, 255).astype(np.uint8)
    blocky = china.resize((china.width // 4, china.height // 4), Image.Resampling.BOX)
    return {
        "china": china,
        "china_blurred": china.filter(ImageFilter.GaussianBlur(2)),
        "china_blocky": blocky.resize(china.size, Image.Resampling.NEAREST),
        "flower": flower,
        "flower_noisy": Image.fromarray(noisy).crop((0, 0, 131, 129)),
        "flower_dark": flower.point(lambda value: value // 6),
        "flower_odd": flower.crop((10, 7, 163, 104)),
    }


def main() -> None:
    """Write the photos and their scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--out", type=Path, default=DATA / "brisque")
    parser.add_argument("--scores", type=Path, default=DATA / "brisque_oracle.json")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    photos = []
    for name in ("china.jpg", "flower.jpg"):
        photo = Image.open(args.photos / name).convert("RGB")
        photos.append(photo.resize((256, photo.height * 256 // photo.width), Image.Resampling.LANCZOS))
    original = BRISQUE(url=False)
    scores = {}
    for name, image in variants(*photos).items():
        image.save(args.out / f"{name}.png", optimize=True)
        scores[name] = round(original.score(np.asarray(image)), 6)  # the last digits vary from run to run
        print(f"{name:16} {scores[name]:9.4f}")
    table = {"oracle": "brisque==0.2.0", "scores": scores}
    args.scores.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
