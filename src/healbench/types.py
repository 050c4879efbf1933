"""The nouns: what flows through HealBench. Frozen, typed, and free of any behaviour beyond their own arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Dimension = Literal["alignment", "heal", "quality"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
"""The three dimensions of HealScore, in the paper's order."""

RATING_MIN, RATING_MAX = 1, 10
"""Every question is answered on 1-10; 10 is better (paper, "Evaluation Criteria and HealScore")."""

Granularity = Literal["item", "dimension"]
Source = Literal["given", "suggested", "category"]

UnscoredCode = Literal[
    "image_unreadable",
    "refused",
    "unparsable",
    "schema_violation",
    "truncated",
    "timeout",
    "server_error",
    "rate_limited",
    "too_large",
    "blocked",
    "nan",
    "missing",
    "cost_limit",
]

RETRIED_CODES: frozenset[UnscoredCode] = frozenset(
    {"image_unreadable", "missing", "too_large", "timeout", "server_error", "rate_limited", "cost_limit"}
)
"""Unscored rows that the next start tries again: the cause may be gone, and no reply was paid for."""


@dataclass(frozen=True, slots=True)
class HealClass:
    """One of the six HEAL classes: what a category restores (paper, section "Taxonomy")."""

    id: str
    name: str
    name_zh: str
    definition: str


@dataclass(frozen=True, slots=True)
class Category:
    """A (coarse, fine) pair. Written `coarse/fine` wherever it is text.

    Attributes:
        valid: False for pairs that cannot be judged; they stay in the taxonomy but no sample may carry one.
        residual: True for the 19th coarse category "others", so class means can be shown without it.
        healing_function: one sentence that holds for the whole coarse category.
        breakers: what undoes the comfort of the coarse category.
        not_this: the neighbouring pair that is easily confused, and how to tell.
        eval_instances: how many prompts of the open eval set belong to it; 0 where invalid.
    """

    coarse: str
    fine: str
    heal_class: str
    name: str
    name_zh: str
    coarse_name: str
    definition: str
    healing_function: str
    visual_cues: tuple[str, ...]
    breakers: tuple[str, ...]
    not_this: str
    constructs: tuple[str, ...]
    valid: bool
    residual: bool
    eval_instances: int

    @property
    def id(self) -> str:
        return f"{self.coarse}/{self.fine}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One picture with the text and the category that it is judged against.

    Attributes:
        id: unique within a run.
        image: path of the picture.
        text: prompt or caption; None until it is taken from the category.
        category: `coarse/fine`; None until it is suggested from the picture.
        source_image, instruction: only for editing.
        extra: keys of the input row that HealBench does not know; kept as they came.
        problem: what is wrong with the input row; such a sample is unscored.
    """

    id: str
    image: Path
    text: str | None
    category: str | None
    text_source: Source = "given"
    category_source: Source = "given"
    source_image: Path | None = None
    instruction: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    problem: Unscored | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """The pixels that scorer, judge, report and web page share; only `healbench.images` makes one.

    Attributes:
        rgb: upright sRGB, uint8, shape (height, width, 3).
        sha256: of the file's bytes, hexadecimal.
        notes: what was done to the file, e.g. "rotated by its EXIF orientation".
    """

    path: Path
    rgb: NDArray[np.uint8]
    sha256: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One of the nine questions of a category pair.

    Attributes:
        k: 0 for the coarse question, 1 and 2 for the fine ones.
        kind: function (k=0), or concrete, relation, affective, render, artifact.
        anchors: what ratings 1, 4, 7 and 10 look like.
    """

    dimension: Dimension
    k: int
    kind: str
    construct: str
    text: str
    anchors: Mapping[int, str]

    @property
    def level(self) -> Literal["coarse", "fine"]:
        return "coarse" if self.k == 0 else "fine"


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The nine questions of one category pair, three a dimension, k = 0, 1, 2 in each.

    Attributes:
        digest: sha256 over category, texts and anchors; part of every score row's key.
        provenance: who wrote the set and who has reviewed it.
    """

    category: Category
    questions: tuple[Question, ...]
    digest: str
    provenance: str

    def of(self, dimension: Dimension) -> tuple[Question, ...]:
        """The three questions of one dimension, k = 0, 1, 2."""
        return tuple(q for q in self.questions if q.dimension == dimension)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of an eval set.

    Attributes:
        text: a caption-like description of one picture.
        instruction: for editors: what would turn a neutral or uneasy photo towards the category.
        tags: what the picture is like: region, season, time, medium, beings, viewpoint.
    """

    id: str
    text: str
    category: str
    instruction: str
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a question or a prompt breaks.

    Attributes:
        place: which one, e.g. `quiet_company/napping_cat heal.1`.
        rule: the rule's name.
    """

    place: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Unscored:
    """Why a row has no score. A failure is never a number."""

    code: UnscoredCode
    message: str


Ratings = Mapping[Dimension, tuple[int | None, int | None, int | None]]
"""Nine ratings, three a dimension in the order k = 0, 1, 2; None where the judge gave none."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said about one sample: nine ratings, or three dimension scores, or the reason for neither.

    Attributes:
        ratings: for an item judge.
        scores: for a dimension judge such as THS: each 1-10.
        rationale: one sentence or more a dimension.
        raw_reply: the model's own words where there are any; kept so that nothing has to be asked twice.
    """

    ratings: Ratings | None = None
    scores: Mapping[Dimension, float] | None = None
    rationale: Mapping[Dimension, str] = field(default_factory=dict)
    raw_reply: str | None = None
    unscored: Unscored | None = None


@dataclass(frozen=True, slots=True)
class FailureRule:
    """When a dimension fails. The paper gives no threshold; these are settings, stored with the run.

    Attributes:
        mean_below: a dimension fails when its mean is below this.
        rating_at_most: or when one of its three ratings is this or less (item judges only).
    """

    mean_below: float = 5.0
    rating_at_most: int = 3


@dataclass(frozen=True, slots=True)
class HealScore:
    """The paper's score of one picture: three dimension means on 1-10 and their 1:2:1 sum.

    Args:
        alignment, heal, quality: each the mean of its three ratings.
        ratings: the nine ratings, where the judge gave them; they take part in the failure rule.
        rule: see `FailureRule`.

    Raises:
        ValueError: a dimension is not a finite number in [1, 10], or a rating is missing or out of range.
            A score with any missing rating does not exist.

    >>> HealScore(alignment=6.0, heal=4.5, quality=7.0).total
    22.0
    >>> HealScore(alignment=6.0, heal=4.5, quality=7.0).failures
    ('heal',)
    """

    alignment: float
    heal: float
    quality: float
    ratings: Mapping[Dimension, tuple[int, int, int]] | None = None
    rule: FailureRule = FailureRule()

    def __post_init__(self) -> None:
        for dimension in DIMENSIONS:
            value = self[dimension]
            if not (math.isfinite(value) and RATING_MIN <= value <= RATING_MAX):
                raise ValueError(f"{dimension} is {value}, not a number from {RATING_MIN} to {RATING_MAX}")
            if self.ratings is None:
                continue
            ratings = self.ratings[dimension]
            if len(ratings) != 3 or not all(RATING_MIN <= r <= RATING_MAX for r in ratings):
                raise ValueError(f"{dimension} has the ratings {ratings}, not three from {RATING_MIN} to {RATING_MAX}")
            if not math.isclose(sum(ratings) / 3, value):
                raise ValueError(f"{dimension} is {value}, which is not the mean of its ratings {ratings}")

    def __getitem__(self, dimension: Dimension) -> float:
        return {"alignment": self.alignment, "heal": self.heal, "quality": self.quality}[dimension]

    @property
    def total(self) -> float:
        """alignment + 2 * heal + quality, 4-40 (paper, "Evaluation Criteria and HealScore")."""
        return self.alignment + 2 * self.heal + self.quality

    @property
    def failures(self) -> tuple[Dimension, ...]:
        """The dimensions that fail, in the paper's order."""
        return tuple(d for d in DIMENSIONS if self._fails(d))

    @property
    def healing(self) -> bool:
        """True only if no dimension fails: one failure disqualifies (paper, introduction)."""
        return not self.failures

    def _fails(self, dimension: Dimension) -> bool:
        if self[dimension] < self.rule.mean_below:
            return True
        return self.ratings is not None and min(self.ratings[dimension]) <= self.rule.rating_at_most


