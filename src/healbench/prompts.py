"""Prompt templates: Markdown files in `data/prompts/` with slots written `{{name}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "prompts"

_SLOT = re.compile(r"\{\{(\w+)\}\}")


def load_prompt(name: str) -> str:
    """The template `data/prompts/NAME.md`."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its slots filled in one pass: braces inside a value stay data.

    Raises:
        KeyError: the template has a slot without a value.

    >>> fill("{{a}} and {{b}}", {"a": "{{b}}", "b": "{x}"})
    '{{b}} and {x}'
    """
    return _SLOT.sub(lambda slot: values[slot.group(1)], template)
