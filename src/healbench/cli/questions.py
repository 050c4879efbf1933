"""`healbench questions`: the nine questions of a category."""

# ruff: noqa: PLC0415 - see healbench.cli.command

from __future__ import annotations

import dataclasses
from pathlib import Path

from cyclopts import App

from healbench.cli.command import AsJson, app, print_json

questions_app = App(name="questions", help="The nine questions of a category.", sort_key=2)
app.command(questions_app)


@questions_app.default
def show_questions(
    category: str, *, taxonomy: Path | None = None, folder: Path | None = None, as_json: AsJson = False
) -> int:
    """Print the nine questions of a category.

    Args:
        category: `coarse/fine`, or `fine` where that is unique.
        taxonomy: file that takes the place of the embedded taxonomy.
        folder: folder that takes the place of the embedded questions.
        as_json: machine output.
    """
    from healbench.console import print_questions
    from healbench.questions import Questions
    from healbench.taxonomy import Taxonomy

    found = Taxonomy.load(taxonomy).category(category)
    nine = Questions(folder).of(found)
    print_json(dataclasses.asdict(nine) | {"category": found.id}) if as_json else print_questions(nine)
    return 0
