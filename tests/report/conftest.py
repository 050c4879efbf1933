"""A real Chromium for the page tests, and reports to open in it.

Without Chromium these tests say that they did not run; with HEALBENCH_REQUIRE_BROWSER=1 they fail instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from healbench.report import write_report
from healbench.types import Dimension
from tests.report.runs import Row, report_input, scored, synthetic, with_pictures

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 1">',
    "\"quotes\" and 'more' & {{ 7 * 7 }} ${window.hacked = 1}",
    "line\u2028separator\u2029and \\u003c/script>",
    "مكان هادئ بجانب البحر",
    "\u202eright to left override",
    "松林里的小径 🌲 e\u0301",
    "__proto__",
    "lone \ud800 surrogate",
    "x" * 3000,
]


def unavailable(reason: str) -> None:
    """Skips with a clear line, or fails where a browser is required."""
    if os.environ.get("HEALBENCH_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    path = os.environ.get("HEALBENCH_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        unavailable("Chromium not found: page tests did not run")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


@dataclass
class Opened:
    """A page and everything that it did besides what was asked."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def data_files(self) -> list[str]:
        return sorted({Path(r).stem for r in self.requests if "/data/" in r})

    def ids(self) -> list[str]:
        """The rows of the visible cards, in order."""
        cards = "[...document.querySelectorAll('#cards > li')]"
        return [str(x) for x in self.page.evaluate(f"{cards}.map(li => HB.data.ids[li.dataset.position])")]

    def count(self) -> str:
        return self.page.inner_text("#count")


@pytest.fixture
def opened(browser: Browser) -> Iterator[Any]:
    """`opened(index_html, hash="", **context)` opens a report; afterwards nothing may have gone wrong in any."""
    everything: list[Opened] = []

    def open_report(path: Path, hash_: str = "", *, wait: str = ".card", **context: Any) -> Opened:
        page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context}).new_page()
        page.set_default_timeout(10_000)
        this = Opened(page)
        everything.append(this)
        page.on("request", lambda r: this.requests.append(r.url))
        page.on("console", lambda m: this.complaints.append(f"{m.type}: {m.text}") if m.type != "log" else None)
        page.on("pageerror", lambda e: this.complaints.append(f"error: {e}"))
        page.goto(path.as_uri() + hash_)
        page.wait_for_selector(wait, state="attached")
        return this

    yield open_report
    for this in everything:
        outside = [url for url in this.requests if not url.startswith(("file:", "data:"))]
        this.page.context.close()
        assert outside == [], "the report asked for something outside its folder"
        assert this.complaints == []


@dataclass(frozen=True)
class Made:
    rows: list[Row]
    index: Path


def make(folder: Path, rows: list[Row], **other: Any) -> Made:
    images = with_pictures(rows, folder / "pictures")
    return Made(rows, write_report(folder / "run", report_input(rows, images, **other)))


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """120 rows over all categories, some suggested, some without a score."""
    rows = synthetic(120)
    for row in rows[3:30:9]:
        row["category_source"] = "suggested"
    for row in rows[4:40:9]:
        row["text_source"] = "category"
    return make(tmp_path_factory.mktemp("report"), rows)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Every text of a row is an attack or an oddity."""
    ratings: dict[Dimension, tuple[int, int, int]] = {"alignment": (6, 6, 6), "heal": (2, 6, 6), "quality": (6, 6, 6)}
    rows = [
        scored(
            f"{k} {text}", "green_space/forest_canopy_path", ratings,
            text=text, judge=text, params={text: text}, rationale=dict.fromkeys(ratings, text),
        )
        for k, text in enumerate(HOSTILE)
    ]  # fmt: skip
    rows.append(scored("own", "__proto__", ratings, heal_class="</script><b>", text="own category"))
    samples = [{"id": row["id"], "author": row["text"], "source_url": "javascript:window.hacked=1"} for row in rows]
    notice = HOSTILE[0] + HOSTILE[1]
    return make(tmp_path_factory.mktemp("hostile"), rows, samples=samples, notice=notice, title=HOSTILE[1])
