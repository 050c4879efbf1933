import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healbench.errors import UsageError
from healbench.samples import DEMO, sample_row, samples_from_jsonl, samples_from_paths, with_defaults
from healbench.taxonomy import Taxonomy
from healbench.types import Sample
from tests.toys import CAT, picture

TAXONOMY = Taxonomy.load()


def read(tmp_path: Path, *lines: str) -> list[Sample]:
    file = tmp_path / "samples.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return samples_from_jsonl(file, TAXONOMY)


def line(**row: Any) -> str:
    return json.dumps({"id": "a", "image": "a.png", **row}, ensure_ascii=False)


def test_files_are_called_by_name_and_folders_by_the_path_inside(tmp_path: Path) -> None:
    picture(tmp_path / "album" / "b" / "2.png")
    picture(tmp_path / "album" / "1.JPG")
    picture(tmp_path / "album" / ".hidden" / "3.png")
    (tmp_path / "album" / "notes.txt").write_text("no picture")
    alone = picture(tmp_path / "alone.webp")
    assert [s.id for s in samples_from_paths([alone, tmp_path / "album"])] == ["alone.webp", "1.JPG", "b/2.png"]


def test_equal_names_of_different_pictures_become_paths(tmp_path: Path) -> None:
    one, two = picture(tmp_path / "a" / "x.png"), picture(tmp_path / "b" / "x.png")
    assert [s.id for s in samples_from_paths([one, two])] == [one.as_posix(), two.as_posix()]


def test_the_same_picture_twice_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    one = picture(tmp_path / "x.png")
    with pytest.raises(UsageError, match="stands twice"):
        samples_from_paths([one, one])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no picture"):
        samples_from_paths([tmp_path / "empty"])


def test_a_missing_file_stays_a_sample_so_that_it_becomes_an_unscored_row(tmp_path: Path) -> None:
    assert [s.id for s in samples_from_paths([tmp_path / "gone.jpg"])] == ["gone.jpg"]


def test_a_row_keeps_its_own_keys_and_finds_its_picture_beside_the_file(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, line(text="  a cat 治愈 ", category="napping_cat", mine={"x": 1}))
    assert sample.image == tmp_path / "a.png"
    assert sample.text == "a cat 治愈"
    assert sample.category == CAT
    assert sample.extra == {"mine": {"x": 1}}
    assert sample_row(sample)["mine"] == {"x": 1}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('{"id": "a"', "samples.jsonl:2: not JSON"),
        ('{"id": "b", "image": "b.png", "text": "x \\ud800"}', "samples.jsonl:2: holds half a character"),
        ("[1, 2]", "samples.jsonl:2: not a JSON object"),
        ('{"id": "b", "image": "b.png", "mine": NaN}', "samples.jsonl:2: not JSON (NaN is no JSON value)"),
        ('{"id": "b"}', "samples.jsonl:2: image: this key is missing"),
        (
            '{"id": "b", "image": "b.png", "text": "  "}',
            "samples.jsonl:2: text: is empty; fill it or leave the key out",
        ),
        ('{"id": "b", "image": ""}', "samples.jsonl:2: image: is empty; fill it"),
        ('{"id": 7, "image": "b.png"}', "samples.jsonl:2: id: Input should be a valid string"),
        ('{"id": "b", "image": "b.png", "category": "napping_ct"}', "did you mean quiet_company/napping_cat"),
        ('{"id": "b", "image": "b.png", "category": "others/others_others"}', "is not a valid pair"),
    ],
)
def test_a_bad_line_is_a_problem_with_its_number_and_the_others_go_on(tmp_path: Path, bad: str, message: str) -> None:
    first, second, third = read(tmp_path, line(), bad, line(id="c"))
    assert first.problem is None
    assert third.problem is None
    assert second.problem is not None
    assert second.problem.code == "schema_violation"
    assert message in second.problem.message
    assert second.id in ("b", "samples.jsonl:2")


def test_equal_ids_are_refused_with_both_lines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'a' stands twice \(.*samples.jsonl:1 and .*samples.jsonl:3\)"):
        read(tmp_path, line(), "", line())


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no sample"):
        read(tmp_path, "", "  ")
    with pytest.raises(UsageError, match="cannot be read"):
        samples_from_jsonl(tmp_path / "none.jsonl", TAXONOMY)


def test_defaults_fill_only_what_is_left_out(tmp_path: Path) -> None:
    rows = read(tmp_path, line(), line(id="b", text="own", category="friendly_dog"), "broken")
    first, second, third = with_defaults(rows, "given", CAT)
    assert (first.text, first.category) == ("given", CAT)
    assert (second.text, second.category) == ("own", "quiet_company/friendly_dog")
    assert (third.text, third.category) == (None, None)


@given(text=st.text(min_size=1).filter(lambda t: bool(t.strip())))
def test_a_text_in_any_script_comes_through_unchanged(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        row = line(text=text)
        row.encode()
    except UnicodeEncodeError:
        row = json.dumps({"id": "a", "image": "a.png", "text": text})
    (sample,) = read(tmp_path_factory.mktemp("t"), row)
    assert (sample.text or "").strip() == text.strip()


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1))
def test_no_content_of_a_file_raises_anything_but_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    try:
        samples = read(tmp_path_factory.mktemp("t"), *lines)
    except UsageError:
        return
    assert len(samples) == sum(bool(text.strip()) for text in lines)


def test_the_demo_names_licence_and_author_of_every_picture() -> None:
    samples = samples_from_jsonl(DEMO, TAXONOMY)
    pictures = {s.image for s in samples}
    assert all(s.problem is None and s.text for s in samples)
    assert all(s.image.is_file() for s in samples)
    assert {p.name for p in DEMO.parent.glob("*.jpg")} == {p.name for p in pictures}
    assert len({TAXONOMY.category(s.category or "").heal_class for s in samples}) == 6
    assert sum(s.extra["change"] == "resized" and not s.id.endswith("_wrong_text") for s in samples) >= 24
    assert sum(s.extra["expected"] == "fails" for s in samples) >= 6
    assert sum(p.stat().st_size for p in pictures) < 3_000_000
    for sample in samples:
        assert sample.extra["author"]
        assert sample.extra["licence"].startswith(("CC0", "CC-BY", "public-domain"))
