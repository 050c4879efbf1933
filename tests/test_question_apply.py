import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from healbench.errors import UsageError
from healbench.plugins import load_adapter
from healbench.question_apply import Applied, apply_review
from healbench.question_rules import question_findings, verdicts
from healbench.questions import EMBEDDED, Questions
from healbench.review_csv import ReviewRow, write_review
from healbench.store import read_rows
from healbench.taxonomy import Taxonomy
from healbench.types import Category, Question

TAXONOMY = Taxonomy.load()
CAT = TAXONOMY.category("quiet_company/napping_cat")
DOG = TAXONOMY.category("quiet_company/friendly_dog")


def question(name: str, category: Category = CAT, questions: Questions | None = None) -> Question:
    dimension, k = name.split(".")
    nine = (questions or Questions()).of(category)
    return next(q for q in nine.questions if (q.dimension, q.k) == (dimension, int(k)))


def row(name: str = "heal.1", field: str = "text", category: Category = CAT, **fields: str) -> ReviewRow:
    asked = question(name, category)
    old = asked.text if field == "text" else asked.anchors[int(field.removeprefix("anchor."))]
    filled = {"verdict": "edit", "reason": "Plainer words.", "reviewer": "A. Reader", **fields}
    return replace(ReviewRow("question", f"{category.id} {name}", field, old), **filled)


def applied(tmp_path: Path, *rows: ReviewRow, questions: Questions | None = None) -> Applied:
    write_review(tmp_path / "review.csv", rows)
    return apply_review(tmp_path / "review.csv", questions or Questions(), TAXONOMY, tmp_path / "next")


PLAIN = "Do loose paws and shut eyes show a cat that is wholly at rest?"


def test_an_edit_makes_the_next_version_with_verdict_and_history(tmp_path: Path) -> None:
    done = applied(tmp_path, row(new=f" {PLAIN}\n"), row("quality.2", "anchor.7", new="one paw is doubtful"))
    assert done == Applied({"accept": 0, "edit": 2, "reject": 0}, (CAT.id,))
    new = Questions(tmp_path / "next")
    assert question("heal.1", questions=new).text == PLAIN
    assert question("quality.2", questions=new).anchors[7] == "one paw is doubtful"
    changed = [c.id for c in TAXONOMY.valid if new.of(c).digest != Questions().of(c).digest]
    assert changed == [CAT.id]
    verdict = verdicts(tmp_path / "next", "quiet_company")["napping_cat"]
    assert verdict.status == "revised"
    assert {"heal.1", "quality.2"} <= set(verdict.revised)
    assert "A. Reader" in verdict.reason
    assert "Plainer words." in verdict.reason
    first, _ = read_rows(tmp_path / "next" / "history.jsonl")
    assert first.pop("date")
    assert first == {
        "what": "edit",
        "id": f"{CAT.id} heal.1",
        "field": "text",
        "old": question("heal.1").text,
        "new": PLAIN,
        "by": "A. Reader",
        "reason": "Plainer words.",
        "digest_before": Questions().of(CAT).digest,
        "digest_after": new.of(CAT).digest,
    }
    assert question_findings(new.of(CAT)) == []


def test_files_that_nobody_changed_are_copied_byte_by_byte(tmp_path: Path) -> None:
    applied(tmp_path, row(new=PLAIN))
    for path in EMBEDDED.rglob("*.yaml"):
        copy = tmp_path / "next" / path.relative_to(EMBEDDED)
        assert (copy.read_bytes() == path.read_bytes()) == (path.name != "quiet_company.yaml")


