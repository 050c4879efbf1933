"""Paths or a JSONL file → samples. A row that cannot be used stays a row: it becomes unscored, with its line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from healbench.errors import UsageError
from healbench.images import IMAGE_SUFFIXES
from healbench.taxonomy import Taxonomy
from healbench.types import Sample, Unscored

DEMO = Path(__file__).parent / "data" / "demo" / "samples.jsonl"
"""The photos that come with the package: their texts, categories, licences and authors."""

NonEmpty = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Row(BaseModel):
    """One line of a samples file (contract "Sample")."""

    model_config = ConfigDict(extra="allow", strict=True)

    id: NonEmpty
    image: NonEmpty
    text: NonEmpty | None = None
    category: NonEmpty | None = None
    source_image: NonEmpty | None = None
    instruction: NonEmpty | None = None


def samples_from_paths(paths: Sequence[Path]) -> list[Sample]:
    """Pictures and folders of pictures, as samples without text and category.

    The id is the path relative to the argument, with suffix; where two would be equal, the path as it was given.
    A file that does not exist is kept: it becomes an unscored row.

    Raises:
        UsageError: a folder without pictures, or the same picture twice.
    """
    found = [(name, path) for argument in paths for name, path in _pictures(argument)]
    count = Counter(name for name, _ in found)
    samples = [Sample(path.as_posix() if count[name] > 1 else name, path, None, None) for name, path in found]
    _refuse_duplicates((s.id, "") for s in samples)
    return samples


def samples_from_jsonl(path: Path, taxonomy: Taxonomy) -> list[Sample]:
    """One sample a line; image paths are relative to the file. Blank lines are skipped.

    A line that is not JSON, breaks the contract or names no valid category is a sample with its `problem` set.

    Raises:
        UsageError: the file cannot be read, holds no row, or two rows share an id (with both line numbers).
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # splitlines() would also cut at U+2028 inside a text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"{path}: cannot be read ({reason})") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise UsageError(f"{path}: holds no sample; each line is one JSON object with id and image")
    samples = [_sample(path, number, line, taxonomy) for number, line in numbered]
    _refuse_duplicates((s.id, f"{path}:{number}") for s, (number, _) in zip(samples, numbered, strict=True))
    return samples


def with_defaults(samples: Iterable[Sample], text: str | None, category: str | None) -> list[Sample]:
    """Gives every sample that has no text or category of its own the one of the command line."""
    return [
        s if s.problem else replace(s, text=s.text if s.text is not None else text, category=s.category or category)
        for s in samples
    ]


def sample_row(sample: Sample) -> dict[str, Any]:
    """The sample as one line of a run's `samples.jsonl`; paths are absolute, so that the run folder can be moved."""
    row: dict[str, Any] = {
        "id": sample.id,
        "image": str(sample.image.absolute()),
        "text": sample.text,
        "category": sample.category,
    }
    if sample.source_image is not None:
        row["source_image"] = str(sample.source_image.absolute())
    if sample.instruction is not None:
        row["instruction"] = sample.instruction
    return {**row, **sample.extra}


def _pictures(argument: Path) -> Iterator[tuple[str, Path]]:
    if not argument.is_dir():
        yield argument.name, argument
        return
    inside = sorted(
        p
        for p in argument.rglob("*")
        if p.suffix.lower() in IMAGE_SUFFIXES
        and p.is_file()
        and not any(part.startswith(".") for part in p.relative_to(argument).parts)
    )
    if not inside:
        raise UsageError(f"{argument}: this folder holds no picture ({', '.join(sorted(IMAGE_SUFFIXES))})")
    for path in inside:
        yield path.relative_to(argument).as_posix(), path


def _sample(path: Path, number: int, line: str, taxonomy: Taxonomy) -> Sample:
    place = f"{path.name}:{number}"
    try:
        content = _decoded(line)
    except ValueError as error:
        return _rejected(place, {}, f"{path}:{number}: {error}")
    try:
        row = _Row.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"])
        return _rejected(place, content, f"{path}:{number}: {key}: {_reason(key, first['type'], first['msg'])}")
    sample = Sample(
        id=row.id,
        image=path.parent / row.image,
        text=row.text,
        category=row.category,
        source_image=path.parent / row.source_image if row.source_image else None,
        instruction=row.instruction,
        extra=row.model_extra or {},
    )
    if row.category is None:
        return sample
    try:
        return replace(sample, category=taxonomy.category(row.category).id)
    except UsageError as error:
        return replace(sample, problem=Unscored("schema_violation", f"{path}:{number}: {error}"))


def _decoded(line: str) -> dict[str, Any]:
    try:
        content = json.loads(line, parse_constant=_no_number)
    except ValueError as error:
        raise ValueError(f"not JSON ({error}); each line is one JSON object") from error
    if not isinstance(content, dict):
        raise ValueError("not a JSON object; each line is one with id and image")
    try:
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("holds half a character (a lone surrogate such as \\ud800)") from error
    return content


def _no_number(name: str) -> None:
    """Python reads NaN and Infinity, JSON has neither: no row of ours could keep them."""
    raise ValueError(f"{name} is no JSON value")


def _rejected(place: str, content: dict[str, Any], message: str) -> Sample:
    name = content.get("id")
    image = content.get("image")
    return Sample(
        id=name.strip() if isinstance(name, str) and name.strip() else place,
        image=Path(image if isinstance(image, str) else ""),
        text=None,
        category=None,
        problem=Unscored("schema_violation", message),
    )


def _reason(key: str, kind: str, message: str) -> str:
    if kind == "missing":
        return "this key is missing"
    if kind == "string_too_short":
        return "is empty; fill it" if key in ("id", "image") else "is empty; fill it or leave the key out"
    return message


def _refuse_duplicates(named: Iterable[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for name, place in named:
        if name in first:
            where = f" ({first[name]} and {place})" if place else ""
            raise UsageError(f"the id {name!r} stands twice{where}; every sample needs its own")
        first[name] = place
