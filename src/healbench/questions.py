"""Category → its nine questions (paper, section "Evaluation Criteria and HealScore").

One file a coarse category holds the three coarse questions, shared word for word by all its fine pairs so that they
compare, and six fine questions a pair.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from healbench.errors import UsageError
from healbench.types import DIMENSIONS, Category, Dimension, Question, QuestionSet
from healbench.yamlfile import read_yaml

EMBEDDED = Path(__file__).parent / "data" / "questions"

EMBEDDED_PROVENANCE = "Written for this project; not yet reviewed by outside experts. Not the paper's own questions."
OWN_PROVENANCE = "The user's own questions."

VIEWER_OF_MODEL = "a typical adult viewer"
VIEWER_OF_HUMAN = "you"

ANCHORED = (1, 4, 7, 10)

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _CoarseQuestion(_Strict):
    measures: Text = Field(alias="construct")  # BaseModel has a method of that name
    text: Text
    anchors: dict[int, Text]

    @field_validator("anchors")
    @classmethod
    def _four(cls, anchors: dict[int, str]) -> dict[int, str]:
        if tuple(sorted(anchors)) != ANCHORED:
            raise ValueError(f"anchors are needed at 1, 4, 7 and 10, found {sorted(anchors)}")
        return dict(sorted(anchors.items()))


class _FineQuestion(_CoarseQuestion):
    kind: Literal["concrete", "relation", "affective", "render", "artifact"]


class _Fine(_Strict):
    alignment: list[_FineQuestion] = Field(min_length=2, max_length=2)
    heal: list[_FineQuestion] = Field(min_length=2, max_length=2)
    quality: list[_FineQuestion] = Field(min_length=2, max_length=2)


class _Function(_Strict):
    alignment: _CoarseQuestion
    heal: _CoarseQuestion
    quality: _CoarseQuestion


class QuestionFile(_Strict):
    """The shape of the file of one coarse category."""

    coarse: Text
    function: _Function
    fine: dict[str, _Fine]


class Questions:
    """The question sets of a folder, each coarse category read when it is first asked for."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = folder  # None for the embedded ones
        self.folder = folder or EMBEDDED
        self.provenance = EMBEDDED_PROVENANCE if folder is None else OWN_PROVENANCE
        self._files: dict[str, QuestionFile] = {}
        self._sets: dict[str, QuestionSet] = {}
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder}: no such folder of questions")

    def of(self, category: Category) -> QuestionSet:
        """The nine questions of a pair.

        Raises:
            UsageError: the folder has none for this pair, or the file has mistakes (with their lines).
        """
        if category.id not in self._sets:
            self._sets[category.id] = self._read(category)
        return self._sets[category.id]

    def _read(self, category: Category) -> QuestionSet:
        path = self.folder / f"{category.coarse}.yaml"
        if category.coarse not in self._files:
            if not path.is_file():
                raise UsageError(
                    f"no questions for {category.id!r}: {path} does not exist; write it or choose another category"
                )
            self._files[category.coarse] = read_yaml(path, QuestionFile)
        file = self._files[category.coarse]
        if category.fine not in file.fine:
            raise UsageError(f"no questions for {category.id!r}: {path} has none for {category.fine!r}; add them there")
        questions = tuple(q for dimension in DIMENSIONS for q in _three(file, category.fine, dimension))
        return QuestionSet(category, questions, question_digest(category.id, questions), self.provenance)


def question_digest(category: str, questions: tuple[Question, ...]) -> str:
    """sha256 over everything that a judge reads of a set; another wording is another digest."""
    content = [[q.dimension, q.k, q.text, sorted(q.anchors.items())] for q in questions]
    return hashlib.sha256(json.dumps([category, content], ensure_ascii=False).encode()).hexdigest()


def ask(question: Question, viewer: str) -> str:
    """The question's text with the person it asks about put in."""
    return question.text.replace("{viewer}", viewer)


def _three(file: QuestionFile, fine: str, dimension: Dimension) -> list[Question]:
    coarse: _CoarseQuestion = getattr(file.function, dimension)
    pair: list[_FineQuestion] = getattr(file.fine[fine], dimension)
    first = Question(dimension, 0, "function", coarse.measures, coarse.text, coarse.anchors)
    rest = (Question(dimension, k, q.kind, q.measures, q.text, q.anchors) for k, q in enumerate(pair, 1))
    return [first, *rest]
