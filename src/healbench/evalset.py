"""The prompts that generators are evaluated on: read, select, check.

The paper's HealBench-Eval (1,095 instances) is not public. `open-1095` follows its composition by HEAL class (277, 181,
132, 47, 293, 165, recovered from Table 4) with prompts that were written for this project.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from healbench.clip_tokens import CONTEXT, count_clip_tokens
from healbench.errors import UsageError
from healbench.taxonomy import Taxonomy
from healbench.types import Embedder, Finding, Prompt

_FOLDER = Path(__file__).parent / "data" / "evalset"
EMBEDDED = {"open-1095": _FOLDER / "open-1095.jsonl"}
DEFAULT = "open-1095"

PROVENANCE = (
    "Written for this project, read by a second reader, not yet reviewed by outside experts; licence CC-BY-4.0. "
    "Not the paper's own HealBench-Eval, which is not public."
)

MIN_WORDS, MAX_WORDS = 20, 60
MAX_CLIP_TOKENS = 75
MAX_INSTRUCTION_WORDS = 20
TOO_NEAR = 0.90
"""Cosine of two prompts of one pair from which they ask for the same picture."""

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: Text
    text: Text
    category: Text
    instruction: Text
    tags: dict[str, str] = {}


def load_eval_set(name: str = DEFAULT) -> list[Prompt]:
    """An embedded eval set by name, or a JSONL file of the same shape by path.

    Raises:
        UsageError: unknown, unreadable, a broken line (with its number), or two prompts of one id.
    """
    path = EMBEDDED.get(name, Path(name))
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        known = ", ".join(EMBEDDED)
        raise UsageError(
            f"eval set {name!r}: no such file ({reason}) and none of the embedded ones ({known})"
        ) from error
    prompts = [_prompt(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise UsageError(f"{path}: holds no prompt")
    (repeated, times), *_ = Counter(p.id for p in prompts).most_common(1)
    if times > 1:
        raise UsageError(f"{path}: the id {repeated!r} stands {times} times; every prompt needs its own")
    return prompts


def select(
    prompts: Sequence[Prompt],
    taxonomy: Taxonomy,
    *,
    heal_class: str | None = None,
    category: str | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> list[Prompt]:
    """The prompts of a class or category, or so many of them drawn at random; always in the set's order.

    Raises:
        UsageError: an unknown class or category, or a sample below 1.
    """
    chosen = list(prompts)
    if heal_class is not None:
        if heal_class not in taxonomy.classes:
            raise UsageError(f"unknown HEAL class {heal_class!r}; there are {', '.join(taxonomy.classes)}")
        chosen = [p for p in chosen if taxonomy.category(p.category).heal_class == heal_class]
    if category is not None:
        wanted = taxonomy.category(category).id
        chosen = [p for p in chosen if p.category == wanted]
    if sample is not None:
        if sample < 1:
            raise UsageError(f"--sample {sample}: must be 1 or more")
        drawn = set(random.Random(seed).sample(range(len(chosen)), min(sample, len(chosen))))
        chosen = [p for i, p in enumerate(chosen) if i in drawn]
    return chosen


def check_eval_set(prompts: Sequence[Prompt], taxonomy: Taxonomy, embedder: Embedder) -> list[Finding]:
    """Everything a machine can find wrong with an eval set: single prompts, counts, neighbours."""
    findings = [
        Finding(prompt.id, rule, message)
        for prompt in prompts
        for rule, broken in PROMPT_RULES.items()
        if (message := broken(prompt)) is not None
    ]
    by_category: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_category.setdefault(prompt.category, []).append(prompt)
    findings += _counts(by_category, taxonomy)
    findings += _repeated(prompts)
    for same in by_category.values():
        findings += _too_near(same, embedder)
    return findings


def _prompt(path: Path, number: int, line: str) -> Prompt:
    try:
        row = _Row.model_validate(json.loads(line))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"])
        raise UsageError(f"{path}:{number}: {key}: {first['msg']}") from error
    except ValueError as error:
        raise UsageError(f"{path}:{number}: not JSON ({error})") from error
    return Prompt(row.id, row.text, row.category, row.instruction, row.tags)


def _length(prompt: Prompt) -> str | None:
    words = len(prompt.text.split())
    return (
        None if MIN_WORDS <= words <= MAX_WORDS else f"has {words} words, {MIN_WORDS}-{MAX_WORDS} describe one picture"
    )


def _clip_length(prompt: Prompt) -> str | None:
    tokens = count_clip_tokens(prompt.text)
    return f"has {tokens} CLIP tokens, a model would cut it near {CONTEXT}" if tokens > MAX_CLIP_TOKENS else None


def _instruction(prompt: Prompt) -> str | None:
    words = prompt.instruction.split()
    if len(words) > MAX_INSTRUCTION_WORDS:
        return f"its instruction has {len(words)} words, at most {MAX_INSTRUCTION_WORDS}"
    if words[0].lower() in ("a", "an", "the", "this", "please", "there", "it"):
        return f"its instruction begins with {words[0]!r}; it says what to do"
    return None


def _name_or_spell(prompt: Prompt) -> str | None:
    found = _forbidden().search(f"{prompt.text} {prompt.instruction}")
    return f"holds {found.group()!r}: a name or a spell, not a description" if found else None


PROMPT_RULES: dict[str, Callable[[Prompt], str | None]] = {
    "length": _length,
    "CLIP length": _clip_length,
    "instruction": _instruction,
    "no name or spell": _name_or_spell,
}


@cache
def _forbidden() -> re.Pattern[str]:
    lists: dict[str, list[str]] = yaml.safe_load((_FOLDER / "not_in_prompts.yaml").read_text(encoding="utf-8"))
    spells = "|".join(f"(?i:{re.escape(str(word))})" for word in lists.pop("spells"))
    names = "|".join(re.escape(word) for words in lists.values() for word in words)
    return re.compile(rf"(?<!\w)(?:{spells}|{names})(?!\w)")


def _counts(by_category: Mapping[str, Sequence[Prompt]], taxonomy: Taxonomy) -> Iterator[Finding]:
    for name, same in by_category.items():
        if name not in {c.id for c in taxonomy.valid}:
            yield Finding(same[0].id, "valid pair", f"belongs to {name!r}, which is no valid pair")
    for category in taxonomy.valid:
        count = len(by_category.get(category.id, ()))
        if count != category.eval_instances:
            yield Finding(category.id, "count", f"has {count} prompts, the taxonomy wants {category.eval_instances}")


def _repeated(prompts: Sequence[Prompt]) -> Iterator[Finding]:
    for field in ("text", "instruction"):
        first: dict[str, str] = {}
        for prompt in prompts:
            value = getattr(prompt, field).lower()
            if value in first:
                yield Finding(prompt.id, "no repeats", f"has the {field} of {first[value]}")
            first.setdefault(value, prompt.id)


def _too_near(same: Sequence[Prompt], embedder: Embedder) -> Iterator[Finding]:
    vectors = np.stack([embedder.embed_text(p.text) for p in same])
    nearness = vectors @ vectors.T
    for one, two in zip(*np.nonzero(np.triu(nearness, k=1) >= TOO_NEAR), strict=True):
        message = f"asks for the picture of {same[one].id} (cosine {nearness[one, two]:.2f})"
        yield Finding(same[two].id, "no two alike", message)
