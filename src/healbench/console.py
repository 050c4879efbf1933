"""What a person sees on the terminal: tables on stdout, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from healbench.judge import Scoring
from healbench.question_review import Review
from healbench.questions import VIEWER_OF_HUMAN, ask
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Category, Prompt, QuestionSet, Sample

_out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 160)
_err = Console(stderr=True, markup=False, emoji=False)

_SHOWN = 40
"""Rows that are listed one by one; more are only summed up, the report has them all."""


class Progress:
    """A bar with rate and time left, on a terminal only."""

    def __init__(self, total: int) -> None:
        self._bar = RichProgress(
            TextColumn("scoring"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[unscored]}"),
            console=_err,
            transient=True,
            disable=not _err.is_terminal,
        )
        self._task = self._bar.add_task("scoring", total=total, rate="", unscored="")
        self._unscored = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def advance(self, row: dict[str, Any]) -> None:
        """Counts one finished row."""
        self._unscored += bool(row["unscored"])
        task = self._bar.tasks[0]
        rate = f"{task.speed:.1f}/s" if task.speed else ""
        unscored = f"{self._unscored} unscored" if self._unscored else ""
        self._bar.update(self._task, advance=1, rate=rate, unscored=unscored)


def print_taxonomy(taxonomy: Taxonomy) -> None:
    """All pairs, under their class and coarse category."""
    heading = ""
    for category in taxonomy.categories.values():
        above = f"{taxonomy.classes[category.heal_class].name} · {category.coarse_name}"
        if above != heading:
            _out.print(Text(f"\n{above}", style="bold"))
            heading = above
        mark = "" if category.valid else "  (not a valid pair: cannot be judged)"
        _out.print(Text(f"  {category.id:<48} {category.name}{mark}"))
    coarse = {c.coarse for c in taxonomy.categories.values()}
    _out.print(
        Text(
            f"\n{len(taxonomy.classes)} classes, {len(coarse)} coarse categories, {len(taxonomy.categories)} pairs, "
            f"{len(taxonomy.valid)} of them valid.\n{taxonomy.provenance}"
        )
    )


def print_category(category: Category, taxonomy: Taxonomy) -> None:
    """One pair in full."""
    heal_class = taxonomy.classes[category.heal_class]
    _out.print(Text(f"{category.id}  {category.name} {category.name_zh}", style="bold"))
    facts = {
        "class": f"{heal_class.name}: {heal_class.definition}",
        "definition": category.definition,
        "restores": category.healing_function,
        "cues": "; ".join(category.visual_cues),
        "breaks it": "; ".join(category.breakers),
        "easily confused": category.not_this,
        "eval prompts": str(category.eval_instances),
    }
    for name, value in facts.items():
        _out.print(Text(f"  {name + ':':<17}{value}"))


def print_questions(questions: QuestionSet) -> None:
    """The nine questions as a human rater is asked them."""
    category = questions.category
    _out.print(Text(f"{category.id}  {category.name}", style="bold"))
    for dimension in DIMENSIONS:
        _out.print(Text(f"\n{dimension}", style="bold"))
        for question in questions.of(dimension):
            _out.print(Text(f"  {dimension}.{question.k}  {ask(question, VIEWER_OF_HUMAN)}"))
            for rating, anchor in question.anchors.items():
                _out.print(Text(f"      {rating:>2}  {anchor}", style="dim"))
    _out.print(Text(f"\n{questions.provenance}"))


def print_prompts(prompts: Sequence[Prompt], provenance: str) -> None:
    """Prompts under their categories."""
    heading = ""
    for prompt in prompts:
        if prompt.category != heading:
            _out.print(Text(f"\n{prompt.category}", style="bold"))
            heading = prompt.category
        _out.print(Text(f"  {prompt.id:<30} {prompt.text}"))
        _out.print(Text(f"  {'':<30} edit: {prompt.instruction}", style="dim"))
    _out.print(Text(f"\n{len(prompts)} prompts. {provenance}".rstrip()))


def print_review(review: Review) -> None:
    """Item statistics, worst first, and whose numbers they are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("question", overflow="fold")
    for column in ("n", "mean", "sd", "9-10", "1-2", "r within", "r cross"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("flags", overflow="fold")
    for item in review.items[:_SHOWN]:
        numbers = [f"{item.mean:.2f}", _or_dash(item.sd), f"{item.ceiling:.0%}", f"{item.floor:.0%}"]
        numbers += [_or_dash(item.within_r), _or_dash(item.cross_r)]
        table.add_row(Text(item.id), str(item.n), *numbers, ", ".join(item.flags))
    _out.print(table)
    flagged = sum(bool(set(item.flags) - {"few"}) for item in review.items)
    few = sum("few" in item.flags for item in review.items)
    rest = f"; the worst {_SHOWN} are shown" if len(review.items) > _SHOWN else ""
    _out.print(f"{len(review.items)} questions, {flagged} flagged, {few} on too few pictures{rest}.")
    for reason, n in review.left_out.items():
        if n:
            _out.print(f"{n} rows {reason} were left out.")
    for notice in dict.fromkeys(run["config"].get("judge_notice") for run in review.runs):
        if notice:
            _out.print(Text(notice, style="bold"))


def _or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def print_plan(samples: Sequence[Sample], parts: Scoring, out: object) -> None:
    """What a dry run would do."""
    suggested = sum(s.category is None and s.problem is None for s in samples)
    broken = sum(s.problem is not None for s in samples)
    _out.print(
        f"{len(samples)} samples ({broken} with mistakes, {suggested} with a suggested category), "
        f"judge {parts.judge.name}: {_calls(parts.judge.calls * (len(samples) - broken))}; "
        f"rows go to {out or 'the terminal only'}"
    )


def _calls(count: int) -> str:
    if not count:
        return "0 calls, 0 tokens, no money"
    # About 1,900 tokens of questions and up to 3,300 of picture: 1568 pixels squared, 750 pixels a token.
    return f"{count} calls, twice as many if every reply has to be mended; about {count * 4000:,} tokens in"


def print_scores(rows: Sequence[dict[str, Any]], notice: str) -> None:
    """The rows, why they fail, and what they come to."""
    if len(rows) <= _SHOWN:
        _out.print(_table(rows))
        for row in rows:
            for line in _reasons(row):
                _out.print(line)
    scored = [r for r in rows if not r["unscored"]]
    _out.print(
        f"{len(scored)} of {len(rows)} scored, {sum(r['healing'] for r in scored)} healing (no dimension fails)."
    )
    if scored:
        means = ", ".join(f"{name} {sum(r[name] for r in scored) / len(scored):.2f}" for name in (*DIMENSIONS, "total"))
        _out.print(f"Means over {len(scored)}: {means}.  total = alignment + 2·heal + quality (4-40).")
    suggested = sum(r["category_source"] == "suggested" for r in rows)
    if suggested:
        _out.print(
            f"~ {suggested} categories were suggested from the picture; check them, or name one with --category."
        )
    borrowed = sum(r["text_source"] == "category" for r in rows)
    if borrowed:
        _out.print(f"{borrowed} texts are the definition of their category; give your own with --text.")
    if notice:
        _out.print(Text(notice, style="bold"))


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("picture", overflow="ellipsis", no_wrap=True, min_width=12)
    table.add_column("category", overflow="ellipsis", no_wrap=True, min_width=12)
    for column in ("align.", "heal", "quality", "total"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for row in rows:
        numbers = ["–" if row[n] is None else f"{row[n]:.2f}" for n in (*DIMENSIONS, "total")]
        category = (row["category"] or "–").rsplit("/", 1)[-1]
        mark = "~" if row["category_source"] == "suggested" else ""
        table.add_row(Text(row["id"]), Text(mark + category), *numbers, Text(_verdict(row)))
    return table


def _verdict(row: dict[str, Any]) -> str:
    if row["unscored"]:
        return f"unscored: {row['unscored']['code']}"
    return "healing" if row["healing"] else f"fails {', '.join(row['failures'])}"


def _reasons(row: dict[str, Any]) -> Iterator[Text]:
    for dimension in row["failures"] or ():
        yield Text.assemble(
            (f"{row['id']} fails {dimension}: ", "bold"), row["rationale"][dimension] or "no reason given"
        )
