import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from healbench.cli import run
from healbench.clip_tokens import count_clip_tokens
from healbench.errors import UsageError
from healbench.evalset import check_eval_set, load_eval_set, select
from healbench.plugins import load_adapter
from healbench.taxonomy import Taxonomy
from healbench.types import Prompt
from scripts import content_tables, evalset_tables

TAXONOMY = Taxonomy.load()
PROMPTS = load_eval_set()
EMBEDDER = load_adapter("embedder", "offline")
CLASSES = {
    "natural_restoration": 277,
    "atmospheric_immersion": 181,
    "shelter_and_safety": 132,
    "living_companionship": 47,
    "rhythmic_focus": 293,
    "awe_and_transcendence": 165,
}


def test_the_composition_is_the_one_recovered_from_the_paper() -> None:
    assert len(PROMPTS) == 1095
    assert Counter(TAXONOMY.category(p.category).heal_class for p in PROMPTS) == CLASSES
    wanted = {c.id: c.eval_instances for c in TAXONOMY.valid}
    assert Counter(p.category for p in PROMPTS) == wanted


def test_the_embedded_set_breaks_no_rule() -> None:
    assert check_eval_set(PROMPTS, TAXONOMY, EMBEDDER) == []


def test_clip_tokens_are_counted_like_the_original() -> None:
    counts = json.loads((Path(__file__).parent / "data" / "clip_token_counts.json").read_text(encoding="utf-8"))
    assert len(counts) >= 10
    for text, count in counts.items():
        assert count_clip_tokens(text) == count


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("length", {"text": "A cat sleeps."}),
    ("length", {"text": " ".join(["cat"] * 61)}),
    ("CLIP length", {"text": " ".join(["antidisestablishmentarianism"] * 25)}),
    ("instruction", {"instruction": " ".join(["Add"] * 21)}),
    ("instruction", {"instruction": "The cat sleeps on the chair."}),
    ("no name or spell", {"text": PROMPTS[0].text + " In the style of Monet."}),
    ("no name or spell", {"text": PROMPTS[0].text + " 8K masterpiece."}),
    ("no name or spell", {"instruction": "Put a Leica on the shelf."}),
    ("valid pair", {"category": "others/others_others"}),
    ("no repeats", {"text": PROMPTS[1].text.upper()}),
    ("no two alike", {"text": PROMPTS[1].text + " It is day."}),
]


@pytest.mark.parametrize(("rule", "change"), BROKEN, ids=[f"{rule} {i}" for i, (rule, _) in enumerate(BROKEN)])
def test_each_rule_finds_what_breaks_it(rule: str, change: dict[str, Any]) -> None:
    few = [replace(PROMPTS[0], **change), *PROMPTS[1:3]]
    findings = check_eval_set(few, TAXONOMY, EMBEDDER)
    assert rule in {f.rule for f in findings}
    before = check_eval_set(PROMPTS[:3], TAXONOMY, EMBEDDER)
    assert rule not in {f.rule for f in before}


def test_a_pair_with_too_few_prompts_is_found() -> None:
    findings = check_eval_set(PROMPTS[1:], TAXONOMY, EMBEDDER)
    assert [(f.place, f.rule) for f in findings] == [(PROMPTS[0].category, "count")]


def test_a_part_is_selected_in_order_and_drawn_by_seed() -> None:
    animals = select(PROMPTS, TAXONOMY, heal_class="living_companionship")
    assert len(animals) == 47
    cats = select(PROMPTS, TAXONOMY, category="napping_cat")
    assert {p.category for p in cats} == {"quiet_company/napping_cat"}
    drawn = select(PROMPTS, TAXONOMY, sample=20, seed=3)
    assert drawn == select(PROMPTS, TAXONOMY, sample=20, seed=3) != select(PROMPTS, TAXONOMY, sample=20, seed=4)
    assert drawn == [p for p in PROMPTS if p in drawn]
    assert select(PROMPTS, TAXONOMY, sample=99_999) == PROMPTS


def test_the_command_shows_one_sample_a_line_and_refuses_what_is_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["evalset", "show", "--class", "living_companionship", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 47
    assert {row["heal_class"] for row in rows} == {"living_companionship"}
    assert run(["evalset", "show", "--category", "napping_cat", "--sample", "2"]) == 0
    assert "Not the paper's own" in capsys.readouterr().out
    for arguments, message in [
        (["show", "--class", "joy"], "unknown HEAL class 'joy'"),
        (["show", "open-9"], "none of the embedded ones (open-1095)"),
        (["show", "--sample", "0"], "must be 1 or more"),
        (["check", str(tmp_path / "none.jsonl")], "no such file"),
    ]:
        assert run(["evalset", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_a_file_of_ones_own_is_read_with_line_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.jsonl"
    good = {"id": "a", "text": "x", "category": "quiet_company/napping_cat", "instruction": "Add a cat."}
    file.write_text(json.dumps(good) + "\n\n" + json.dumps({**good, "id": 7}), encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.jsonl:3: id: Input should be a valid string"):
        load_eval_set(str(file))
    file.write_text(json.dumps(good) + "\n{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.jsonl:2: not JSON"):
        load_eval_set(str(file))
    file.write_text(json.dumps(good) + "\n" + json.dumps(good), encoding="utf-8")
    with pytest.raises(UsageError, match="the id 'a' stands 2 times"):
        load_eval_set(str(file))
    file.write_text(json.dumps(good), encoding="utf-8")
    assert load_eval_set(str(file)) == [Prompt("a", "x", "quiet_company/napping_cat", "Add a cat.")]
    assert run(["evalset", "check", str(file)]) == 2
    assert "a: length: has 1 words" in capsys.readouterr().out


def test_the_card_shows_the_sets_own_tables() -> None:
    assert evalset_tables.PAGE.read_text(encoding="utf-8") == evalset_tables.page()


def test_the_review_page_counts_the_second_readers_own_records() -> None:
    assert content_tables.PAGE.read_text(encoding="utf-8") == content_tables.page()
    reviewed = {p.category for p in PROMPTS}
    rows = [json.loads(line) for line in content_tables.PROMPT_REVIEW.read_text(encoding="utf-8").splitlines()]
    assert {row["category"] for row in rows} == reviewed
    assert sum(row["prompts"] for row in rows if "prompts" in row) == len(PROMPTS)
