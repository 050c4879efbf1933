"""A chat model as a judge: all nine questions in one call, a reply that is the schema or nothing.

What is not the schema is never guessed at: one repair call quotes what was wrong, then the row is unscored and the
model's own words are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from healbench.errors import ChatError
from healbench.prompts import fill, load_prompt
from healbench.questions import VIEWER_OF_MODEL, ask
from healbench.types import (
    DIMENSIONS,
    RATING_MAX,
    RATING_MIN,
    Chat,
    Granularity,
    Judgement,
    Picture,
    QuestionSet,
    Sample,
    Unscored,
)

REVISION = "1"
"""To be raised with every change of code that can change a rating."""

_RATING = {"type": "integer", "enum": list(range(RATING_MIN, RATING_MAX + 1))}
_DIMENSION = {
    "type": "object",
    "properties": {
        "rationale": {"type": "string"},
        "ratings": {"type": "array", "items": _RATING, "minItems": 3, "maxItems": 3},
    },
    "required": ["rationale", "ratings"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {**dict.fromkeys(DIMENSIONS, _DIMENSION), "addressed": {"type": "boolean"}},
    "required": [*DIMENSIONS, "addressed"],
    "additionalProperties": False,
}
"""Rationale before rating, so that the model looks first; ratings as an enum, since many servers know no minimum."""


class _Dimension(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    rationale: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    ratings: list[Annotated[int, Field(ge=RATING_MIN, le=RATING_MAX)]] = Field(min_length=3, max_length=3)


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    alignment: _Dimension
    heal: _Dimension
    quality: _Dimension
    addressed: bool


class ChatJudge:
    """Asks a chat model the nine questions of each sample; several samples side by side.

    Args:
        workers: how many questions may be under way at once.
    """

    granularity: Granularity = "item"
    notice = ""
    calls = 1

    def __init__(self, chat: Chat, workers: int = 8) -> None:
        self._chat = chat
        self._workers = workers
        self._template = load_prompt("judge")
        self._repair = load_prompt("judge_repair")
        self.params: Mapping[str, Any] = {"protocol": "joint"}

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self._chat.digest} {REVISION}".encode()).hexdigest()

    @property
    def prompt_digest(self) -> str:
        parts = [self._template, self._repair, json.dumps(SCHEMA, sort_keys=True)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def judge(
        self, samples: Sequence[Sample], pictures: Sequence[Picture], question_sets: Sequence[QuestionSet]
    ) -> Iterator[Judgement]:
        """One judgement a sample, in order. A server that is down makes unscored rows; a wrong key stops the run."""
        with ThreadPoolExecutor(self._workers) as pool:
            yield from pool.map(self._judge, samples, pictures, question_sets)

    def _judge(self, sample: Sample, picture: Picture, questions: QuestionSet) -> Judgement:
        prompt = judge_prompt(self._template, sample.text or questions.category.definition, questions)
        try:
            reply = self._chat.reply(prompt, (picture,), SCHEMA)
            try:
                return _judgement(reply)
            except ValueError as error:
                again = fill(
                    self._repair,
                    {"prompt": prompt, "problem": str(error), "reply": reply, "fence": _fence(reply)},
                )
            reply = self._chat.reply(again, (picture,), SCHEMA)
        except ChatError as error:
            return Judgement(unscored=Unscored(error.code, str(error)))
        try:
            return _judgement(reply)
        except _NoJSONError as error:
            return Judgement(
                raw_reply=reply, unscored=Unscored("unparsable", f"{self.name}: {error}, also when asked again")
            )
        except ValueError as error:
            message = f"{self.name}: {error}, also when asked again"
            return Judgement(raw_reply=reply, unscored=Unscored("schema_violation", message))


def judge_prompt(template: str, text: str, questions: QuestionSet) -> str:
    """The prompt about one sample; the text under judgement is fenced by a mark that it does not hold."""
    lines = []
    for dimension in DIMENSIONS:
        lines.append(f"## {dimension}")
        for question in questions.of(dimension):
            anchors = "; ".join(f"{rating}: {anchor}" for rating, anchor in question.anchors.items())
            lines.append(f"{dimension} {question.k}. {ask(question, VIEWER_OF_MODEL)}\n   {anchors}")
    category = questions.category
    return fill(
        template,
        {
            "text": text,
            "fence": _fence(text),
            "name": category.name,
            "definition": category.definition,
            "questions": "\n".join(lines),
        },
    )


def _fence(text: str) -> str:
    """A line of marks that does not occur in the text."""
    fence = "====="
    while fence in text:
        fence += "="
    return fence


class _NoJSONError(ValueError):
    """A reply that is no JSON at all."""


def _judgement(reply: str) -> Judgement:
    """The reply as a judgement.

    Raises:
        ValueError: it is not exactly the schema; says what is wrong with it.
    """
    try:
        content = json.loads(reply)
    except ValueError as error:
        raise _NoJSONError(f"the reply is not JSON ({error})") from error
    try:
        parsed = _Reply.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "the reply"
        raise ValueError(f"{place}: {first['msg']}") from error
    said = {d: getattr(parsed, d) for d in DIMENSIONS}
    return Judgement(
        ratings={d: (s.ratings[0], s.ratings[1], s.ratings[2]) for d, s in said.items()},
        rationale={d: s.rationale for d, s in said.items()},
        raw_reply=reply,
    )
