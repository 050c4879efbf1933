"""Sample × questions → judgement → HealScore → a score row.

This is the only place where ratings become scores, for every judge: three means, the 1:2:1 sum, the failures; and the
only place where something missing becomes an unscored row instead of a number.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from healbench import __version__
from healbench.chat_judge import ChatJudge
from healbench.errors import ImageError, UsageError
from healbench.images import load_picture
from healbench.plugins import adapter_names, load_adapter
from healbench.questions import Questions
from healbench.store import Row, is_final, row_key
from healbench.suggest import Suggester
from healbench.taxonomy import Taxonomy
from healbench.types import (
    DIMENSIONS,
    RATING_MAX,
    RATING_MIN,
    Dimension,
    FailureRule,
    HealScore,
    Judge,
    Judgement,
    Picture,
    QuestionSet,
    Sample,
    Unscored,
)

OnReply = Callable[[str, str], None]

CHUNK = 8
"""Pictures that are open at once; a judge may work on the samples of one chunk side by side."""


def load_judge(spec: str = "offline", **options: Any) -> Judge:
    """The judge of that name: `offline`, a chat model such as `openai:MODEL`, or a plugin's `NAME` or `NAME:ARGUMENT`.

    Args:
        options: for the adapter of a chat model, e.g. base_url.

    Raises:
        UsageError: nobody registered that name.
        SetupError: it needs something that is not installed, or a key.
    """
    name = spec.partition(":")[0]
    if name in adapter_names("chat") and name not in adapter_names("judge"):
        return ChatJudge(load_adapter("chat", spec, **options))
    given = sorted(option for option, value in options.items() if value is not None)
    if given and name in adapter_names("judge"):
        raise UsageError(f"the judge {name!r} takes no {', '.join(given)}")
    judge: Judge = load_adapter("judge", spec)
    return judge


def heal_score(judgement: Judgement, rule: FailureRule | None = None) -> HealScore | Unscored:
    """The score of a judgement, or why there is none.

    A dimension is the mean of its three ratings; with an item judge all nine are needed, with a dimension judge all
    three scores (paper, "Evaluation Criteria and HealScore"). Nothing is filled in.
    """
    rule = rule or FailureRule()
    if judgement.unscored is not None:
        return judgement.unscored
    if judgement.ratings is not None:
        return _from_ratings(judgement.ratings, rule)
    if judgement.scores is not None:
        return _from_scores(judgement.scores, rule)
    return Unscored("missing", "the judge gave neither ratings nor scores")


@dataclass(frozen=True, slots=True)
class Scoring:
    """Everything but the pictures that a score depends on.

    Attributes:
        suggester: for samples without a category; None refuses them.
    """

    judge: Judge
    taxonomy: Taxonomy
    questions: Questions
    suggester: Suggester | None = None
    rule: FailureRule = field(default_factory=FailureRule)


def score_samples(
    samples: Iterable[Sample],
    scoring: Scoring,
    done: Mapping[str, Sequence[Row]] | None = None,
    on_reply: OnReply | None = None,
) -> Iterator[Row]:
    """Score rows (contract "Score row"), one a sample, in order. Nothing that is wrong with one stops the others.

    Args:
        done: the rows of earlier starts by id; one that is final and was made from the same picture, text, category
            and judge is given back as it is, without a new judgement.
        on_reply: is given a model's own words with their reference, before the row that refers to them is given out.
    """
    remaining = iter(samples)
    while chunk := list(islice(remaining, CHUNK)):
        yield from _score_chunk(chunk, scoring, done or {}, on_reply)


def _score_chunk(
    chunk: Sequence[Sample], scoring: Scoring, done: Mapping[str, Sequence[Row]], on_reply: OnReply | None
) -> Iterator[Row]:
    ready: list[Row | None] = []  # None: to be judged
    samples: list[Sample] = []
    pictures: list[Picture] = []
    sets: list[QuestionSet] = []
    for sample in chunk:
        answered = _answered(done.get(sample.id, ()), sample, scoring)
        if answered is not None:
            ready.append(answered)
            continue
        try:
            picture, full, questions = _prepare(sample, scoring)
        except _RejectedError as rejected:
            ready.append(_row(rejected.sample, rejected.sha256, None, Judgement(unscored=rejected.unscored), scoring))
            continue
        ready.append(None)
        samples.append(full)
        pictures.append(picture)
        sets.append(questions)
    judged = zip(samples, pictures, sets, scoring.judge.judge(samples, pictures, sets), strict=True)
    for row in ready:
        if row is not None:
            yield row
            continue
        full, picture, questions, judgement = next(judged)
        if judgement.raw_reply is not None and on_reply is not None:
            on_reply(reply_reference(judgement.raw_reply), judgement.raw_reply)
        yield _row(full, picture.sha256, questions, judgement, scoring)


class _RejectedError(Exception):
    """One sample cannot be judged."""

    def __init__(self, sample: Sample, unscored: Unscored, sha256: str | None = None) -> None:
        super().__init__(unscored.message)
        self.sample = sample
        self.unscored = unscored
        self.sha256 = sha256


def _prepare(sample: Sample, scoring: Scoring) -> tuple[Picture, Sample, QuestionSet]:
    """The sample's pixels, its text and category where they were left out, and its nine questions."""
    if sample.problem is not None:
        raise _RejectedError(sample, sample.problem)
    try:
        picture = load_picture(sample.image)
    except ImageError as error:
        raise _RejectedError(sample, Unscored(error.code, str(error))) from error
    if sample.category is None:
        if scoring.suggester is None:
            raise _RejectedError(sample, Unscored("schema_violation", f"{sample.id}: has no category"), picture.sha256)
        suggested = scoring.suggester.suggest(picture).id
        sample = replace(sample, category=suggested, category_source="suggested")
    assert sample.category is not None
    try:
        category = scoring.taxonomy.category(sample.category)
        questions = scoring.questions.of(category)
    except UsageError as error:
        raise _RejectedError(sample, Unscored("schema_violation", str(error)), picture.sha256) from error
    if sample.text is None:
        sample = replace(sample, text=category.definition, text_source="category")
    return picture, replace(sample, category=category.id), questions


