"""The rules that every question set keeps, and who breaks which.

They follow the paper ("experts then revise the questions to remove ambiguous, redundant, or category-mismatched
formulations") as far as a machine can see; what only a reader can see stands in the second reader's verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, StringConstraints

from healbench.errors import UsageError
from healbench.questions import ANCHORED, Questions
from healbench.taxonomy import Taxonomy
from healbench.types import Category, Embedder, Finding, Question, QuestionSet
from healbench.yamlfile import read_yaml

MAX_WORDS = 30
MAX_ANCHOR_WORDS = 14
NEAR_IDENTICAL = 0.90
"""Cosine of two questions of one set from which they ask the same."""

_NEGATIONS = re.compile(r"\b(not|no|never|without|nothing|none|neither|nor|cannot)\b|n't\b", re.I)
_CLINICAL = re.compile(
    r"\b(therap\w+|treatments?|symptom\w*|depress\w+|cures?|cured|patients?|diagnos\w+|clinical\w*|medication|"
    r"anxiety disorder|trauma|ptsd|insomnia|burnout)\b",
    re.I,
)
_NOT_COMFORT = re.compile(
    r"\b(beaut\w+|prett(y|ier|iest)|attractive\w*|high[- ]quality|match(es|ed|ing)?|text|prompt|caption|described)\b",
    re.I,
)
_TEXT = re.compile(r"\b(text|described|prompt|caption|named in)\b", re.I)
_SLOT = re.compile(r"{(\w*)}")


def _too_long(question: Question) -> str | None:
    words = len(question.text.split())
    return f"has {words} words, at most {MAX_WORDS} are read in one go" if words > MAX_WORDS else None


def _no_question(question: Question) -> str | None:
    return (
        None if question.text.endswith("?") and question.text.count("?") == 1 else "is not one sentence that ends in ?"
    )


def _two_constructs(question: Question) -> str | None:
    return "asks two things with and/or" if "and/or" in question.text.lower() else None


def _double_negation(question: Question) -> str | None:
    return "negates twice" if len(_NEGATIONS.findall(question.text)) > 1 else None


def _clinical_claim(question: Question) -> str | None:
    found = _CLINICAL.search(" ".join([question.text, *question.anchors.values()]))
    return f"makes a clinical claim ({found.group()!r})" if found else None


def _heal_of_something_else(question: Question) -> str | None:
    found = _NOT_COMFORT.search(question.text) if question.dimension == "heal" else None
    return f"asks of {found.group()!r}: heal asks of comfort, never of beauty or match" if found else None


def _quality_of_the_text(question: Question) -> str | None:
    found = _TEXT.search(question.text) if question.dimension == "quality" else None
    return f"needs the text ({found.group()!r}): quality is answered by the picture alone" if found else None


def _unknown_slot(question: Question) -> str | None:
    strange = [slot for slot in _SLOT.findall(question.text) if slot != "viewer"]
    if strange:
        return f"has the slot {{{strange[0]}}}; only {{viewer}} is filled in"
    return "says “the viewer”; write {viewer}" if "the viewer" in question.text.lower() else None


def _bad_anchors(question: Question) -> str | None:
    anchors = question.anchors
    if tuple(sorted(anchors)) != ANCHORED:
        return f"has anchors at {sorted(anchors)}, they belong at 1, 4, 7 and 10"
    if len({a.lower() for a in anchors.values()}) < len(ANCHORED):
        return "says the same at two anchors"
    long = [a for a in anchors.values() if len(a.split()) > MAX_ANCHOR_WORDS]
    return f"has an anchor of more than {MAX_ANCHOR_WORDS} words: {long[0]!r}" if long else None


QUESTION_RULES: dict[str, Callable[[Question], str | None]] = {
    "length": _too_long,
    "one question": _no_question,
    "one construct": _two_constructs,
    "no double negation": _double_negation,
    "no clinical claim": _clinical_claim,
    "heal asks of comfort": _heal_of_something_else,
    "quality needs no text": _quality_of_the_text,
    "slots": _unknown_slot,
    "anchors": _bad_anchors,
}


def question_findings(questions: QuestionSet) -> list[Finding]:
    """The rules about single questions that a set breaks."""
    return [
        Finding(f"{questions.category.id} {question.dimension}.{question.k}", rule, message)
        for question in questions.questions
        for rule, broken in QUESTION_RULES.items()
        if (message := broken(question)) is not None
    ]


def near_identical(questions: QuestionSet, embedder: Embedder) -> Iterator[Finding]:
    """Pairs of one set that a sentence encoder can hardly tell apart."""
    asked = questions.questions
    vectors = np.stack([embedder.embed_text(q.text.replace("{viewer}", "a viewer")) for q in asked])
    nearness = vectors @ vectors.T
    for one, two in zip(*np.nonzero(np.triu(nearness, k=1) >= NEAR_IDENTICAL), strict=True):
        names = f"{asked[one].dimension}.{asked[one].k} and {asked[two].dimension}.{asked[two].k}"
        message = f"{names} ask nearly the same (cosine {nearness[one, two]:.2f})"
        yield Finding(questions.category.id, "no two alike", message)


Line = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Verdict(BaseModel):
    """What a second reader says of one pair's set."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["accepted", "revised", "draft"]
    revised: list[str] = []
    reason: Annotated[str, StringConstraints(min_length=20, strip_whitespace=True)]


class _Reviews(BaseModel):
    coarse: Line
    reader: Line
    pairs: dict[str, Verdict]


def verdicts(folder: Path, coarse: str) -> dict[str, Verdict]:
    """The second reader's verdicts on a coarse category, by fine id; empty where nobody has read it.

    Raises:
        UsageError: the file has mistakes (with their lines).
    """
    path = folder / "reviews" / f"{coarse}.yaml"
    return read_yaml(path, _Reviews).pairs if path.is_file() else {}


def check_questions(questions: Questions, taxonomy: Taxonomy, embedder: Embedder) -> list[Finding]:
    """Everything that is wrong with a folder of question sets for a taxonomy."""
    constructs = {construct for c in taxonomy.categories.values() for construct in c.constructs}
    findings: list[Finding] = []
    for category in taxonomy.valid:
        try:
            nine = questions.of(category)
        except UsageError as error:
            findings.append(Finding(category.id, "complete", str(error)))
            continue
        findings += question_findings(nine)
        findings += near_identical(nine, embedder)
        findings += _unknown_constructs(nine, constructs)
        findings += _missing_verdict(questions.folder, category, nine)
    return findings


def _unknown_constructs(nine: QuestionSet, known: set[str]) -> Iterator[Finding]:
    for question in nine.questions:
        if known and question.construct not in known:
            place = f"{nine.category.id} {question.dimension}.{question.k}"
            yield Finding(
                place, "known construct", f"measures {question.construct!r}, which the taxonomy does not know"
            )


def _missing_verdict(folder: Path, category: Category, nine: QuestionSet) -> Sequence[Finding]:
    try:
        verdict = verdicts(folder, category.coarse).get(category.fine)
    except UsageError as error:
        return [Finding(category.id, "second reader", str(error))]
    if verdict is None:
        return [Finding(category.id, "second reader", "has no verdict of a second reader (reviews/)")]
    known = {f"{q.dimension}.{q.k}" for q in nine.questions}
    unknown = [name for name in verdict.revised if name not in known]
    return [Finding(category.id, "second reader", f"revises {unknown[0]!r}, which is no question")] if unknown else []
