"""`healbench taxonomy`: show the categories, or check a file of one's own."""

# ruff: noqa: PLC0415 - see healbench.cli.command

from __future__ import annotations

import dataclasses
from pathlib import Path

from cyclopts import App

from healbench.cli.command import AsJson, app, print_json, say

taxonomy_app = App(name="taxonomy", help="Show the categories, or check a file of your own.", sort_key=1)
app.command(taxonomy_app)


@taxonomy_app.default
def show_taxonomy(category: str | None = None, *, taxonomy: Path | None = None, as_json: AsJson = False) -> int:
    """Show all categories, or one in full.

    Args:
        category: `coarse/fine`, or `fine` where that is unique.
        taxonomy: file that takes the place of the embedded one.
        as_json: machine output.
    """
    from healbench.console import print_category, print_taxonomy
    from healbench.taxonomy import Taxonomy

    known = Taxonomy.load(taxonomy)
    if category is not None:
        found = known.category(category)
        print_json(dataclasses.asdict(found) | {"id": found.id}) if as_json else print_category(found, known)
    elif as_json:
        pairs = [dataclasses.asdict(c) | {"id": c.id} for c in known.categories.values()]
        classes = [dataclasses.asdict(c) for c in known.classes.values()]
        print_json({"name": known.name, "provenance": known.provenance, "classes": classes, "categories": pairs})
    else:
        print_taxonomy(known)
    return 0


@taxonomy_app.command(name="check")
def check_taxonomy(file: Path) -> int:
    """Check a taxonomy file of your own; mistakes come with their lines.

    Args:
        file: YAML of the shape of the embedded taxonomy.
    """
    from healbench.taxonomy import Taxonomy, check_taxonomy

    problems = check_taxonomy(file)
    for problem in problems:
        print(f"{file}:{problem.line}: {problem.message}")
    if problems:
        say(f"{len(problems)} to mend in {file}")
        return 2
    known = Taxonomy.load(file)
    coarse = {c.coarse for c in known.categories.values()}
    print(
        f"{file}: {len(known.classes)} classes, {len(coarse)} coarse categories, {len(known.categories)} pairs, "
        f"{len(known.valid)} of them valid"
    )
    return 0
