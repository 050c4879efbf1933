"""Classes and categories: the six HEAL classes and the (coarse, fine) pairs that belong to them.

Source: paper, section "Taxonomy" (6 classes, 19 coarse, 102 fine, 92 valid pairs). The paper's own list is not public;
the embedded one follows its counts. Any file of the same shape can take its place.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from healbench.errors import UsageError
from healbench.types import Category, HealClass
from healbench.yamlfile import Document, Problem, describe

EMBEDDED = Path(__file__).parent / "data" / "taxonomy.yaml"

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


class _NotThis(BaseModel):
    pair: Id
    tell: Text


class _Fine(BaseModel):
    id: Id
    name: Text
    name_zh: str = ""
    definition: Text
    visual_cues: list[Text] = Field(min_length=1)
    valid: bool = True
    not_this: _NotThis | None = None
    constructs: list[Id] = []
    eval_instances: int = Field(default=0, ge=0, strict=True)


class _Coarse(BaseModel):
    id: Id
    name: Text
    name_zh: str = ""
    heal_class: Id
    healing_function: Text
    breakers: list[Text] = Field(min_length=1)
    residual: bool = False
    fine: list[_Fine] = Field(min_length=1)


class _HealClass(BaseModel):
    id: Id
    name: Text
    name_zh: str = ""
    definition: Text


class _File(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: Text
    provenance: Text
    heal_classes: list[_HealClass] = Field(min_length=1)
    coarse: list[_Coarse] = Field(min_length=1)


class Taxonomy:
    """The categories that samples may carry.

    Attributes:
        name, provenance: from the file; shown wherever categories are listed.
        classes: HEAL class by id, in the file's order.
        categories: pair by `coarse/fine`, valid and invalid, in the file's order.
        path: the file; None for the embedded one.
        digest: sha256 of the file's text.
    """

    def __init__(self, file: _File, digest: str, path: Path | None) -> None:
        classes = [HealClass(c.id, c.name, c.name_zh, c.definition) for c in file.heal_classes]
        categories = [_category(coarse, fine) for coarse in file.coarse for fine in coarse.fine]
        self.name = file.name
        self.provenance = file.provenance
        self.path = path
        self.classes: Mapping[str, HealClass] = MappingProxyType({c.id: c for c in classes})
        self.categories: Mapping[str, Category] = MappingProxyType({c.id: c for c in categories})
        self.digest = digest

    @classmethod
    def load(cls, path: Path | None = None) -> Taxonomy:
        """Reads a taxonomy file, by default the embedded one.

        Raises:
            UsageError: the file has mistakes; names the line of each.
        """
        document = Document(path or EMBEDDED)
        file, problems = _parse(document)
        if file is None or problems:
            raise UsageError(describe(document.path, problems))
        return cls(file, hashlib.sha256(document.text.encode()).hexdigest(), path)

    @property
    def valid(self) -> tuple[Category, ...]:
        """The pairs that a sample may carry."""
        return tuple(c for c in self.categories.values() if c.valid)

    def category(self, name: str) -> Category:
        """The valid pair called `coarse/fine`, or `fine` alone where that is unique.

        Raises:
            UsageError: unknown (with the nearest names) or invalid (with the valid pairs beside it).
        """
        found = self.categories.get(name) or self._by_fine(name)
        if found is None:
            raise UsageError(f"unknown category {name!r}; {self._nearest(name)}")
        if not found.valid:
            beside = ", ".join(c.id for c in self.valid if c.coarse == found.coarse)
            raise UsageError(f"category {found.id!r} is not a valid pair: it cannot be judged; choose one of {beside}")
        return found

    def _by_fine(self, name: str) -> Category | None:
        same = [c for c in self.categories.values() if c.fine == name]
        return same[0] if len(same) == 1 else None

    def _nearest(self, name: str) -> str:
        fines = {c.fine: c.id for c in self.valid}
        wanted = name.lower().replace(" ", "_").replace("-", "_")
        coarse = [c.id for c in self.valid if c.coarse == wanted]
        if coarse:
            return f"a coarse category needs a fine one: {', '.join(coarse)}"
        close = difflib.get_close_matches(wanted, self.categories, n=3, cutoff=0.6)
        close += [fines[f] for f in difflib.get_close_matches(wanted.rsplit("/", 1)[-1], fines, n=3, cutoff=0.6)]
        close = [c for c in dict.fromkeys(close) if self.categories[c].valid]
        if close:
            return f"did you mean {' or '.join(close[:3])}?"
        return "`healbench taxonomy` lists them all"


def check_taxonomy(path: Path) -> list[Problem]:
    """Everything that is wrong with a taxonomy file, by line; empty when it can be used."""
    return _parse(Document(path))[1]


def _parse(document: Document) -> tuple[_File | None, list[Problem]]:
    file, problems = document.parse(_File)
    if file is not None:
        problems = [*document.repeated_keys(), *_inconsistencies(document, file)]
    return file, sorted(problems, key=lambda p: p.line)


def _inconsistencies(document: Document, file: _File) -> Iterator[Problem]:
    """What a schema cannot see: names that point nowhere or stand twice."""
    classes = [c.id for c in file.heal_classes]
    pairs = {f.id: f.valid for c in file.coarse for f in c.fine}
    seen: set[str] = set()

    def problem(message: str, *location: str | int) -> Problem:
        return Problem(document.line(location), message)

    for i, heal_class in enumerate(file.heal_classes):
        if heal_class.id in classes[:i]:
            yield problem(f"the class id {heal_class.id!r} stands twice", "heal_classes", i, "id")
    for i, coarse in enumerate(file.coarse):
        at: tuple[str | int, ...] = ("coarse", i)
        if coarse.heal_class not in classes:
            near = difflib.get_close_matches(coarse.heal_class, classes, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the file has {', '.join(classes)}"
            yield problem(f"unknown HEAL class {coarse.heal_class!r}{hint}", *at, "heal_class")
        if coarse.id in seen:
            yield problem(f"the id {coarse.id!r} stands twice", *at, "id")
        seen.add(coarse.id)
        if not any(f.valid for f in coarse.fine):
            yield problem(f"{coarse.id!r} has no valid pair", *at, "id")
        for k, fine in enumerate(coarse.fine):
            if fine.id in seen:
                yield problem(f"the id {fine.id!r} stands twice", *at, "fine", k, "id")
            seen.add(fine.id)
            other = fine.not_this
            if other is not None and (other.pair == fine.id or not pairs.get(other.pair, False)):
                yield problem(
                    f"not_this names {other.pair!r}, which is no other valid pair",
                    *at,
                    "fine",
                    k,
                    "not_this",
                    "pair",
                )


def _category(coarse: _Coarse, fine: _Fine) -> Category:
    return Category(
        coarse=coarse.id,
        fine=fine.id,
        heal_class=coarse.heal_class,
        name=fine.name,
        name_zh=fine.name_zh,
        coarse_name=coarse.name,
        definition=fine.definition,
        healing_function=coarse.healing_function,
        visual_cues=tuple(fine.visual_cues),
        breakers=tuple(coarse.breakers),
        not_this=fine.not_this.tell if fine.not_this else "",
        constructs=tuple(fine.constructs),
        valid=fine.valid,
        residual=coarse.residual,
        eval_instances=fine.eval_instances if fine.valid else 0,
    )