def _row(
    sample: Sample, sha256: str | None, questions: QuestionSet | None, judgement: Judgement, scoring: Scoring
) -> Row:
    score = heal_score(judgement, scoring.rule)
    scored = score if isinstance(score, HealScore) else None
    category = scoring.taxonomy.categories.get(sample.category or "")
    judge = scoring.judge
    return {
        "schema": 1,
        "id": sample.id,
        "image_sha256": sha256,
        "text": sample.text,
        "text_source": sample.text_source,
        "category": sample.category,
        "category_source": sample.category_source,
        "heal_class": category.heal_class if category else None,
        "judge": judge.name,
        "judge_digest": judge.digest,
        "question_digest": questions.digest if questions else None,
        "prompt_digest": judge.prompt_digest,
        "params": {**judge.params, "failure_rule": [scoring.rule.mean_below, scoring.rule.rating_at_most]},
        "version": __version__,
        "granularity": judge.granularity,
        "alignment": scored.alignment if scored else None,
        "heal": scored.heal if scored else None,
        "quality": scored.quality if scored else None,
        "total": scored.total if scored else None,
        "healing": scored.healing if scored else None,
        "failures": list(scored.failures) if scored else None,
        "ratings": {d: list(scored.ratings[d]) for d in DIMENSIONS} if scored and scored.ratings else None,
        "rationale": {d: judgement.rationale.get(d) for d in DIMENSIONS} if scored else None,
        "repeats": 1,
        "raw_reply_ref": None if judgement.raw_reply is None else reply_reference(judgement.raw_reply),
        "unscored": {"code": score.code, "message": score.message} if isinstance(score, Unscored) else None,
    }


def _answered(rows: Sequence[Row], sample: Sample, scoring: Scoring) -> Row | None:
    """The newest row that answers exactly what would be asked now, so that it need not be asked again."""
    if sample.problem is not None or not rows:
        return None
    sha256 = _sha256(sample)
    answers = (row for row in reversed(rows) if is_final(row) and _is_about(row, sample, sha256, scoring))
    return next(answers, None)


def _is_about(row: Row, sample: Sample, sha256: str | None, scoring: Scoring) -> bool:
    if row["image_sha256"] != sha256:
        return False
    given = (
        row["category"] == sample.category if sample.category is not None else row["category_source"] == "suggested",
        row["text"] == sample.text if sample.text is not None else row["text_source"] == "category",
    )
    if not all(given):
        return False
    category = scoring.taxonomy.categories.get(row["category"])
    if category is None:
        return False
    full = replace(sample, category=category.id, text=row["text"])
    now = _row(full, sha256, scoring.questions.of(category), Judgement(), scoring)
    return row_key(now) == row_key(row)


def _sha256(sample: Sample) -> str | None:
    try:
        with sample.image.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def reply_reference(reply: str) -> str:
    """What a row calls a model's own words; they stand in the run's `replies.jsonl`."""
    return hashlib.sha256(reply.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _from_ratings(ratings: Mapping[Dimension, Sequence[int | None]], rule: FailureRule) -> HealScore | Unscored:
    whole: dict[Dimension, tuple[int, int, int]] = {}
    for dimension in DIMENSIONS:
        three = [r for r in ratings.get(dimension, ()) if r is not None]
        if len(three) != 3 or len(ratings[dimension]) != 3:
            return Unscored("missing", f"{dimension} has {len(three)} of 3 ratings")
        if not all(isinstance(r, int) and RATING_MIN <= r <= RATING_MAX for r in three):
            return Unscored("schema_violation", f"{dimension} has the ratings {three}, not whole numbers from 1 to 10")
        whole[dimension] = (three[0], three[1], three[2])
    means = {d: sum(three) / 3 for d, three in whole.items()}
    return HealScore(means["alignment"], means["heal"], means["quality"], ratings=whole, rule=rule)


def _from_scores(scores: Mapping[Dimension, float], rule: FailureRule) -> HealScore | Unscored:
    for dimension in DIMENSIONS:
        if dimension not in scores:
            return Unscored("missing", f"the judge gave no {dimension} score")
        if math.isnan(scores[dimension]):
            return Unscored("nan", f"the {dimension} score is not a number")
        if not RATING_MIN <= scores[dimension] <= RATING_MAX:
            return Unscored("schema_violation", f"the {dimension} score is {scores[dimension]}, not from 1 to 10")
    return HealScore(scores["alignment"], scores["heal"], scores["quality"], rule=rule)
