import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from healbench.errors import UsageError
from healbench.taxonomy import EMBEDDED, Taxonomy, check_taxonomy

EVAL_INSTANCES = {
    "natural_restoration": 277,
    "atmospheric_immersion": 181,
    "shelter_and_safety": 132,
    "living_companionship": 47,
    "rhythmic_focus": 293,
    "awe_and_transcendence": 165,
}


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return Taxonomy.load()


def test_the_embedded_taxonomy_has_the_papers_counts(taxonomy: Taxonomy) -> None:
    assert len(taxonomy.classes) == 6
    assert len({c.coarse for c in taxonomy.categories.values()}) == 19
    assert len(taxonomy.categories) == 102
    assert len(taxonomy.valid) == 92
    instances: Counter[str] = Counter()
    for category in taxonomy.valid:
        instances[category.heal_class] += category.eval_instances
    assert dict(instances) == EVAL_INSTANCES  # recovered from Table 4 (paper, "Overall" is image-weighted)
    assert sum(instances.values()) == 1095


def test_the_embedded_taxonomy_passes_its_own_check() -> None:
    assert check_taxonomy(EMBEDDED) == []


def test_a_category_is_found_by_pair_or_by_its_fine_name(taxonomy: Taxonomy) -> None:
    assert taxonomy.category("quiet_company/napping_cat") is taxonomy.category("napping_cat")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("quiet_company/napping_ct", "did you mean quiet_company/napping_cat"),
        ("Napping Cat", "did you mean quiet_company/napping_cat"),
        ("green_space", "a coarse category needs a fine one: green_space/forest_canopy_path"),
        ("zzzzzz", "`healbench taxonomy` lists them all"),
        ("others/others_others", "is not a valid pair: it cannot be judged; choose one of others/abstract"),
    ],
)
def test_what_is_no_category_is_refused_with_a_way_on(taxonomy: Taxonomy, asked: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        taxonomy.category(asked)


def broken(change: Any) -> str:
    content = yaml.safe_load(EMBEDDED.read_text(encoding="utf-8"))
    before = copy.deepcopy(content)
    change(content)
    assert content != before, "the mutation changed nothing"
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _no_definition(t: Any) -> None:
    del t["coarse"][0]["fine"][0]["definition"]


def _unknown_class(t: Any) -> None:
    t["coarse"][3]["heal_class"] = "natural_restoratio"


def _same_id(t: Any) -> None:
    t["coarse"][0]["fine"][1]["id"] = t["coarse"][1]["fine"][0]["id"]


def _hint_nowhere(t: Any) -> None:
    t["coarse"][0]["fine"][0]["not_this"]["pair"] = "nowhere"


def _no_valid(t: Any) -> None:
    for fine in t["coarse"][2]["fine"]:
        fine["valid"] = False


def _bad_id(t: Any) -> None:
    t["coarse"][0]["id"] = "Green Space"


def _no_cues(t: Any) -> None:
    t["coarse"][0]["fine"][0]["visual_cues"] = []


def _instances_as_text(t: Any) -> None:
    t["coarse"][0]["fine"][0]["eval_instances"] = "12"


def _class_twice(t: Any) -> None:
    t["heal_classes"].append(copy.deepcopy(t["heal_classes"][0]))


@pytest.mark.parametrize(
    ("change", "line_holds", "message"),
    [
        (_no_definition, "- id: forest_canopy_path", "definition: this key is missing"),
        (_unknown_class, "heal_class: natural_restoratio", "did you mean 'natural_restoration'"),
        (_same_id, "id:", "stands twice"),
        (_hint_nowhere, "pair: nowhere", "which is no other valid pair"),
        (_no_valid, "id: flora_and_season", "has no valid pair"),
        (_bad_id, "id: Green Space", "should match pattern"),
        (_no_cues, "visual_cues: []", "at least 1 item"),
        (_instances_as_text, "eval_instances: '12'", "valid integer"),
        (_class_twice, "id: natural_restoration", "the class id 'natural_restoration' stands twice"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, change: Any, line_holds: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(broken(change), encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    problems = check_taxonomy(file)
    found = [p for p in problems if message in p.message]
    assert found, problems
    assert line_holds in lines[found[0].line - 1]
    with pytest.raises(UsageError, match=r"mine\.yaml:[0-9]+: "):
        Taxonomy.load(file)


def test_yaml_that_is_no_yaml_and_keys_that_stand_twice_have_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: x\nprovenance: [\n", encoding="utf-8")
    (problem,) = check_taxonomy(file)
    assert problem.line in (2, 3)
    assert "not YAML" in problem.message
    file.write_text(EMBEDDED.read_text(encoding="utf-8") + "name: again\n", encoding="utf-8")
    (problem,) = check_taxonomy(file)
    assert "'name' stands here twice" in problem.message


def test_a_small_taxonomy_of_ones_own_takes_its_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        """
name: mine
provenance: made for a test
heal_classes: [{id: calm, name: Calm, definition: Being calm}]
coarse:
- {id: sea, name: Sea, heal_class: calm, healing_function: Slows down., breakers: [storm],
   fine: [{id: beach, name: Beach, definition: A beach., visual_cues: [sand]}]}
""",
        encoding="utf-8",
    )
    assert check_taxonomy(file) == []
    assert [c.id for c in Taxonomy.load(file).valid] == ["sea/beach"]


def test_a_missing_or_binary_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        check_taxonomy(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        check_taxonomy(tmp_path / "bytes.yaml")
