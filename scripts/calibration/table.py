"""calibration/results.json → the tables of docs/offline-judge.md, between its two marks.

python -m scripts.calibration.table
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "offline-judge.md"
AGREEMENT_HEAD = (
    "| dimension | ratings | Spearman's ρ | right order, pairs 2 points apart | mean absolute error |",
    "|---|---|---|---|---|",
)
COPIES_HEAD = (
    "| copy at 512 pixels | clean photo strictly above it in quality | not |",
    "|---|---|---|",
)
START, END = "<!-- results: start -->", "<!-- results: end -->"


def tables() -> str:
    """The tables as Markdown."""
    results: dict[str, Any] = json.loads((ROOT / "calibration" / "results.json").read_text(encoding="utf-8"))
    rows = [(name, results["dimensions"][name]) for name in ("alignment", "heal", "quality")]
    rows.insert(2, ("heal, undegraded pictures only", results["heal_of_originals"]))
    agreement = [
        f"| {name} | {r['n']} | {_interval(r['spearman'])} | {_interval(r['order_2_points_apart'])} "
        f"| {r['mean_absolute_error']:.2f} |"
        for name, r in rows
    ]
    order, photographs = results["quality_order"], results["quality_order"]["photographs"]
    copies = [
        f"| {kind} | {order[key]['in_order']} of {photographs} | {', '.join(order[key]['not']) or 'none'} |"
        for key, kind in (("blur", "Gaussian blur, σ 2"), ("noise", "noise, σ 25"), ("jpeg", "JPEG, quality 8"))
    ]
    auc, verdict = results["right_against_wrong_text"], results["heal_verdict"]
    suggestion, raters = results["suggestion"], results["raters"]
    sentences = [
        f"A photograph's own text against a wrong one ({auc['right']} right, {auc['wrong']} wrong): "
        f"AUC of alignment {_interval(auc['auc'])}.",
        f"Heal below 5: {verdict['rated_failing']} of {verdict['n']} ratings are; the judge finds "
        f"{verdict['failing_found']:.0%} of them and passes {verdict['passing_kept']:.0%} of the others.",
        f"Suggested category on {suggestion['n']} pictures: the rater's pair {suggestion['same_pair']:.0%}, among "
        f"the first five {suggestion['among_5']:.0%}, the coarse category {suggestion['same_coarse']:.0%}, the HEAL "
        f"class {suggestion['same_class']:.0%}.",
        f"Two ratings of the same {raters['pictures']} pictures agree with ρ {raters['alignment']:.2f} (alignment), "
        f"{raters['heal']:.2f} (heal) and {raters['quality']:.2f} (quality), and in "
        f"{raters['same_category']:.0%} of the categories.",
    ]
    return "\n".join([*AGREEMENT_HEAD, *agreement, "", *COPIES_HEAD, *copies, "", "\n\n".join(sentences)])


def _interval(figures: Sequence[float]) -> str:
    value, low, high = figures
    return f"{value:.2f} ({low:.2f}–{high:.2f})"


def page() -> str:
    """The page with its tables renewed."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
