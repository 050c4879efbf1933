"""Score rows → every number that the report shows. Unscored rows are counted and listed, and are in no mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from healbench.stats import Interval, Rate, bootstrap_macro, bootstrap_means, cluster_rate
from healbench.types import DIMENSIONS, Category, HealClass

Row = Mapping[str, Any]
"""One current score row (DESIGN, "Score row")."""

NUMBERS = (*DIMENSIONS, "total")

UNSCORED_LABELS: dict[str, str] = {
    "image_unreadable": "Picture cannot be read",
    "refused": "The judge refused to answer",
    "unparsable": "The reply could not be understood",
    "schema_violation": "The reply lacks required parts",
    "truncated": "The reply was cut off",
    "timeout": "No reply in time",
    "server_error": "The judge’s server failed",
    "rate_limited": "The judge’s server asked to slow down",
    "too_large": "Picture too large",
    "blocked": "Blocked by a content filter",
    "nan": "The judge gave no number",
    "missing": "File or rating missing",
    "cost_limit": "Cost limit reached",
}


@dataclass(frozen=True, slots=True)
class Group:
    """The numbers of some rows.

    Attributes:
        rows, scored: how many there are, and how many of them have a score.
        means: alignment, heal, quality, total; None where nothing was scored.
        fails: per dimension, the share of scored rows in which it fails.
        healing: the share of scored rows in which none fails.
    """

    id: str
    name: str
    rows: int
    scored: int
    means: Mapping[str, Interval | None]
    fails: Mapping[str, Rate | None]
    healing: Rate | None


@dataclass(frozen=True, slots=True)
class ClassGroup:
    """One HEAL class, and the same without the residual coarse category where it has some of it."""

    group: Group
    without_residual: Group | None


@dataclass(frozen=True, slots=True)
class CategoryGroup:
    class_name: str
    group: Group


@dataclass(frozen=True, slots=True)
class UnscoredGroup:
    """The rows that have no score for one reason, as (id, message)."""

    code: str
    label: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Attributes:
    overall: each row counts once ("micro").
    macro: means in which each class with a scored row counts once.
    macro_classes: how many classes that are.
    text_sources, category_sources: how many rows come from where.
    judges: (name, digest) of every judge that the rows name; more than one should not be averaged.
    """

    overall: Group
    macro: Mapping[str, Interval | None]
    macro_classes: int
    classes: tuple[ClassGroup, ...]
    categories: tuple[CategoryGroup, ...]
    unscored: tuple[UnscoredGroup, ...]
    text_sources: Mapping[str, int]
    category_sources: Mapping[str, int]
    judges: tuple[tuple[str, str], ...]
    granularities: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `summary.json`; floats keep six decimals, so that no machine's rounding shows."""
        rounded: dict[str, Any] = _rounded({"schema": 1, "level": 0.95, **asdict(self)})
        return rounded


def summarize(rows: Sequence[Row], classes: Sequence[HealClass], categories: Mapping[str, Category]) -> Summary:
    """All numbers of the report.

    Raises:
        ValueError: two rows of one id, or a row that claims a score without having all its numbers.
    """
    _check(rows)
    scored = [row for row in rows if row["unscored"] is None]
    by_class = _grouped(rows, class_of)
    by_category = _grouped(rows, category_of)
    class_names = {c.id: c.name for c in classes}
    class_ids = [*(c for c in class_names if c in by_class), *sorted(set(by_class) - set(class_names))]
    position = {category: k for k, category in enumerate(categories)}

    def category_order(category: str) -> tuple[int, int, str]:
        return class_ids.index(class_of(by_category[category][0])), position.get(category, len(position)), category

    macro: Mapping[str, Interval | None] = dict.fromkeys(NUMBERS)
    if scored:
        columns = {name: [row[name] for row in scored] for name in NUMBERS}
        macro = bootstrap_macro(columns, [cluster_of(r) for r in scored], [class_of(r) for r in scored])
    return Summary(
        overall=group("", "All pictures", rows),
        macro=macro,
        macro_classes=len({class_of(row) for row in scored}),
        classes=tuple(_class_group(c, class_names.get(c, c or "No class"), by_class[c], categories) for c in class_ids),
        categories=tuple(
            CategoryGroup(
                class_names.get(class_of(by_category[c][0]), class_of(by_category[c][0]) or "No class"),
                group(c, category_name(c, categories), by_category[c]),
            )
            for c in sorted(by_category, key=category_order)
        ),
        unscored=_unscored(rows),
        text_sources=_counts(rows, "text_source"),
        category_sources=_counts(rows, "category_source"),
        judges=tuple(sorted({(str(r.get("judge") or ""), str(r.get("judge_digest") or "")) for r in rows})),
        granularities=tuple(sorted({str(r["granularity"]) for r in scored if r.get("granularity")})),
    )


