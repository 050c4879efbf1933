import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import pearsonr

from healbench.errors import RunFolderError, UsageError
from healbench.question_review import ItemStatistics, Review, review_rows, review_table
from healbench.questions import Questions
from healbench.review_csv import COLUMNS, ReviewRow, read_review, write_review
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS

CAT = "quiet_company/napping_cat"
TAXONOMY = Taxonomy.load()
QUESTIONS = Questions()


def run_folder(path: Path, ratings: NDArray[Any], category: str = CAT, **change: Any) -> Path:
    """A run whose rows carry ratings of shape (rows, 3 dimensions, 3 questions)."""
    path.mkdir()
    config = {"judge": "toy", "judge_notice": "A toy.", "taxonomy": "embedded", "questions": "embedded"}
    digests = {"judge": "1", "taxonomy": TAXONOMY.digest}
    about = {"schema": 1, "config": {**config, **change.get("config", {})}, "digests": digests}
    (path / "run.json").write_text(json.dumps(about))
    digest = change.get("digest", QUESTIONS.of(TAXONOMY.category(category)).digest)
    with (path / "judgements.jsonl").open("w") as file:
        for i, nine in enumerate(ratings.tolist()):
            row = {"id": f"p{i:03}", "category": category, "question_digest": digest, "unscored": None}
            file.write(json.dumps({**row, "ratings": dict(zip(DIMENSIONS, nine, strict=True))}) + "\n")
        for row in change.get("rows", ()):
            file.write(json.dumps(row) + "\n")
    return path


def drawn(n: int, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(1, 11, (n, 3, 3))


def item(review: Review, name: str) -> ItemStatistics:
    return next(i for i in review.items if i.id == f"{CAT} {name}")


def test_statistics_agree_with_an_independent_computation(tmp_path: Path) -> None:
    ratings = drawn(40)
    review = review_rows([run_folder(tmp_path / "run", ratings)])
    assert len(review.items) == 9
    for d, dimension in enumerate(DIMENSIONS):
        for k in range(3):
            found = item(review, f"{dimension}.{k}")
            column = ratings[:, d, k].tolist()
            assert found.n == 40
            assert math.isclose(found.mean, statistics.fmean(column))
            assert found.sd is not None
            assert math.isclose(found.sd, statistics.stdev(column))
            assert math.isclose(found.ceiling, sum(r >= 9 for r in column) / 40)
            assert math.isclose(found.floor, sum(r <= 2 for r in column) / 40)
            within = [pearsonr(column, ratings[:, d, j]).statistic for j in range(3) if j != k]
            others = [e for e in range(3) if e != d]
            cross = [abs(pearsonr(column, ratings[:, e, j]).statistic) for e in others for j in range(3)]
            assert found.within_r is not None
            assert found.cross_r is not None
            assert math.isclose(found.within_r, sum(within) / 2, abs_tol=1e-12)
            assert math.isclose(found.cross_r, max(cross), abs_tol=1e-12)
            far = sorted(range(40), key=lambda i: (-abs(column[i] - statistics.fmean(column)), i))[:3]
            assert list(found.examples) == [f"p{i:03} ({column[i]})" for i in far]


def test_each_flag_is_raised_by_ratings_that_deserve_it_and_by_no_others(tmp_path: Path) -> None:
    ratings = drawn(60)
    ratings[:, 0, 0] = 9
    ratings[:, 0, 1] = np.where(np.arange(60) < 40, 2, 8)
    ratings[:, 1, 1] = ratings[:, 1, 2] = ratings[:, 1, 0]
    ratings[:, 2, 0] = 11 - ratings[:, 1, 0]
    review = review_rows([run_folder(tmp_path / "run", ratings)])
    flags = {i.id.split()[1]: i.flags for i in review.items}
    assert flags["alignment.0"] == ("no spread", "ceiling")
    assert flags["alignment.1"] == ("floor",)
    assert flags["alignment.2"] == ()
    assert flags["heal.0"] == flags["heal.1"] == flags["heal.2"] == ("redundant", "halo")
    assert flags["quality.0"] == ("halo",)
    assert flags["quality.1"] == flags["quality.2"] == ()
    assert [len(i.flags) for i in review.items] == sorted((len(f) for f in flags.values()), reverse=True)


@pytest.mark.parametrize("n", [1, 2])
def test_what_is_not_defined_is_none_and_never_a_number(tmp_path: Path, n: int) -> None:
    review = review_rows([run_folder(tmp_path / "run", drawn(n))])
    for found in review.items:
        assert (found.within_r, found.cross_r) == (None, None)
        assert (found.sd is None) == (n == 1)
        assert "few" in found.flags
        assert "undefined" in next(r.reason for r in review_table(review) if r.id == found.id)


def test_a_question_that_never_varies_leaves_the_correlations_of_the_others(tmp_path: Path) -> None:
    ratings = drawn(30)
    ratings[:, 1, 0] = 5
    review = review_rows([run_folder(tmp_path / "run", ratings)])
    assert (item(review, "heal.0").within_r, item(review, "heal.0").cross_r) == (None, None)
    assert math.isclose(item(review, "heal.1").within_r or 0, pearsonr(ratings[:, 1, 1], ratings[:, 1, 2]).statistic)


def test_unscored_rows_and_dimension_judges_take_no_part(tmp_path: Path) -> None:
    row = {"category": CAT, "question_digest": "x", "ratings": None}
    others = [
        {"id": "a", **row, "unscored": {"code": "refused", "message": ""}},
        {"id": "b", **row, "unscored": None},
    ]
    review = review_rows([run_folder(tmp_path / "run", drawn(5), rows=others)])
    assert {i.n for i in review.items} == {5}
    assert review.left_out == {"unscored": 1, "without nine ratings": 1}
    with pytest.raises(UsageError, match="no row with nine ratings"):
        review_rows([run_folder(tmp_path / "none", drawn(0), rows=others)])


def test_a_sample_is_drawn_by_its_seed_and_runs_are_put_together(tmp_path: Path) -> None:
    one, two = run_folder(tmp_path / "one", drawn(30)), run_folder(tmp_path / "two", drawn(30, seed=1))
    both = review_rows([one, two])
    assert {i.n for i in both.items} == {60}
    assert both.items[0].examples[0].startswith(("one:p", "two:p"))
    some = review_rows([one, two], sample=20, seed=3)
    assert {i.n for i in some.items} == {20}
    assert some == review_rows([two, one], sample=20, seed=3)
    assert some != review_rows([one, two], sample=20, seed=4)
    with pytest.raises(UsageError, match="named twice"):
        review_rows([one, one])
    with pytest.raises(UsageError, match="--sample 0"):
        review_rows([one], sample=0)
    other = run_folder(tmp_path / "other", drawn(3), config={"judge": "harsh"})
    with pytest.raises(UsageError, match="another judge than in"):
        review_rows([one, other])
    with pytest.raises(RunFolderError, match="not a run folder"):
        review_rows([tmp_path / "gone"])


def test_the_csv_has_text_and_anchors_of_every_question_to_be_decided_on(tmp_path: Path) -> None:
    review = review_rows([run_folder(tmp_path / "run", drawn(25))])
    write_review(tmp_path / "review.csv", review_table(review))
    assert (
        (tmp_path / "review.csv")
        .read_bytes()
        .startswith(b"\xef\xbb\xbfkind,id,field,old,new,verdict,reason,reviewer\r\n")
    )
    rows = read_review(tmp_path / "review.csv")
    assert [number for number, _ in rows] == list(range(2, 2 + 9 * 5))
    nine = QUESTIONS.of(TAXONOMY.category(CAT))
    for _, row in rows:
        dimension, k = row.id.split()[1].split(".")
        question = next(q for q in nine.questions if (q.dimension, q.k) == (dimension, int(k)))
        anchor = row.field.removeprefix("anchor.")
        assert row.old == (question.text if row.field == "text" else question.anchors[int(anchor)])
        assert (row.kind, row.new, row.verdict, row.reviewer) == ("question", "", "", "")
        assert row.reason.startswith("n=25 mean=") == (row.field == "text")


def test_questions_that_have_changed_since_are_not_reviewed(tmp_path: Path) -> None:
    review = review_rows([run_folder(tmp_path / "run", drawn(3), digest="of another wording")])
    with pytest.raises(UsageError, match="has other questions now than those that were rated"):
        review_table(review)


cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["=1+1", "'=1", "''=", "+", "-a", "@b", "\t", "\r", "\n", "'", '"', "a;b,c", "\ufeff", "\x00", " = "]
)


