"""The whole benchmark of 15,330 rows: small index, few files at first, first cards at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.report.conftest import Made, make
from tests.report.runs import synthetic

pytestmark = pytest.mark.browser
ROWS = 15_330


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("many"), synthetic(ROWS))


def test_many_rows_stay_usable(many: Made, opened: Callable[..., Any]) -> None:
    folder = many.index.parent
    size = many.index.stat().st_size + (folder / "data/index.js").stat().st_size
    assert size < 3_000_000
    this = opened(many.index)
    assert this.data_files() == ["0", "index"], "the first look needs one chunk"
    missing = sum(row["unscored"] is not None for row in many.rows)
    assert this.count() == f"{ROWS:,} pictures, 24 shown"
    this.page.select_option("[name=failed]", "unscored")
    this.page.wait_for_function("n => document.getElementById('count').textContent.startsWith(n)", arg=f"{missing} of")
    this.page.wait_for_selector(".card")
    assert len(this.data_files()) < 8
    this.page.select_option("[name=failed]", "")
    this.page.fill("[name=q]", "number 15000, evening")
    this.page.wait_for_function("() => document.getElementById('count').textContent.startsWith('1 of 15,330')")
    assert this.ids() == ["pictures/sample-15000.png"]
    this.page.locator(".open").click()
    this.page.wait_for_selector("#panel[open] h2")
    assert "number 15000" in this.page.inner_text("#panel h2")


def test_the_page_lists_only_so_many_unscored_rows(many: Made) -> None:
    html = many.index.read_text(encoding="utf-8")
    assert html.count("no reply within 60 s") == 100
    assert "and 801 more" in html
