"""One draft of questions: what a chat model is asked, and what its reply must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from healbench.prompts import fill, load_prompt
from healbench.questions import ANCHORED
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Category, Dimension, Question

KINDS: Mapping[Dimension, tuple[str, str]] = {
    "alignment": ("concrete", "relation"),
    "heal": ("concrete", "affective"),
    "quality": ("render", "artifact"),
}
"""The kinds of the two fine questions of each dimension, k = 1 and 2."""

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Question(_Strict):
    measures: Text = Field(alias="construct")
    text: Text
    anchors: dict[Literal["1", "4", "7", "10"], Text] = Field(min_length=4)

    def question(self, dimension: Dimension, k: int, kind: str) -> Question:
        anchors = {rating: _line(self.anchors[str(rating)]) for rating in ANCHORED}  # type: ignore[index]
        return Question(dimension, k, kind, self.measures, _line(self.text), anchors)


class _Three(_Strict):
    alignment: _Question
    heal: _Question
    quality: _Question


class _Alignment(_Strict):
    concrete: _Question
    relation: _Question


class _Heal(_Strict):
    concrete: _Question
    affective: _Question


class _Quality(_Strict):
    render: _Question
    artifact: _Question


class _Six(_Strict):
    alignment: _Alignment
    heal: _Heal
    quality: _Quality


def coarse_prompt(taxonomy: Taxonomy, pairs: Sequence[Category]) -> str:
    """Asks for the three questions of a coarse category; `pairs` are all its valid ones."""
    about = pairs[0]
    heal_class = taxonomy.classes[about.heal_class]
    return fill(
        load_prompt("questions_coarse"),
        {
            "coarse": about.coarse,
            "coarse_name": about.coarse_name,
            "class_name": heal_class.name,
            "class_definition": heal_class.definition,
            "healing_function": about.healing_function,
            "breakers": _listed(about.breakers),
            "fine": _listed(f"{c.name}: {c.definition}" for c in pairs),
            "constructs": _constructs(taxonomy, pairs),
            "rules": load_prompt("questions_rules"),
        },
    )


def fine_prompt(taxonomy: Taxonomy, pair: Category, function: Sequence[Question]) -> str:
    """Asks for the six fine questions of a pair whose three coarse ones are written."""
    return fill(
        load_prompt("questions_fine"),
        {
            "id": pair.id,
            "name": pair.name,
            "coarse_name": pair.coarse_name,
            "definition": pair.definition,
            "cues": _listed(pair.visual_cues),
            "not_this": pair.not_this or "nothing in particular",
            "healing_function": pair.healing_function,
            "breakers": _listed(pair.breakers),
            "function_questions": _listed(f"{q.dimension}: {q.text}" for q in function),
            "constructs": _constructs(taxonomy, [pair]),
            "rules": load_prompt("questions_rules"),
        },
    )


def reply_schema(taxonomy: Taxonomy, level: str) -> dict[str, Any]:
    """JSON schema of a reply: three questions for "coarse", six for "fine"."""
    known = sorted({c for category in taxonomy.categories.values() for c in category.constructs})
    string = {"type": "string"}
    anchors = _object({str(rating): string for rating in ANCHORED})
    construct = {**string, "enum": known} if known else string
    question = _object({"construct": construct, "text": string, "anchors": anchors})
    if level == "coarse":
        return _object(dict.fromkeys(DIMENSIONS, question))
    return _object({d: _object(dict.fromkeys(KINDS[d], question)) for d in DIMENSIONS})


def read_coarse(reply: str) -> tuple[list[Question], list[str]]:
    """The three questions of a reply, or what is wrong with its form."""
    parsed, wrong = _parse(reply, _Three)
    if parsed is None:
        return [], wrong
    return [getattr(parsed, d).question(d, 0, "function") for d in DIMENSIONS], []


def read_fine(reply: str) -> tuple[list[Question], list[str]]:
    """The six questions of a reply, or what is wrong with its form."""
    parsed, wrong = _parse(reply, _Six)
    if parsed is None:
        return [], wrong
    return [
        getattr(getattr(parsed, d), kind).question(d, k, kind) for d in DIMENSIONS for k, kind in enumerate(KINDS[d], 1)
    ], []


def _parse(reply: str, model: type[BaseModel]) -> tuple[BaseModel | None, list[str]]:
    """From the first brace to the last: models without a schema put fences or a sentence around it."""
    start, end = reply.find("{"), reply.rfind("}") + 1
    if start < 0 or end <= start:
        return None, ["the reply holds no JSON object"]
    try:
        return model.model_validate_json(reply[start:end]), []
    except ValidationError as error:
        return None, list(_mistakes(error))


def _mistakes(error: ValidationError) -> Iterator[str]:
    for mistake in error.errors()[:10]:
        place = ".".join(str(step) for step in mistake["loc"])
        yield f"{place}: {mistake['msg']}" if place else mistake["msg"]


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _constructs(taxonomy: Taxonomy, pairs: Sequence[Category]) -> str:
    """The constructs of the pairs first, then the others of the taxonomy."""
    own = [c for pair in pairs for c in pair.constructs]
    others = sorted({c for category in taxonomy.categories.values() for c in category.constructs})
    names = list(dict.fromkeys([*own, *others]))
    return ", ".join(names) or "a short name of your own, in lower case, such as soft_fascination"


def _listed(items: Sequence[str] | Iterator[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _line(text: str) -> str:
    return " ".join(text.split())
