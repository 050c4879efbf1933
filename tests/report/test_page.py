"""The files of a report, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from healbench.images import load_picture
from healbench.report import write_report
from healbench.report.payload import script
from healbench.report.thumbs import CARD_PIXELS, PANEL_PIXELS
from tests.report.conftest import HOSTILE, Made
from tests.report.runs import picture, report_input, scored, synthetic, unscored, with_pictures

FOREST = "green_space/forest_canopy_path"
SCORES: Any = {"alignment": 6.0, "heal": 6.0, "quality": 6.0}


def arguments(path: Path) -> list[Any]:
    """What a data file hands over; its text is JSON once the escapes are undone."""
    match = re.fullmatch(r"HB\.\w+\((.*)\);\n", path.read_text(encoding="utf-8"), re.DOTALL)
    assert match, f"{path.name} is not one call"
    return list(json.loads(f"[{match[1]}]"))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_twice_the_same_bytes_and_no_leftovers(tmp_path: Path) -> None:
    rows = synthetic(30)
    source = report_input(rows, with_pictures(rows, tmp_path / "pictures"))
    index = write_report(tmp_path / "run", source)
    first = snapshot(index.parent)
    assert index == tmp_path / "run/report/index.html"
    assert set(first) >= {
        "index.html", "report.css", "report.js", "gallery.js", "panel.js", "summary.json",
        "data/index.js", "data/search.js", "data/details.js", "data/0.js",
    }  # fmt: skip
    write_report(tmp_path / "run", source)
    assert snapshot(index.parent) == first
    again = write_report(tmp_path / "other", source, workers=1)
    assert snapshot(again.parent) == first, "a fresh folder and one thread make the same bytes too"


def test_a_smaller_run_removes_what_is_no_longer_shown(tmp_path: Path) -> None:
    rows = synthetic(450)
    images = with_pictures(rows, tmp_path / "pictures")
    index = write_report(tmp_path / "run", report_input(rows, images))
    assert (index.parent / "data/2.js").exists()
    write_report(tmp_path / "run", report_input(rows[:1], images))
    assert sorted(p.name for p in (index.parent / "data").iterdir()) == ["0.js", "details.js", "index.js", "search.js"]
    assert len(list((index.parent / "thumbs").iterdir())) == 2


def test_pictures_are_made_once(tmp_path: Path) -> None:
    rows = synthetic(8)
    images = with_pictures(rows, tmp_path / "pictures", different=2)
    seen: list[tuple[int, int]] = []
    index = write_report(tmp_path / "run", report_input(rows, images), progress=lambda *x: seen.append(x))
    thumbs = sorted((index.parent / "thumbs").iterdir())
    assert len(thumbs) == 4, "a small and a large one of each of two pictures"
    assert seen == [(1, 2), (2, 2)]
    sizes = sorted(max(load_picture(p).rgb.shape) for p in thumbs)
    assert sizes == [CARD_PIXELS, CARD_PIXELS, 640, 640]
    assert PANEL_PIXELS > 640, "no picture is made larger than it is"
    before = {p.name: p.stat().st_mtime_ns for p in thumbs}
    for path in set(images.values()):
        path.unlink()
    write_report(tmp_path / "run", report_input(rows, images))
    assert {p.name: p.stat().st_mtime_ns for p in (index.parent / "thumbs").iterdir()} == before
    (index.parent / "thumbs" / thumbs[0].name).write_bytes(b"damaged")
    write_report(tmp_path / "run", report_input(rows, images))
    entries = arguments(index.parent / "data/0.js")[1]
    assert sum("noPicture" in entry for entry in entries) == 4, "one of two pictures is damaged, and its file is gone"


def test_a_picture_that_cannot_be_shown_says_why(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no picture at all")
    changed = picture(tmp_path / "changed.png")
    picture(tmp_path / "changed.png", (1, 2, 3))
    rows = [
        unscored("text.jpg", FOREST, "image_unreadable", "not a picture"),
        scored("changed.png", FOREST, scores=SCORES, image_sha256=changed),
        scored("lost.png", FOREST, scores=SCORES, image_sha256="0" * 64),
        scored("unknown.png", FOREST, scores=SCORES),
    ]
    images = {name: tmp_path / name for name in ("text.jpg", "changed.png", "lost.png")}
    index = write_report(tmp_path / "run", report_input(rows, images))
    ids = arguments(index.parent / "data/index.js")[0]["ids"]
    entries = dict(zip(ids, arguments(index.parent / "data/0.js")[1], strict=True))
    assert all("picture" not in entry for entry in entries.values())
    assert entries["changed.png"]["noPicture"] == "the file has changed since it was scored"
    assert entries["unknown.png"]["noPicture"] == "no picture is known for this row"
    assert entries["text.jpg"]["noPicture"] and entries["lost.png"]["noPicture"]


def test_texts_cannot_leave_their_string(hostile: Made) -> None:
    for path in (hostile.index.parent / "data").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search("[<>&\u2028\u2029]", text), path.name
        arguments(path)
    assert script("x", "</script>\u2028\ud800") == b'HB.x("\\u003c/script\\u003e\\u2028\\ud800");\n'
    (texts,) = arguments(hostile.index.parent / "data/search.js")
    assert set(HOSTILE) <= set(texts)
    html = hostile.index.read_text(encoding="utf-8")
    assert html.count("<script") == 4
    assert "<img" not in html
    assert not re.search(r"\son\w+=", re.sub(r"&#?\w+;[^<]*", "", html)), "no inline event handlers"


def test_the_index_is_compact_and_in_display_order(made: Made) -> None:
    (index,) = arguments(made.index.parent / "data/index.js")
    totals = index["total"]
    known = [t for t in totals if t is not None]
    assert known == sorted(known, reverse=True)
    assert totals[len(known) :] == [None] * sum(r["unscored"] is not None for r in made.rows)
    by_id = {row["id"]: row for row in made.rows}
    for k, row_id in enumerate(index["ids"]):
        row = by_id[row_id]
        assert index["categories"][index["cat"][k]][0] == row["category"]
        assert index["classes"][index["cls"][k]][0] == row["heal_class"]
        if row["unscored"]:
            assert (index["fails"][k], index["heal"][k]) == (-1, None)
        else:
            bits = sum(1 << n for n, d in enumerate(("alignment", "heal", "quality")) if d in row["failures"])
            assert index["fails"][k] == bits


def test_the_summary_file_holds_the_numbers_of_the_page(made: Made) -> None:
    summary = json.loads((made.index.parent / "summary.json").read_text(encoding="utf-8"))
    scores = [row["total"] for row in made.rows if row["unscored"] is None]
    assert summary["overall"]["means"]["total"]["mean"] == pytest.approx(sum(scores) / len(scores), abs=1e-6)
    assert summary["overall"]["scored"] == len(scores)
    html = made.index.read_text(encoding="utf-8")
    for number in summary["overall"]["means"].values():
        assert f"{number['mean']:.2f}" in html
        assert f"{number['low']:.2f} – {number['high']:.2f}" in html
    assert f"{100 * summary['overall']['healing']['rate']:.0f}%" in html


def test_changed_questions_are_not_shown_as_those_that_were_asked(tmp_path: Path) -> None:
    rows = [
        scored("a", FOREST, {"alignment": (5, 5, 5), "heal": (5, 5, 5), "quality": (5, 5, 5)}, question_digest="old")
    ]
    index = write_report(tmp_path / "run", report_input(rows, {}))
    (entry,) = arguments(index.parent / "data/0.js")[1]
    assert entry["questions"] == -1


def test_times_come_from_the_run_alone(made: Made) -> None:
    dates = set(re.findall(r"20\d\d-\d\d-\d\d[T ][\d:]+Z?", made.index.read_text(encoding="utf-8")))
    assert dates == {"2026-01-02T03:04:05Z", "2026-01-02T03:04:09Z"}