def group(group_id: str, name: str, rows: Sequence[Row]) -> Group:
    """The numbers of some rows; unscored ones only raise `rows`."""
    scored = [row for row in rows if row["unscored"] is None]
    if not scored:
        return Group(group_id, name, len(rows), 0, dict.fromkeys(NUMBERS), dict.fromkeys(DIMENSIONS), None)
    clusters = [cluster_of(row) for row in scored]
    return Group(
        id=group_id,
        name=name,
        rows=len(rows),
        scored=len(scored),
        means=bootstrap_means({number: [row[number] for row in scored] for number in NUMBERS}, clusters),
        fails={d: cluster_rate([d in row["failures"] for row in scored], clusters) for d in DIMENSIONS},
        healing=cluster_rate([not row["failures"] for row in scored], clusters),
    )


def cluster_of(row: Row) -> tuple[str, str]:
    """Rows of one prompt are one cluster. A text that nobody gave is no prompt: then each row stands alone."""
    if row.get("text_source", "given") == "given" and row.get("text"):
        return ("text", str(row["text"]))
    return ("id", str(row["id"]))


def class_of(row: Row) -> str:
    return str(row.get("heal_class") or "")


def category_of(row: Row) -> str:
    return str(row.get("category") or "")


def category_name(category: str, categories: Mapping[str, Category]) -> str:
    known = categories.get(category)
    return known.name if known else category or "No category"


def _check(rows: Sequence[Row]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row["id"] in seen:
            raise ValueError(f"two rows have the id {row['id']!r}; give the current one of each")
        seen.add(row["id"])
        if row["unscored"] is not None:
            continue
        for number in NUMBERS:
            value = row[number]
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"row {row['id']!r} is marked as scored but its {number} is {value!r}")
        if row["failures"] is None:
            raise ValueError(f"row {row['id']!r} is marked as scored but its failures are missing")


def _class_group(class_id: str, name: str, rows: Sequence[Row], categories: Mapping[str, Category]) -> ClassGroup:
    kept = [row for row in rows if not ((c := categories.get(category_of(row))) and c.residual)]
    without = group(class_id, name, kept) if 0 < len(kept) < len(rows) else None
    return ClassGroup(group(class_id, name, rows), without)


def _unscored(rows: Sequence[Row]) -> tuple[UnscoredGroup, ...]:
    by_code = _grouped([r for r in rows if r["unscored"] is not None], lambda row: str(row["unscored"]["code"]))
    groups = [
        UnscoredGroup(
            code,
            UNSCORED_LABELS.get(code, code),
            tuple((str(r["id"]), str(r["unscored"].get("message") or "")) for r in of_code),
        )
        for code, of_code in by_code.items()
    ]
    return tuple(sorted(groups, key=lambda g: (-len(g.rows), g.code)))


def _grouped(rows: Sequence[Row], key: Any) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _counts(rows: Sequence[Row], key: str) -> dict[str, int]:
    found = _grouped(rows, lambda row: str(row.get(key) or "given"))
    return {source: len(found[source]) for source in sorted(found)}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return value
