"""Small real parts for tests: a judge of five lines, pictures of one colour, rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from healbench.judge import Scoring
from healbench.questions import Questions
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Granularity, Judgement, Picture, QuestionSet, Sample

CAT = "quiet_company/napping_cat"


class ToyJudge:
    """Rates a picture by its mean brightness; counts how often it is asked."""

    name = "toy"
    digest = "toy-1"
    prompt_digest = None
    granularity: Granularity = "item"
    params: Mapping[str, Any] = {}
    notice = "A toy."
    calls = 0

    def __init__(self, says: Callable[[Sample], Judgement] | None = None) -> None:
        self._says = says
        self.asked: list[str] = []

    def judge(
        self, samples: Sequence[Sample], pictures: Sequence[Picture], question_sets: Sequence[QuestionSet]
    ) -> Iterator[Judgement]:
        for sample, picture, _ in zip(samples, pictures, question_sets, strict=True):
            self.asked.append(sample.id)
            if self._says is not None:
                yield self._says(sample)
                continue
            rating = 1 + int(picture.rgb.mean()) * 9 // 255
            three = (rating, rating, rating)
            yield Judgement(
                ratings=dict.fromkeys(DIMENSIONS, three), rationale=dict.fromkeys(DIMENSIONS, f"brightness {rating}")
            )


def scoring(judge: ToyJudge | None = None) -> Scoring:
    """Everything but the pictures, with the toy judge and the embedded categories."""
    return Scoring(judge or ToyJudge(), Taxonomy.load(), Questions())


def picture(path: Path, grey: int = 200) -> Path:
    """A small picture of one grey."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), (grey, grey, grey)).save(path)
    return path


def sample(path: Path, **fields: Any) -> Sample:
    """A sample of a picture, with a text and a category unless told otherwise."""
    given = {"id": path.name, "image": path, "text": "a cat", "category": CAT, **fields}
    return Sample(**given)
