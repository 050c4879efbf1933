"""The gallery in a real browser: filters, sorting, search and paging against the same worked out in Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from healbench.report import write_report
from tests.report.conftest import HOSTILE, Made
from tests.report.runs import TAXONOMY, Row, report_input, scored, unscored

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
PAGE = 24


def is_scored(row: Row) -> bool:
    return row["unscored"] is None


def settled(opened: Any, expected: int) -> None:
    """Waits until the count says that so many rows fit."""
    start = f"{expected:,} " if expected else "No picture fits"
    opened.page.wait_for_function("start => document.getElementById('count').textContent.startsWith(start)", arg=start)
    if expected:
        opened.page.wait_for_selector(".card")


RESULTS: dict[str, Callable[[Row], bool]] = {
    "healing": lambda r: is_scored(r) and not r["failures"],
    "any": lambda r: is_scored(r) and bool(r["failures"]),
    "alignment": lambda r: is_scored(r) and "alignment" in r["failures"],
    "heal": lambda r: is_scored(r) and "heal" in r["failures"],
    "quality": lambda r: is_scored(r) and "quality" in r["failures"],
    "heal-only": lambda r: is_scored(r) and r["failures"] == ["heal"],
    "unscored": lambda r: not is_scored(r),
}


@pytest.mark.parametrize("result", RESULTS)
def test_filter_by_result(made: Made, opened: Open, result: str) -> None:
    expected = {row["id"] for row in made.rows if RESULTS[result](row)}
    assert 0 < len(expected) < len(made.rows)
    this = opened(made.index)
    this.page.select_option("[name=failed]", result)
    settled(this, len(expected))
    assert set(this.ids()) <= expected
    assert len(this.ids()) >= min(PAGE, len(expected))
    assert this.page.url.endswith(f"#failed={result}")


def test_filter_by_class_and_category(made: Made, opened: Open) -> None:
    this = opened(made.index)
    of_class = {row["id"] for row in made.rows if row["heal_class"] == "rhythmic_focus"}
    this.page.select_option("[name=class]", "rhythmic_focus")
    settled(this, len(of_class))
    assert set(this.ids()) <= of_class
    category = next(row["category"] for row in made.rows if row["heal_class"] == "rhythmic_focus")
    of_category = {row["id"] for row in made.rows if row["category"] == category}
    this.page.select_option("[name=category]", category)
    settled(this, len(of_category))
    assert set(this.ids()) == of_category
    this.page.click("#reset")
    settled(this, len(made.rows))
    assert this.page.input_value("[name=category]") == ""
    assert this.page.evaluate("document.activeElement.name") == "q"


@pytest.mark.parametrize("key", ["total", "alignment", "heal", "quality", "id"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_sort(made: Made, opened: Open, key: str, direction: str) -> None:
    this = opened(made.index, f"#sort={key}&dir={direction}")
    first = this.ids()[:PAGE]
    by_id = {row["id"]: row for row in made.rows}
    if key == "id":
        assert first == sorted(by_id, reverse=direction == "desc")[:PAGE]
        return
    values = sorted((row[key] for row in made.rows if is_scored(row)), reverse=direction == "desc")
    assert [by_id[i][key] for i in first] == pytest.approx(values[:PAGE])


def test_unscored_rows_are_last_whatever_the_order(made: Made, opened: Open) -> None:
    missing = {row["id"] for row in made.rows if not is_scored(row)}
    for direction in ("asc", "desc"):
        this = opened(made.index, f"#sort=heal&dir={direction}")
        while this.page.is_visible("#more"):
            shown = len(this.ids())
            this.page.click("#more")
            this.page.wait_for_function("n => document.querySelectorAll('#cards > li').length > n", arg=shown)
        assert set(this.ids()[-len(missing) :]) == missing


def test_search_finds_every_word_in_text_id_and_category(made: Made, opened: Open) -> None:
    this = opened(made.index)
    assert "search" not in this.data_files(), "texts are only loaded for a search"
    this.page.fill("[name=q]", "SAMPLE-00017  evening")
    settled(this, 1)
    assert this.ids() == ["pictures/sample-00017.png"]
    assert "search" in this.data_files()
    category = TAXONOMY.categories[made.rows[0]["category"]].name
    words = category.lower().split()
    expected = [
        row["id"]
        for row in made.rows
        if all(
            word in " ".join([row["id"], row["text"], row["category"], TAXONOMY.categories[row["category"]].name,
                              TAXONOMY.classes[row["heal_class"]].name]).lower()
            for word in words
        )
    ]  # fmt: skip
    this.page.fill("[name=q]", category)
    settled(this, len(expected))
    assert set(this.ids()) == set(expected)
    this.page.fill("[name=q]", "no such words anywhere")
    settled(this, 0)
    assert this.ids() == []


def test_paging_by_button_and_by_scrolling(made: Made, opened: Open) -> None:
    this = opened(made.index, viewport={"width": 1280, "height": 400})
    assert len(this.ids()) == PAGE
    assert this.count() == f"{len(made.rows)} pictures, 24 shown"
    this.page.evaluate("document.getElementById('more').click()")
    this.page.wait_for_function("() => document.querySelectorAll('#cards > li').length === 48")
    this.page.evaluate("window.scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    this.page.wait_for_function("() => document.querySelectorAll('#cards > li').length >= 72")
    ids = this.ids()
    assert len(set(ids)) == len(ids)


def test_a_view_can_be_linked_and_survives_a_reload(made: Made, opened: Open) -> None:
    this = opened(made.index, "#failed=heal&sort=quality&dir=asc")
    expected = [row for row in made.rows if RESULTS["heal"](row)]
    settled(this, len(expected))
    before = this.ids()
    this.page.select_option("[name=dir]", "desc")
    this.page.wait_for_url(re.compile("#failed=heal&sort=quality$"))
    this.page.reload()
    settled(this, len(expected))
    assert this.ids() != before
    assert this.page.input_value("[name=sort]") == "quality"


def test_numbers_in_the_summary_lead_to_their_pictures(made: Made, opened: Open) -> None:
    this = opened(made.index)
    this.page.click("#classes tbody a >> nth=0")
    expected = [row for row in made.rows if row["heal_class"] == "natural_restoration"]
    settled(this, len(expected))
    assert this.page.evaluate("document.activeElement.id") == "gallery-title"
    this.page.click("#summary a[href='#failed=heal']")
    settled(this, sum(RESULTS["heal"](row) for row in made.rows))
    assert this.page.input_value("[name=class]") == ""


def test_a_card_says_what_failed_and_why_first(made: Made, opened: Open) -> None:
    this = opened(made.index, "#failed=quality&sort=id&dir=asc")
    row = next(row for row in made.rows if row["id"] == this.ids()[0])
    card = this.page.locator(".card").first
    text = card.inner_text()
    for dimension in ("alignment", "heal", "quality"):
        assert f"{row[dimension]:.2f}" in text
        assert (f"{dimension.capitalize()} fails" in text) == (dimension in row["failures"])
    assert f"{row['total']:.2f} of 40" in text
    first = card.locator(".why").first.inner_text()
    assert first.split(":")[0].lower() in row["failures"]
    image = card.locator("img")
    assert image.get_attribute("alt") == row["text"]
    assert image.get_attribute("loading") == "lazy"
    assert int(image.get_attribute("width")) == 384
    assert image.evaluate("i => i.decode().then(() => i.naturalWidth)") == 384


def test_flags_stand_where_text_or_category_were_not_given(made: Made, opened: Open) -> None:
    this = opened(made.index)
    assert "3 of 120 pictures came without a category" in this.page.inner_text("#summary")
    assert "4 of 120 pictures came without a text" in this.page.inner_text("#summary")
    this.page.fill("[name=q]", "sample-00003")
    settled(this, 1)
    assert "category suggested" in this.page.locator(".card").inner_text()
    this.page.fill("[name=q]", "sample-00004")
    this.page.wait_for_function(
        "() => HB.data.ids[document.querySelector('#cards > li').dataset.position].includes('0004')"
    )


def test_unscored_rows_say_why(made: Made, opened: Open) -> None:
    missing = [row for row in made.rows if not is_scored(row)]
    this = opened(made.index, "#failed=unscored")
    assert sorted(this.ids()) == sorted(row["id"] for row in missing)
    assert "no reply within 60 s" in this.page.locator(".card").first.inner_text()
    assert "of 40" not in this.page.locator(".card").first.inner_text()
    section = this.page.inner_text("#unscored")
    assert f"No reply in time ({len(missing)})" in section
    assert all(row["id"] in section for row in missing)


def test_hostile_texts_stay_texts(hostile: Made, opened: Open) -> None:
    this = opened(hostile.index)
    assert this.page.evaluate("window.hacked") is None
    shown = this.page.evaluate("[...document.querySelectorAll('.card h3')].map(h => h.textContent)")
    readable = [text.replace("\ud800", "\ufffd") for text in HOSTILE]
    assert {t.replace("\ud800", "\ufffd") for t in shown} >= set(readable)
    assert this.page.title() == HOSTILE[1]
    assert HOSTILE[0] in this.page.inner_text(".notice")
    for text in HOSTILE[:4]:
        this.page.fill("[name=q]", text.replace("\u2028", " ").replace("\u2029", " "))
        settled(this, 1)
    this.page.locator(".open").first.click()
    this.page.wait_for_selector("#panel[open]")
    this.page.click("#panel summary")
    assert this.page.locator("#panel a").count() == 0, "only http links become links"
    assert this.page.evaluate("window.hacked") is None
    assert this.page.evaluate("document.querySelectorAll('main img[src=x], #panel img[src=x], b script').length") == 0


@pytest.mark.parametrize("empty", [True, False])
def test_without_scores_the_page_says_so(tmp_path: Path, opened: Open, empty: bool) -> None:
    forest = "green_space/forest_canopy_path"
    rows = [] if empty else [unscored(f"{k}.png", forest, "refused", "no") for k in range(3)]
    index = write_report(tmp_path, report_input(rows, {}))
    this = opened(index, wait="#summary" if empty else ".card")
    text = this.page.inner_text("#summary")
    assert "No picture was scored, so there are no numbers." in text
    assert "NaN" not in this.page.inner_text("body")
    assert this.page.locator(".bar-fill").count() == 0
    settled(this, len(rows))


def test_a_dimension_judge(tmp_path: Path, opened: Open) -> None:
    scores: Any = {"alignment": 6.5, "heal": 4.25, "quality": 7.0}
    rows = [scored("a.png", "green_space/forest_canopy_path", scores=scores)]
    this = opened(write_report(tmp_path, report_input(rows, {})))
    assert "Each dimension is one score from 1 to 10." in this.page.inner_text("#summary")
    assert "three ratings" not in this.page.inner_text("#summary")
    this.page.locator(".open").click()
    panel = this.page.locator("#panel")
    panel.locator("h2").wait_for()
    assert panel.locator(".question").count() == 0
    assert "Fails: score below 5" in panel.inner_text()
    assert "does not answer the nine questions" in panel.inner_text()