@given(st.lists(st.builds(ReviewRow, st.just("question"), cells, cells, cells, cells, cells, cells, cells), max_size=4))
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[ReviewRow]) -> None:
    path = tmp_path_factory.mktemp("csv") / "review.csv"
    write_review(path, rows)
    assert read_review(path) == list(enumerate(rows, 2))


def test_no_cell_can_be_run_as_a_formula(tmp_path: Path) -> None:
    hostile = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "'=1"]
    write_review(tmp_path / "r.csv", [ReviewRow("question", cell, "text", cell) for cell in hostile])
    text = (tmp_path / "r.csv").read_bytes().decode("utf-8-sig")
    assert not [
        cell for cell in text.replace("\r\n", ",").split(",") if cell.strip('"')[:1] in ("=", "+", "-", "@", "\t")
    ]
    assert [row.old for _, row in read_review(tmp_path / "r.csv")] == hostile


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_what_a_spreadsheet_of_another_country_saves_is_read(tmp_path: Path, delimiter: str) -> None:
    lines = [delimiter.join(COLUMNS), delimiter.join(["question", "x", "text", "a, b", "", "", "", ""]), delimiter * 7]
    (tmp_path / "r.csv").write_bytes("\n".join(lines).encode())
    assert read_review(tmp_path / "r.csv") == [(2, ReviewRow("question", "x", "text", "a, b"))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "row 1: the columns are missing"),
        (b"kind,id\n", "row 1: the columns are kind, id"),
        (",".join(COLUMNS).encode() + b"\na,b\n", "row 2: has 2 cells, not 8"),
        ("é".encode("latin-1"), "not UTF-8"),
        (",".join(COLUMNS).encode() + b"\n" + b"x" * 1_000_001, "row 2: not CSV"),
    ],
)
def test_what_is_no_review_is_named_with_its_row(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_review(tmp_path / "r.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        read_review(tmp_path / "gone.csv")
