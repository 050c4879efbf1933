"""The report's data as JavaScript files: a compact index that is always loaded, and chunks that are loaded when shown.

Scripts, because `fetch` does not work on pages opened from disk. Texts are data from anywhere: they are only ever
written as escaped JSON strings, and never as keys of an object (`__proto__`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from healbench.questions import VIEWER_OF_MODEL, ask
from healbench.report.summary import Row, category_name, category_of, class_of
from healbench.report.thumbs import Thumb
from healbench.types import DIMENSIONS, Category, FailureRule, HealClass, QuestionSet

CHUNK_ROWS = 200
PAGE_ROWS = 24

_JUDGE_KEYS = ("judge", "judge_digest", "prompt_digest", "params", "version", "granularity")
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def script(call: str, *arguments: Any) -> bytes:
    """`HB.call(…);` with the arguments as JSON that no HTML or JavaScript parser can misread."""
    texts = (json.dumps(a, ensure_ascii=False, separators=(",", ":"), allow_nan=False) for a in arguments)
    escaped = ",".join(_UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", text) for text in texts)
    return f"HB.{call}({escaped});\n".encode()


def display_order(rows: Sequence[Row]) -> list[Row]:
    """Highest total first, then by id; unscored rows last. Chunks follow it, so a first look loads one of them."""
    return sorted(rows, key=lambda r: (r["unscored"] is not None, -(r["total"] or 0.0), str(r["id"])))


def index(
    rows: Sequence[Row], classes: Sequence[HealClass], categories: Mapping[str, Category], rule: FailureRule
) -> dict[str, Any]:
    """What filters and sorting need, as columns in display order."""
    class_names = {c.id: c.name for c in classes}
    class_ids = _present([*class_names], (class_of(row) for row in rows))
    category_ids = _present([*categories], (category_of(row) for row in rows))
    of_category = {category_of(row): class_of(row) for row in reversed(rows)}
    class_at, category_at = _positions(class_ids), _positions(category_ids)
    return {
        "chunkRows": CHUNK_ROWS,
        "pageRows": PAGE_ROWS,
        "rule": {"meanBelow": rule.mean_below, "ratingAtMost": rule.rating_at_most},
        "classes": [[c, class_names.get(c, c or "No class")] for c in class_ids],
        "categories": [[c, category_name(c, categories), class_at[of_category[c]]] for c in category_ids],
        "ids": [str(row["id"]) for row in rows],
        "cls": [class_at[class_of(row)] for row in rows],
        "cat": [category_at[category_of(row)] for row in rows],
        "fails": [_fail_bits(row) for row in rows],
        **{d: [_short(row[d]) for row in rows] for d in (*DIMENSIONS, "total")},
    }


def chunks(
    rows: Sequence[Row], thumbs: Mapping[str, Thumb], samples: Mapping[str, Row], details: Details
) -> Iterator[bytes]:
    """One script for every 200 rows, in display order."""
    for k, start in enumerate(range(0, len(rows), CHUNK_ROWS)):
        part = rows[start : start + CHUNK_ROWS]
        yield script("chunk", k, [_entry(r, thumbs[r["id"]], samples.get(str(r["id"]), {}), details) for r in part])


class Details:
    """What many rows share and only the panel shows: question sets and judges."""

    def __init__(self, rows: Sequence[Row], questions: Mapping[str, QuestionSet]) -> None:
        self._questions = questions
        self._sets = _present([*questions], (category_of(row) for row in rows if category_of(row) in questions))
        self._judges: list[str] = sorted({self._judge(row) for row in rows})

    def judge_of(self, row: Row) -> int:
        return self._judges.index(self._judge(row))

    def questions_of(self, row: Row) -> int | None:
        """Which question set the row was rated with; -1: one that has changed since, None: not known here."""
        known = self._questions.get(category_of(row))
        if known is None:
            return None
        return self._sets.index(category_of(row)) if row.get("question_digest") in (known.digest, None) else -1

    def to_json(self) -> dict[str, Any]:
        return {
            "judges": [json.loads(judge) for judge in self._judges],
            "questions": [
                [
                    [[ask(q, VIEWER_OF_MODEL), q.level, sorted(q.anchors.items())] for q in self._questions[c].of(d)]
                    for d in DIMENSIONS
                ]
                for c in self._sets
            ],
        }

    @staticmethod
    def _judge(row: Row) -> str:
        return json.dumps([[key, _plain(row[key])] for key in _JUDGE_KEYS if row.get(key) not in (None, "", {})])


def _entry(row: Row, thumb: Thumb, sample: Mapping[str, Any], details: Details) -> dict[str, Any]:
    rationale = row.get("rationale") or {}
    unscored = row["unscored"]
    entry: dict[str, Any] = {
        "text": str(row.get("text") or ""),
        "picture": [thumb.card, thumb.panel, thumb.width, thumb.height] if thumb.card else None,
        "noPicture": thumb.reason,
        "why": [str(rationale.get(d) or "") for d in DIMENSIONS],
        "ratings": [list(row["ratings"][d]) for d in DIMENSIONS] if row.get("ratings") else None,
        "unscored": [unscored["code"], str(unscored.get("message") or "")] if unscored else None,
        "textSource": row.get("text_source") or "given",
        "categorySource": row.get("category_source") or "given",
        "judge": details.judge_of(row),
        "questions": details.questions_of(row),
        "trace": [
            [label, _plain(row[key])]
            for key, label in (
                ("image_sha256", "Picture sha256"),
                ("question_digest", "Question digest"),
                ("repeats", "Repeats"),
                ("raw_reply_ref", "Raw reply"),
            )
            if row.get(key) not in (None, "", [])
        ],
        "instruction": str(sample.get("instruction") or ""),
        "credit": _credit(sample),
    }
    return {key: value for key, value in entry.items() if value not in ("", None, [], "given")}


def _credit(sample: Mapping[str, Any]) -> list[list[str]]:
    """Who made the picture and under which licence, where the sample says so."""
    keys = (
        ("title", "Title"), ("author", "Author"), ("licence", "Licence"), ("license", "Licence"),
        ("source", "Source"), ("source_url", "Source"), ("url", "Source"),
    )  # fmt: skip
    return [[label, str(sample[key])] for key, label in keys if isinstance(sample.get(key), str) and sample[key]]


def _fail_bits(row: Row) -> int:
    """A bit a failing dimension (1 alignment, 2 heal, 4 quality), -1 where nothing was scored."""
    if row["unscored"] is not None:
        return -1
    return sum(1 << k for k, d in enumerate(DIMENSIONS) if d in row["failures"])


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _present(order: Sequence[str], found: Iterator[str]) -> list[str]:
    seen = set(found)
    return [*(x for x in order if x in seen), *sorted(seen - set(order))]


def _positions(ids: Sequence[str]) -> dict[str, int]:
    return {x: k for k, x in enumerate(ids)}