class Judge(Protocol):
    """Answers the nine questions of each sample. Found by name in the entry-point group `healbench.judge`.

    Attributes:
        name: as on the command line, e.g. "offline" or "openai:MODEL".
        digest: changes whenever the same input could get other ratings (weights, code, calibration).
        prompt_digest: of the prompt template; None for judges without one.
        params: settings that can change a rating; part of every row's key.
        notice: a sentence shown wherever the numbers are; "" where none is needed.
        calls: to a model on some server, for each sample that all goes well with; 0 where nothing is asked.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def prompt_digest(self) -> str | None: ...
    @property
    def granularity(self) -> Granularity: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def notice(self) -> str: ...
    @property
    def calls(self) -> int: ...

    def judge(
        self, samples: Sequence[Sample], pictures: Sequence[Picture], question_sets: Sequence[QuestionSet]
    ) -> Iterator[Judgement]:
        """One judgement a sample, in order. Anything wrong with one sample is an `Unscored` of that sample."""
        ...


class Embedder(Protocol):
    """Puts pictures and texts into one space. Found in the entry-point group `healbench.embedder`."""

    @property
    def digest(self) -> str: ...

    def embed_picture(self, picture: Picture) -> NDArray[np.float32]:
        """A unit vector, shape (d,)."""
        ...

    def embed_text(self, text: str) -> NDArray[np.float32]:
        """A unit vector, shape (d,)."""
        ...


class Chat(Protocol):
    """Text and pictures in, text out. Found by name in the entry-point group `healbench.chat`.

    Attributes:
        name: as on the command line, e.g. "openai:MODEL".
        digest: changes whenever the same prompt goes to another model or with other settings.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...

    def reply(self, prompt: str, pictures: Sequence[Picture] = (), schema: Mapping[str, Any] | None = None) -> str:
        """The model's own words, never empty and never made up here.

        Args:
            schema: JSON schema that the reply should follow; whoever asks still has to check the reply.

        Raises:
            ChatError: there is no whole reply: refused, cut off, empty, timed out, rate limited, server down.
            SetupError: no reply can ever come: the key is missing or refused.
            UsageError: no reply can ever come: the server knows no such model.
        """
        ...