def test_comments_survive(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(EMBEDDED, mine)
    for file in (mine / "quiet_company.yaml", mine / "reviews" / "quiet_company.yaml"):
        file.write_text("# by hand: ü\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    applied(tmp_path, row(new=PLAIN), questions=Questions(mine))
    for name in ("quiet_company.yaml", "reviews/quiet_company.yaml"):
        assert (
            (tmp_path / "next" / name).read_text(encoding="utf-8").startswith("# by hand: ü\ncoarse: quiet_company\n")
        )


def test_accepting_and_deciding_nothing_change_no_question(tmp_path: Path) -> None:
    done = applied(tmp_path, row(verdict="accept", reviewer=""), row("heal.2", verdict=""))
    assert done == Applied({"accept": 1, "edit": 0, "reject": 0}, ())
    (told,) = read_rows(tmp_path / "next" / "history.jsonl")
    assert (told["what"], told["digest_before"]) == ("accept", told["digest_after"])
    assert (tmp_path / "next" / "quiet_company.yaml").read_bytes() == (EMBEDDED / "quiet_company.yaml").read_bytes()


def test_a_rejected_question_is_replaced_and_the_history_goes_on(tmp_path: Path) -> None:
    applied(tmp_path, row(verdict="reject", new=PLAIN))
    first = Questions(tmp_path / "next")
    (tmp_path / "second").mkdir()
    again = replace(row(new="Do the paws and eyes of this cat show complete rest?"), old=PLAIN)
    applied(tmp_path / "second", again, questions=first)
    history = list(read_rows(tmp_path / "second" / "next" / "history.jsonl"))
    assert [h["what"] for h in history] == ["reject", "edit"]
    assert history[0]["digest_after"] == history[1]["digest_before"]


def test_a_coarse_question_changes_for_all_pairs_of_its_category(tmp_path: Path) -> None:
    new = "How well does this company give {viewer} gentle warmth that asks nothing in return?"
    done = applied(tmp_path, row("heal.0", new=new), row("heal.0", category=DOG, new=new))
    pairs = [c for c in TAXONOMY.valid if c.coarse == "quiet_company"]
    assert list(done.pairs) == [c.id for c in pairs]
    for pair in pairs:
        assert question("heal.0", pair, Questions(tmp_path / "next")).text == new
        assert "heal.0" in verdicts(tmp_path / "next", "quiet_company")[pair.fine].revised
    assert len(list(read_rows(tmp_path / "next" / "history.jsonl"))) == len(pairs)


BAD = [
    (row(), "edit needs a new wording"),
    (row(verdict="reject"), "reject needs a new wording: a set has nine"),
    (row(new=question("heal.1").text), "the new wording is the old one"),
    (row(new=PLAIN, reviewer=" "), "edit needs the name of its reviewer"),
    (row(new=PLAIN, verdict="accept"), "accepts the old wording and gives a new one"),
    (row(new=PLAIN, verdict=""), "has a new wording but no verdict"),
    (row(new=PLAIN, verdict="maybe"), "the verdict 'maybe' is none of"),
    (replace(row(new=PLAIN), kind="prompt"), "is about a 'prompt'"),
    (replace(row(new=PLAIN), id="heal.1"), "is not of the form coarse/fine dimension.k"),
    (replace(row(new=PLAIN), id=f"{CAT.id} heal.3"), "is not of the form coarse/fine dimension.k"),
    (replace(row(new=PLAIN), id="quiet_company/napping_ct heal.1"), "did you mean quiet_company/napping_cat"),
    (replace(row(new=PLAIN), field="anchor.5"), "the field 'anchor.5' is none of"),
    (replace(row(new=PLAIN), old="Another wording?"), "conflict: old is not the present wording, which is '"),
    (row(new=f"{PLAIN} {PLAIN}"), "napping_cat heal.1: one question"),
    (row(new="Is this a beautiful cat at rest?"), "heal asks of comfort: asks of 'beautiful'"),
    (row("heal.0", new="Is this a beautiful company?"), "heal.0: heal asks of comfort"),
    (row("quality.1", "anchor.4", new=question("quality.1").anchors[7]), "says the same at two anchors"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message for _, message in BAD])
def test_a_wrong_row_is_named_and_nothing_is_written(tmp_path: Path, bad: ReviewRow, message: str) -> None:
    good = row("alignment.1", "anchor.1", new="no cat to be seen")
    with pytest.raises(UsageError) as caught:
        applied(tmp_path, good, bad)
    assert "review.csv row 3: " in str(caught.value)
    assert "row 2" not in str(caught.value)
    assert message in str(caught.value)
    assert "nothing was written" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["review.csv"]


def test_rows_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="row 3: contradicts row 2"):
        applied(tmp_path, row(new=PLAIN), row(new=PLAIN.replace("wholly", "quite")))
    with pytest.raises(UsageError, match="row 3: contradicts row 2"):
        applied(tmp_path, row("heal.0", new=PLAIN), row("heal.0", category=DOG, verdict="accept"))


def test_near_twins_are_refused_where_an_encoder_is_given(tmp_path: Path) -> None:
    write_review(tmp_path / "r.csv", [row("heal.1", new=question("heal.2").text.replace("?", " now?"))])
    embedder = load_adapter("embedder", "offline")
    with pytest.raises(UsageError, match=r"row 2: .*no two alike: heal.1 and heal.2 ask nearly the same"):
        apply_review(tmp_path / "r.csv", Questions(), TAXONOMY, tmp_path / "next", embedder=embedder)


def test_a_folder_that_exists_or_lacks_the_pair_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(EMBEDDED, mine)
    (mine / "quiet_company.yaml").unlink()
    (mine / "notes.txt").write_text("not to be copied")
    with pytest.raises(UsageError, match="row 2: the questions have no set for quiet_company/napping_cat"):
        applied(tmp_path, row(new=PLAIN), questions=Questions(mine))
    blue = row("heal.1", category=TAXONOMY.category("mirror_lake"), verdict="accept")
    applied(tmp_path, blue, questions=Questions(mine))
    assert not (tmp_path / "next" / "notes.txt").exists()
    with pytest.raises(UsageError, match="exists already"):
        applied(tmp_path, blue, questions=Questions(mine))
