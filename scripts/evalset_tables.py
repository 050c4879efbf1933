"""The eval set's variety, and how its prompts lie among the categories → the tables of docs/open-1095.md.

python -m scripts.evalset_tables
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from healbench.evalset import load_eval_set
from healbench.plugins import load_adapter
from healbench.taxonomy import Taxonomy
from healbench.types import Prompt

PAGE = Path(__file__).parents[1] / "docs" / "open-1095.md"
START, END = "<!-- tables: start -->", "<!-- tables: end -->"
TAGS = ("season", "time", "medium", "beings", "viewpoint", "region")
SHOWN = 8


def tables() -> str:
    """Both tables as Markdown."""
    prompts = load_eval_set()
    return "\n".join([*variety(prompts), "", *neighbours(prompts, Taxonomy.load())])


def variety(prompts: Sequence[Prompt]) -> list[str]:
    """How often each value of each tag occurs, and how long the prompts are."""
    lines = ["| what | values (share of all prompts) | other values |", "|---|---|---|"]
    for tag in TAGS:
        count = Counter(prompt.tags[tag] for prompt in prompts)
        shown = ", ".join(f"{value} {_share(n, prompts)}" for value, n in count.most_common(SHOWN))
        rest = len(count) - SHOWN
        lines.append(f"| {tag} | {shown} | {f'{rest} more' if rest > 0 else 'none'} |")
    words = [len(prompt.text.split()) for prompt in prompts]
    bands = [(20, 28), (29, 40), (41, 60)]
    shown = ", ".join(
        f"{low}–{high} words {_share(sum(low <= w <= high for w in words), prompts)}" for low, high in bands
    )
    lines.append(f"| length | {shown} | none |")
    return lines


def neighbours(prompts: Sequence[Prompt], taxonomy: Taxonomy) -> list[str]:
    """Whether the nearest of the 92 definitions is a prompt's own, by the embedded sentence encoder."""
    embedder = load_adapter("embedder", "offline")
    categories = taxonomy.valid
    definitions = np.stack([embedder.embed_text(f"{c.name}: {c.definition}") for c in categories])
    nearness = np.stack([embedder.embed_text(p.text) for p in prompts]) @ definitions.T
    order = np.argsort(-nearness, axis=1, kind="stable")
    own = [[categories[i].id for i in row[:5]] for row in order]
    lines = ["| HEAL class | prompts | nearest definition is its own | among the nearest five |", "|---|---|---|---|"]
    for heal_class in taxonomy.classes.values():
        rows = [i for i, p in enumerate(prompts) if taxonomy.category(p.category).heal_class == heal_class.id]
        first = np.mean([prompts[i].category == own[i][0] for i in rows])
        five = np.mean([prompts[i].category in own[i] for i in rows])
        lines.append(f"| {heal_class.name} | {len(rows)} | {first:.0%} | {five:.0%} |")
    wrong = Counter((p.category, near[0]) for p, near in zip(prompts, own, strict=True) if p.category != near[0])
    pairs = ", ".join(f"{a.split('/')[1]} → {b.split('/')[1]} ({n})" for (a, b), n in wrong.most_common(10))
    return [*lines, "", f"Most frequent other neighbours: {pairs}."]


def _share(count: int, prompts: Sequence[Prompt]) -> str:
    return f"{count / len(prompts):.0%}"


def page() -> str:
    """The page with its tables renewed."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
