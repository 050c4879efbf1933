"""YAML files of people, read through a schema, with the line of every mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from healbench.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)
Location = Sequence[str | int]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader reads our largest file in 25 ms


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file; `line` counts from 1."""

    line: int
    message: str


class Document:
    """A YAML file's text and where each of its values stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise UsageError(f"{path}: cannot be read ({reason})") from error

    def parse(self, model: type[Model]) -> tuple[Model | None, list[Problem]]:
        """The file as `model`, or None and what is wrong with it."""
        try:
            content = yaml.load(self.text, _Loader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or str(error)
            return None, [Problem(mark.line + 1 if mark else 1, f"not YAML: {reason}")]
        try:
            parsed = model.model_validate(content)
        except ValidationError as error:
            problems = [
                Problem(self.line(e["loc"]), f"{_dotted(e['loc'])}: {_reason(e['type'], e['msg'])}")
                for e in error.errors()
            ]
            return None, sorted(problems, key=lambda p: p.line)
        return parsed, []

    def line(self, location: Location) -> int:
        """The line of the value at `location`, or of the nearest thing around it that is there."""
        node = yaml.compose(self.text, _Loader)
        line = 1
        for step in location:
            child = _child(node, step)
            if child is None:
                break
            node, line = child
        return line

    def repeated_keys(self) -> list[Problem]:
        """Keys that one mapping holds twice; YAML would silently keep the last."""
        node = yaml.compose(self.text, _Loader)
        return [] if node is None else list(_repeated_keys(node))


def read_yaml(path: Path, model: type[Model]) -> Model:
    """Reads `path` as `model`.

    Raises:
        UsageError: the file cannot be read or breaks the schema; names the file, the line and the first mistakes.
    """
    document = Document(path)
    parsed, problems = document.parse(model)
    if parsed is None:
        raise UsageError(describe(path, problems))
    return parsed


def describe(path: Path, problems: Sequence[Problem], shown: int = 3) -> str:
    """The first problems in one line each, in the form that editors jump to: `file:line: message`."""
    lines = [f"{path}:{p.line}: {p.message}" for p in problems[:shown]]
    if len(problems) > shown:
        lines.append(f"... and {len(problems) - shown} more in {path}")
    return "\n".join(lines)


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(step):
                return value, key.start_mark.line + 1
    return None


def _repeated_keys(node: yaml.Node) -> Iterator[Problem]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if str(key.value) in seen:
                yield Problem(key.start_mark.line + 1, f"the key {key.value!r} stands here twice")
            seen.add(str(key.value))
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item)


def _dotted(location: Location) -> str:
    return ".".join(str(step) for step in location) or "the file"


def _reason(kind: str, message: str) -> str:
    if kind == "missing":
        return "this key is missing"
    if kind == "extra_forbidden":
        return "this key is unknown here"
    return message.removeprefix("Value error, ")
