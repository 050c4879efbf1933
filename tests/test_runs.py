import json
from pathlib import Path
from typing import Any

import pytest

import healbench
from healbench.errors import UsageError
from healbench.report import write_report
from healbench.report.source import report_source
from healbench.runs import score_into
from healbench.samples import DEMO
from healbench.store import read_rows
from tests.toys import ToyJudge, picture, sample, scoring

ROWS = 15_330
"""14 models on the eval set of 1,095 prompts."""


def test_the_short_way_in_from_python_takes_a_path_a_text_or_several() -> None:
    cup, kitten = DEMO.parent / "coffee_cup.jpg", DEMO.parent / "kitten.jpg"
    (one,) = healbench.score(str(cup))
    two = healbench.score([cup, str(kitten)], text="a cup", category="warm_home_table")
    assert one["category_source"] == "suggested"
    assert [row["category"] for row in two] == ["cozy_interior/warm_home_table"] * 2
    assert [row["text"] for row in two] == ["a cup"] * 2
    with pytest.raises(UsageError, match="did you mean"):
        healbench.score(cup, category="warm_home_tabel")


def into(folder: Path, samples: list[Any], judge: ToyJudge) -> tuple[dict[str, Any], int]:
    rows: list[dict[str, Any]] = []
    about = score_into(folder, samples, scoring(judge), rows.append)
    return about, len(rows)


def test_fewer_samples_leave_the_others_rows_and_more_come_on_top(tmp_path: Path) -> None:
    paths = [picture(tmp_path / f"{i}.png", grey=40 * i) for i in range(5)]
    samples = [sample(path) for path in paths]
    judge = ToyJudge()
    into(tmp_path / "run", samples, judge)
    about, _ = into(tmp_path / "run", samples[:2], judge)
    assert about["counts"] == {"total": 2, "scored": 2, "unscored": 0, "cached": 2}
    source = report_source(tmp_path / "run")
    assert [row["id"] for row in source.rows] == ["0.png", "1.png"]
    about, _ = into(tmp_path / "run", samples, judge)
    assert about["counts"]["cached"] == 5
    assert len(judge.asked) == 5


@pytest.mark.long
def test_a_whole_benchmark_of_rows_is_scored_resumed_and_reported(tmp_path: Path) -> None:
    paths = [picture(tmp_path / f"{i}.png", grey=i) for i in range(200)]
    samples = [sample(paths[i % 200], id=f"s{i:05d}", text=f"prompt {i % 1095}") for i in range(ROWS)]
    judge = ToyJudge()
    about, count = into(tmp_path / "run", samples, judge)
    assert about["counts"] == {"total": ROWS, "scored": ROWS, "unscored": 0, "cached": 0}
    assert count == len(judge.asked) == ROWS
    before = (tmp_path / "run" / "judgements.jsonl").read_bytes()
    about, _ = into(tmp_path / "run", samples, judge)
    assert about["counts"]["cached"] == ROWS
    assert len(judge.asked) == ROWS
    assert (tmp_path / "run" / "judgements.jsonl").read_bytes() == before
    rows = list(read_rows(tmp_path / "run" / "judgements.jsonl"))
    index = write_report(tmp_path / "run", report_source(tmp_path / "run"))
    summary = json.loads((index.parent / "summary.json").read_text(encoding="utf-8"))
    mean = sum(row["total"] for row in rows) / ROWS
    assert f"{mean:.6f}"[:8] in json.dumps(summary)
    assert index.stat().st_size + (index.parent / "data" / "index.js").stat().st_size < 3_000_000
