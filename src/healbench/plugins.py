"""Adapters by name, through entry points: ours are found the way a third party's are."""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from healbench.errors import SetupError, UsageError


def adapter_names(group: str) -> tuple[str, ...]:
    """What is registered in the entry-point group `healbench.GROUP`."""
    return tuple(sorted({e.name for e in entry_points(group=f"healbench.{group}")}))


def load_adapter(group: str, spec: str, **options: Any) -> Any:
    """Makes the adapter that `spec` names, `NAME` or `NAME:ARGUMENT`.

    Args:
        group: e.g. "judge" for the entry-point group `healbench.judge`.
        options: passed on to the adapter's factory, which is called as `factory(argument, **options)`.

    Raises:
        UsageError: nobody registered that name; lists those that are.
        SetupError: the adapter needs a package that is not installed.
    """
    name, _, argument = spec.partition(":")
    found: dict[str, EntryPoint] = {e.name: e for e in entry_points(group=f"healbench.{group}")}
    if name not in found:
        near = difflib.get_close_matches(name, found, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(adapter_names(group)) or 'none'}"
        raise UsageError(f"unknown {group} {name!r}; {hint}")
    try:
        factory = found[name].load()
    except ModuleNotFoundError as error:
        raise SetupError(f"the {group} {name!r} needs the package {error.name!r}, which is not installed") from error
    return factory(argument or None, **options)
