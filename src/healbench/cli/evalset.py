"""`healbench evalset`: the prompts that generators are evaluated on."""

# ruff: noqa: PLC0415 - see healbench.cli.command

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from healbench.cli.command import AsJson, app, print_json, say

evalset_app = App(name="evalset", help="Show or check the prompts that generators are evaluated on.", sort_key=2)
app.command(evalset_app)


@evalset_app.command
def show(
    name: str = "open-1095",
    *,
    heal_class: Annotated[str | None, Parameter("--class")] = None,
    category: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    taxonomy: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Show an eval set, or a part of it.

    Args:
        name: an embedded set, or a JSONL file of the same shape.
        heal_class: only prompts of this HEAL class.
        category: only prompts of this pair.
        sample: only so many, drawn at random.
        seed: of the draw; the same seed draws the same prompts.
        taxonomy: file that takes the place of the embedded categories.
        as_json: one prompt a line, with its HEAL class.
    """
    from healbench.console import print_prompts
    from healbench.evalset import EMBEDDED, PROVENANCE, load_eval_set, select
    from healbench.taxonomy import Taxonomy

    known = Taxonomy.load(taxonomy)
    prompts = select(load_eval_set(name), known, heal_class=heal_class, category=category, sample=sample, seed=seed)
    if as_json:
        for prompt in prompts:
            print_json({**dataclasses.asdict(prompt), "heal_class": known.category(prompt.category).heal_class})
    else:
        print_prompts(prompts, PROVENANCE if name in EMBEDDED else "")
    return 0


@evalset_app.command
def check(name: str = "open-1095", *, taxonomy: Path | None = None) -> int:
    """Check an eval set against the rules of writing and the taxonomy's counts.

    Args:
        name: an embedded set, or a JSONL file of the same shape.
        taxonomy: file that takes the place of the embedded categories.
    """
    from healbench.evalset import check_eval_set, load_eval_set
    from healbench.plugins import load_adapter
    from healbench.taxonomy import Taxonomy

    prompts = load_eval_set(name)
    findings = check_eval_set(prompts, Taxonomy.load(taxonomy), load_adapter("embedder", "offline"))
    for finding in findings:
        print(f"{finding.place}: {finding.rule}: {finding.message}")
    if findings:
        say(f"{len(findings)} to mend in {name}")
        return 2
    print(f"{name}: {len(prompts)} prompts, nothing to mend")
    return 0
