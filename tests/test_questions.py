import re
import shutil
from pathlib import Path

import pytest

from healbench.errors import UsageError
from healbench.questions import ANCHORED, EMBEDDED, VIEWER_OF_MODEL, Questions, ask
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, QuestionSet

TAXONOMY = Taxonomy.load()
QUESTIONS = Questions()


@pytest.fixture(params=[c.id for c in TAXONOMY.valid])
def nine(request: pytest.FixtureRequest) -> QuestionSet:
    return QUESTIONS.of(TAXONOMY.category(request.param))


def test_every_valid_pair_has_nine_questions_in_three_dimensions(nine: QuestionSet) -> None:
    assert len(nine.questions) == 9
    for dimension in DIMENSIONS:
        three = nine.of(dimension)
        assert [q.k for q in three] == [0, 1, 2]
        assert [q.level for q in three] == ["coarse", "fine", "fine"]


def test_every_question_keeps_the_rules_of_writing(nine: QuestionSet) -> None:
    for question in nine.questions:
        text = ask(question, VIEWER_OF_MODEL)
        assert text.endswith("?")
        assert len(question.text.split()) <= 30, text
        assert "{" not in text
        assert "and/or" not in text
        assert tuple(question.anchors) == ANCHORED
        assert len(set(question.anchors.values())) == 4, text
        assert not re.search(r"\b(therapy|treatment|symptom|depress\w*|anxiety disorder|cure)\b", text, re.I)
        if question.dimension == "heal":
            assert not re.search(r"\b(beautiful|pretty|attractive|match\w*|text)\b", text, re.I), text
        if question.dimension == "quality":
            assert not re.search(r"\b(text|described|prompt)\b", text, re.I), text


def test_constructs_are_those_of_the_taxonomy(nine: QuestionSet) -> None:
    known = {construct for c in TAXONOMY.categories.values() for construct in c.constructs}
    assert {q.construct for q in nine.questions} <= known


def test_the_coarse_question_is_the_same_for_all_its_pairs() -> None:
    by_coarse: dict[str, set[str]] = {}
    for category in TAXONOMY.valid:
        for question in QUESTIONS.of(category).questions:
            if question.k == 0:
                by_coarse.setdefault(f"{category.coarse}.{question.dimension}", set()).add(question.text)
    assert len(by_coarse) == 19 * 3
    assert all(len(texts) == 1 for texts in by_coarse.values())


def test_no_two_of_the_552_fine_questions_are_the_same() -> None:
    texts = [q.text for c in TAXONOMY.valid for q in QUESTIONS.of(c).questions if q.k > 0]
    assert len(texts) == 552
    assert len(set(texts)) == 552


def test_another_word_is_another_digest(tmp_path: Path) -> None:
    mine = tmp_path / "questions"
    shutil.copytree(EMBEDDED, mine)
    cat = TAXONOMY.category("napping_cat")
    assert Questions(mine).of(cat).digest == QUESTIONS.of(cat).digest
    file = mine / "quiet_company.yaml"
    old = QUESTIONS.of(cat).of("heal")[1].text
    content = file.read_text(encoding="utf-8")
    assert old in content
    file.write_text(content.replace(old, old.replace("?", " now?")), encoding="utf-8")
    assert Questions(mine).of(cat).digest != QUESTIONS.of(cat).digest
    assert Questions(mine).of(cat).provenance != QUESTIONS.of(cat).provenance


def test_a_set_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    cat = TAXONOMY.category("napping_cat")
    with pytest.raises(UsageError, match="no such folder"):
        Questions(tmp_path / "none")
    with pytest.raises(UsageError, match=r"quiet_company\.yaml does not exist"):
        Questions(tmp_path).of(cat)
    text = (EMBEDDED / "quiet_company.yaml").read_text(encoding="utf-8")
    (tmp_path / "quiet_company.yaml").write_text(text.replace("  napping_cat:", "  napping_dog:"), encoding="utf-8")
    with pytest.raises(UsageError, match="has none for 'napping_cat'"):
        Questions(tmp_path).of(cat)
    (tmp_path / "quiet_company.yaml").write_text(text.replace("      10:", "      9:", 1), encoding="utf-8")
    with pytest.raises(UsageError, match=r"quiet_company\.yaml:[0-9]+: .*anchors are needed at 1, 4, 7 and 10"):
        Questions(tmp_path).of(cat)
