"""HealBench: does a picture comfort the person who looks at it, and if not, why?

>>> import healbench
>>> for row in healbench.score("photo.jpg"):  # doctest: +SKIP
...     print(row["total"], row["failures"], row["rationale"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["HealScore", "Taxonomy", "load_judge", "score"]

if TYPE_CHECKING:
    from healbench.judge import load_judge
    from healbench.runs import score
    from healbench.taxonomy import Taxonomy
    from healbench.types import HealScore

_HOME = {"HealScore": "types", "Taxonomy": "taxonomy", "load_judge": "judge", "score": "runs"}


def __getattr__(name: str) -> Any:
    """Loads what is asked for when it is asked for, so that `import healbench` costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'healbench' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"healbench.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
