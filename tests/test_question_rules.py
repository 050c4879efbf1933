import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from healbench.plugins import load_adapter
from healbench.question_rules import QUESTION_RULES, check_questions, near_identical, question_findings, verdicts
from healbench.questions import EMBEDDED, Questions
from healbench.taxonomy import Taxonomy
from healbench.types import Dimension, Finding, Question, QuestionSet
from tests.chats import PAIRS, three_categories

TAXONOMY = Taxonomy.load()
CAT = TAXONOMY.category(PAIRS[0])
NINE = Questions().of(CAT)
EMBEDDER = load_adapter("embedder", "offline")
REVIEWS = """\
coarse: quiet_company
reader: me
pairs:
  napping_cat:
    status: revised
    revised: [alignment.2]
    reason: The old anchors were the same twice.
  friendly_dog:
    status: accepted
    reason: Nothing was to be mended in this set.
"""
ANCHORS = {1: "none", 4: "little", 7: "much", 10: "all of it"}


def findings(
    text: str = "Is the cat at rest?", dimension: Dimension = "heal", anchors: Mapping[int, str] = ANCHORS
) -> list[Finding]:
    question = Question(dimension, 1, "concrete", "kindchenschema", text, anchors)
    return question_findings(QuestionSet(CAT, (question,), "", ""))


BREAKS = [
    ("length", {"text": "Is " + "very " * 29 + "calm?"}, "has 31 words"),
    ("one question", {"text": "The cat is calm."}, "is not one sentence"),
    ("one question", {"text": "Is it calm? Is it soft?"}, "is not one sentence"),
    ("one construct", {"text": "Is it calm and/or soft?"}, "asks two things"),
    ("no double negation", {"text": "Is there no sign that it isn't calm?"}, "negates twice"),
    ("no clinical claim", {"text": "Does the cat relieve depression?"}, "('depression')"),
    ("no clinical claim", {"anchors": {**ANCHORS, 10: "works as a therapy"}}, "('therapy')"),
    ("heal asks of comfort", {"text": "Is the cat beautiful?"}, "'beautiful'"),
    ("heal asks of comfort", {"text": "Does the comfort match?"}, "'match'"),
    ("quality needs no text", {"text": "Is the described fur sharp?", "dimension": "quality"}, "'described'"),
    ("slots", {"text": "Would {person} feel calm?"}, "has the slot {person}"),
    ("slots", {"text": "Would the viewer feel calm?"}, "write {viewer}"),
    ("anchors", {"anchors": {1: "a", 4: "b", 7: "c"}}, "has anchors at [1, 4, 7]"),
    ("anchors", {"anchors": {**ANCHORS, 7: "ALL of it"}}, "says the same at two anchors"),
    ("anchors", {"anchors": {**ANCHORS, 10: "so " * 15}}, "more than 14 words"),
]


@pytest.mark.parametrize(("rule", "question", "message"), BREAKS)
def test_each_rule_is_broken_by_a_text_that_deserves_it(rule: str, question: dict[str, str], message: str) -> None:
    assert findings() == []
    (found,) = findings(**question)  # type: ignore[arg-type]
    assert found.rule == rule
    assert found.place == f"{CAT.id} {question.get('dimension', 'heal')}.1"
    assert message in found.message


def test_every_rule_has_a_text_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BREAKS} == set(QUESTION_RULES)


def test_what_one_dimension_may_not_ask_another_may() -> None:
    assert findings("Does the cat match the text?", "alignment") == []
    assert findings("Is the cat beautiful?", "quality") == []


def test_two_questions_that_ask_the_same_are_found_and_others_are_not() -> None:
    assert list(near_identical(NINE, EMBEDDER)) == []
    first, *rest = NINE.of("heal")
    twin = replace(rest[0], text=first.text.replace("?", " now?"))
    others = [q for q in NINE.questions if q is not rest[0]]
    (found,) = near_identical(replace(NINE, questions=(twin, *others)), EMBEDDER)
    assert found.rule == "no two alike"
    assert "heal.1 and heal.0 ask nearly the same" in found.message


def test_the_embedded_sets_break_no_rule() -> None:
    assert check_questions(Questions(), TAXONOMY, EMBEDDER) == []


@pytest.fixture
def mine(tmp_path: Path) -> tuple[Path, Taxonomy]:
    """The embedded questions, to be spoiled, with a taxonomy of three pairs."""
    shutil.copytree(EMBEDDED, tmp_path / "mine")
    (tmp_path / "mine" / "reviews" / "quiet_company.yaml").write_text(REVIEWS, encoding="utf-8")
    return tmp_path / "mine", three_categories(tmp_path / "three.yaml")


def spoil(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def check(mine: tuple[Path, Taxonomy]) -> list[Finding]:
    return check_questions(Questions(mine[0]), mine[1], EMBEDDER)


def test_a_pair_without_a_verdict_is_found(mine: tuple[Path, Taxonomy]) -> None:
    assert check(mine) == []
    spoil(mine[0] / "reviews" / "quiet_company.yaml", "  napping_cat:", "  napping_dog:")
    (found,) = check(mine)
    assert (found.place, found.rule) == (CAT.id, "second reader")
    assert "has no verdict" in found.message
    (mine[0] / "reviews" / "quiet_company.yaml").unlink()
    assert len(check(mine)) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("status: revised", "status: maybe", r"quiet_company.yaml:5: pairs.napping_cat.status: "),
        ("    reason: The old", "    reason: short\n    other: The old", r"quiet_company.yaml:7: "),
        ("pairs:", "pears:", r"quiet_company.yaml:1: pairs: this key is missing"),
        ("pairs:", 'pairs: ["', r"not YAML: "),
    ],
)
def test_a_broken_file_of_verdicts_is_named_with_its_line(
    mine: tuple[Path, Taxonomy], old: str, new: str, message: str
) -> None:
    spoil(mine[0] / "reviews" / "quiet_company.yaml", old, new)
    found = check(mine)
    assert {f.place for f in found} == set(PAIRS[:2])
    assert all(message in f.message for f in found), found


def test_a_verdict_on_no_question_a_strange_construct_and_a_missing_set_are_found(
    mine: tuple[Path, Taxonomy],
) -> None:
    spoil(mine[0] / "reviews" / "quiet_company.yaml", "revised: [alignment.2]", "revised: [alignment.9]")
    spoil(mine[0] / "quiet_company.yaml", "construct: kindchenschema", "construct: cuteness")
    (mine[0] / "blue_space.yaml").unlink()
    found = {f.rule: f for f in check(mine)}
    assert set(found) == {"second reader", "known construct", "complete"}
    assert "revises 'alignment.9'" in found["second reader"].message
    assert found["known construct"].place == f"{CAT.id} heal.1"
    assert "blue_space.yaml does not exist" in found["complete"].message


def test_who_nobody_has_read_has_no_verdicts(tmp_path: Path) -> None:
    assert verdicts(tmp_path, "quiet_company") == {}
