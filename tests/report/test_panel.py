"""The panel, the keyboard, and what assistive technology needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import Made, unavailable
from tests.report.runs import NOTICE, QUESTIONS, TAXONOMY

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


def open_panel(this: Any, row_id: str) -> Any:
    this.page.evaluate("id => { location.hash = new URLSearchParams({ row: id }) }", row_id)
    this.page.wait_for_selector("#panel[open] h2")
    return this.page.locator("#panel")


def test_the_panel_shows_nine_questions_with_their_nearest_description(made: Made, opened: Open) -> None:
    row = next(r for r in made.rows if r["failures"] and r["text_source"] == "given")
    this = opened(made.index)
    panel = open_panel(this, row["id"])
    shown = panel.locator(".question").evaluate_all(
        "list => list.map(q => [q.querySelector('.rating b').textContent, q.querySelector('.asked').textContent,"
        " q.querySelector('.anchor span').textContent])"
    )
    expected = []
    for dimension, ratings in row["ratings"].items():
        questions = QUESTIONS.of(TAXONOMY.categories[row["category"]]).of(dimension)
        for question, rating in zip(questions, ratings, strict=True):
            anchor = min(question.anchors, key=lambda a: abs(a - rating))
            text = question.text.replace("{viewer}", "a typical adult viewer")
            expected.append([str(rating), text, question.anchors[anchor]])
    assert len(expected) == 9
    assert shown == expected
    text = panel.inner_text()
    assert row["text"] in text
    assert all(sentence in text for sentence in row["rationale"].values())
    panel.locator("summary").click()
    trace = panel.inner_text()
    for value in (row["judge"], row["judge_digest"], row["question_digest"], row["image_sha256"], "2026-01", row["id"]):
        assert value in trace
    assert panel.locator("img").evaluate("i => i.decode().then(() => i.naturalWidth)") == 640


def test_only_the_keyboard(made: Made, opened: Open) -> None:
    this = opened(made.index)
    page = this.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "open":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus can be seen"
    order = this.ids()
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel[open]")
    page.wait_for_function("() => document.activeElement.id === 'panel-title'")
    for key, expected in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        page.wait_for_function(
            "i => document.getElementById('panel-place').textContent.startsWith(i)", arg=f"{expected + 1} of"
        )
        assert f"row={order[expected].replace('/', '%2F')}" in page.url
    for _ in range(8):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#panel')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#panel", state="hidden")
    focused = page.evaluate("HB.data.ids[document.activeElement.closest('li').dataset.position]")
    assert focused == order[1], "the focus returns to the picture that was looked at"
    assert "row=" not in page.url


def test_the_ends_of_the_list(made: Made, opened: Open) -> None:
    this = opened(made.index)
    this.page.locator(".open").first.click()
    this.page.wait_for_selector("#panel[open] h2")
    assert this.page.is_disabled("#panel-prev")
    this.page.keyboard.press("ArrowLeft")
    assert this.page.inner_text("#panel-place") == "1 of 120"
    this.page.click("#panel-next")
    this.page.wait_for_function("() => document.getElementById('panel-place').textContent === '2 of 120'")
    this.page.click("#panel-close")
    this.page.wait_for_selector("#panel", state="hidden")


def test_a_linked_picture_opens_at_once(made: Made, opened: Open) -> None:
    row = made.rows[40]
    this = opened(made.index, f"#row={row['id'].replace('/', '%2F')}", wait="#panel[open] h2")
    assert this.page.inner_text("#panel h2") == row["text"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_and_the_button(made: Made, opened: Open, scheme: Any) -> None:
    this = opened(made.index, color_scheme=scheme)

    def is_dark() -> bool:
        channels = re.findall(r"\d+", this.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        return sum(map(int, channels[:3])) < 384

    assert is_dark() == (scheme == "dark")
    this.page.click("#theme")
    assert is_dark() == (scheme == "light")
    assert this.page.inner_text("#theme") == f"{scheme.capitalize()} theme"


@pytest.mark.parametrize("which", ["made", "hostile"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_page(which: str, width: int, request: Any, opened: Open) -> None:
    this = opened(request.getfixturevalue(which).index, viewport={"width": width, "height": 844})
    for details in this.page.locator("details").all():
        details.evaluate("d => { d.open = true }")
    assert this.page.evaluate("document.documentElement.scrollWidth") <= width
    this.page.locator(".open").first.click()
    this.page.wait_for_selector("#panel[open] h2")
    body = this.page.locator("#panel-body")
    assert body.evaluate("b => b.scrollWidth <= b.clientWidth")


def test_without_javascript_all_numbers_are_there(made: Made, opened: Open) -> None:
    with_script = opened(made.index)
    numbers = with_script.page.inner_text("#summary"), with_script.page.inner_text("#classes")
    this = opened(made.index, wait="#summary", java_script_enabled=False)
    assert (this.page.inner_text("#summary"), this.page.inner_text("#classes")) == numbers
    assert NOTICE in this.page.inner_text("main")
    assert "need JavaScript" in this.page.inner_text("#gallery")
    assert not this.page.is_visible("#filters")
    assert this.data_files() == []


def test_structure(made: Made, opened: Open) -> None:
    page = opened(made.index).page
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels)), "no heading level is skipped"
    assert page.locator("main, header, nav[aria-label], [role=search]").count() == 4
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input,select')].filter(x => !x.labels.length).map(x => x.outerHTML)"
    )
    assert unnamed == []
    assert page.get_attribute("#count", "aria-live") == "polite"
    assert page.evaluate(
        "[...document.querySelectorAll('*')].every(e => ![...e.attributes].some(a => a.name.startsWith('on')))"
    )


def test_the_policy_stops_whatever_should_slip_in(made: Made, opened: Open) -> None:
    this = opened(made.index)
    assert this.page.evaluate("fetch('https://example.org/').then(() => 'loaded', () => 'stopped')") == "stopped"
    handler = "<img src='data:,' onerror='window.hacked = 1'>"
    this.page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", handler)
    this.page.wait_for_timeout(200)
    assert this.page.evaluate("window.hacked") is None
    assert all("Content Security Policy" in c for c in this.complaints)
    assert len(this.complaints) >= 2
    this.complaints.clear()
    this.requests[:] = [url for url in this.requests if "example.org" not in url]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(made: Made, opened: Open, scheme: Any, width: int) -> None:
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        unavailable("axe-playwright-python not installed: the axe check did not run")
        return
    axe = (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    look: Any = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "reduced_motion": "reduce"}
    this = opened(made.index, bypass_csp=True, **look)  # axe itself needs eval
    for step in ("page", "panel"):
        if step == "panel":
            this.page.locator(".open").nth(2).click()
            this.page.wait_for_selector("#panel[open] h2")
            this.page.click("#panel summary")
        this.page.evaluate(axe)
        result = this.page.evaluate("axe.run({ preload: false })")
        problems = [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in result["violations"]]
        assert problems == [], step
        assert len(result["passes"]) > 20
