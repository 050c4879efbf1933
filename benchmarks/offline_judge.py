"""How many pictures a second the offline judge rates on one core, beside the raw network calls that it rests on.

    python -m benchmarks.offline_judge

The demo photographs at 512 pixels, decoding included; the raw call is the two classifiers' forward passes alone.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy is imported

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from healbench.images import load_picture
from healbench.models.offline.networks import ImageNet
from healbench.runs import Settings, scoring
from healbench.samples import DEMO, samples_from_jsonl
from healbench.types import Picture, Sample

ROUNDS = 3
SIDE = 512


def main() -> None:
    """Pins the process to one core where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    parts = scoring(Settings(), suggests=False)
    samples = samples_from_jsonl(DEMO, parts.taxonomy)
    with tempfile.TemporaryDirectory() as folder:
        shrunk = [_shrunk(sample, Path(folder)) for sample in samples]
        sets = [parts.questions.of(parts.taxonomy.category(s.category or "")) for s in samples]

        def rate() -> None:
            for sample, path, questions in zip(samples, shrunk, sets, strict=True):
                list(parts.judge.judge([sample], [load_picture(path)], [questions]))

        networks = (ImageNet("lite0"), ImageNet("lite2"))
        pictures: list[Picture] = [load_picture(path) for path in shrunk]

        def raw() -> None:
            for picture in pictures:
                for network in networks:
                    network.logits(picture.rgb)

        rate()
        raw()
        ours, theirs = _best(rate), _best(raw)
    count = len(samples)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count} pictures of {SIDE} px on one core: {count / ours:.1f} pictures/s (at least 5); "
        f"the two classifiers alone {count / theirs:.1f}/s, ratio {theirs / ours:.2f}; peak memory {peak:.0f} MB"
    )


def _best(work: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _shrunk(sample: Sample, folder: Path) -> Path:
    path = folder / f"{sample.id}.jpg"
    image = Image.open(sample.image).convert("RGB")
    image.thumbnail((SIDE, SIDE))
    image.save(path, quality=92)
    return path


if __name__ == "__main__":
    main()
