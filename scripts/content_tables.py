"""What the second readers changed → the tables of docs/content-review.md.

python -m scripts.content_tables
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from healbench.question_rules import verdicts
from healbench.questions import EMBEDDED
from healbench.taxonomy import Taxonomy

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "content-review.md"
PROMPT_REVIEW = ROOT / "src" / "healbench" / "data" / "evalset" / "open-1095-review.jsonl"
START, END = "<!-- tables: start -->", "<!-- tables: end -->"


def tables() -> str:
    """Both tables as Markdown."""
    return "\n".join([*_questions(), "", *_prompts()])


def _questions() -> list[str]:
    taxonomy = Taxonomy.load()
    found = [verdicts(EMBEDDED, c.coarse)[c.fine] for c in taxonomy.valid]
    status = Counter(v.status for v in found)
    changed = Counter(name for v in found for name in v.revised)
    lines = ["| verdict on a pair's set | pairs |", "|---|---|"]
    lines += [f"| {name} | {status[name]} |" for name in ("accepted", "revised", "draft")]
    lines += ["", "| question | sets in which it was changed |", "|---|---|"]
    return [*lines, *(f"| {name} | {count} of {len(found)} |" for name, count in sorted(changed.items()))]


def _prompts() -> list[str]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in PROMPT_REVIEW.read_text(encoding="utf-8").splitlines()]
    changes = [row for row in rows if "rule" in row]
    read = sum(row["prompts"] for row in rows if row.get("verdict") == "read")
    rules = Counter(row["rule"] for row in changes)
    lines = ["| rule | prompts changed | for example |", "|---|---|---|"]
    for rule, count in rules.most_common():
        example = next(row for row in changes if row["rule"] == rule)
        why = str(example["why"]).replace("|", "/").rstrip(".")
        lines.append(f"| {rule} | {count} | {example['category'].split('/')[1]}: {why} |")
    return [*lines, "", f"{read} prompts read, {len(changes)} changed."]


def page() -> str:
    """The page with its tables renewed."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
