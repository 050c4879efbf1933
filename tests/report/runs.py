"""Made-up runs for the report's tests: rows that follow the score-row contract, and small pictures."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from healbench.questions import Questions
from healbench.report import ReportInput
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, Dimension, HealScore

TAXONOMY = Taxonomy.load()
QUESTIONS = Questions()
NOTICE = "Offline baseline: small embedded models, not a person and not a large judge."
RUN = {
    "schema": 1,
    "command": "score",
    "config": {"judge": "offline"},
    "versions": {"healbench": "0.1.0"},
    "digests": {"judge": "a" * 64},
    "counts": {"total": 3, "scored": 2, "unscored": 1, "cached": 0},
    "started": "2026-01-02T03:04:05Z",
    "finished": "2026-01-02T03:04:09Z",
}

Ratings = dict[Dimension, tuple[int, int, int]]
Row = dict[str, Any]


def scored(
    row_id: str,
    category: str,
    ratings: Ratings | None = None,
    scores: dict[Dimension, float] | None = None,
    **other: Any,
) -> Row:
    """A scored row: an item judge's from nine ratings, a dimension judge's from three scores."""
    values = scores or {}
    if ratings:
        values = {d: sum(ratings[d]) / 3 for d in DIMENSIONS}
    score = HealScore(values["alignment"], values["heal"], values["quality"], ratings)
    return _row(row_id, category) | {
        "granularity": "item" if ratings else "dimension",
        "alignment": score.alignment,
        "heal": score.heal,
        "quality": score.quality,
        "total": score.total,
        "healing": score.healing,
        "failures": list(score.failures),
        "ratings": {d: list(ratings[d]) for d in DIMENSIONS} if ratings else None,
        "rationale": {d: f"The {d} of {row_id} is what it is." for d in DIMENSIONS},
        **other,
    }


def unscored(row_id: str, category: str, code: str, message: str, **other: Any) -> Row:
    return _row(row_id, category) | {"unscored": {"code": code, "message": message}, **other}


def synthetic(n: int, *, seed: int = 0, categories: Sequence[str] = ()) -> list[Row]:
    """Rows over all valid categories; every 17th is unscored."""
    rng = random.Random(seed)
    ids = list(categories) or [c.id for c in TAXONOMY.valid]
    rows = []
    for k in range(n):
        category, row_id = ids[k % len(ids)], f"pictures/sample-{k:05d}.png"
        name = TAXONOMY.categories[category].name.lower()
        text = f"A quiet picture, number {k}, of {name} in the evening light, seen from afar"
        if k % 17 == 16:
            rows.append(unscored(row_id, category, "timeout", "no reply within 60 s", text=text))
            continue
        ratings: Ratings = {}
        for d in DIMENSIONS:
            middle = rng.randint(3, 9)
            a, b, c = (min(10, max(1, middle + rng.randint(-1, 1))) for _ in range(3))
            ratings[d] = (a, b, c)
        rows.append(scored(row_id, category, ratings, text=text))
    return rows


def picture(path: Path, colour: tuple[int, int, int] = (90, 140, 120), size: tuple[int, int] = (640, 480)) -> str:
    """Writes a plain picture and returns its sha256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def with_pictures(rows: Sequence[Row], folder: Path, *, different: int = 4) -> dict[str, Path]:
    """A few pictures, shared by the rows; sets `image_sha256` where the row has a picture."""
    paths = [folder / f"{k}.png" for k in range(different)]
    shas = [picture(path, (60 + 30 * k, 140, 120), (640, 400 + 80 * k)) for k, path in enumerate(paths)]
    for k, row in enumerate(rows):
        row["image_sha256"] = shas[k % different]
    return {row["id"]: paths[k % different] for k, row in enumerate(rows)}


def report_input(rows: Sequence[Row], images: dict[str, Path], **other: Any) -> ReportInput:
    used = {row["category"] for row in rows if row["category"] in TAXONOMY.categories}
    return ReportInput(
        rows=rows,
        images=images,
        run=RUN,
        classes=list(TAXONOMY.classes.values()),
        categories=TAXONOMY.categories,
        questions={c: QUESTIONS.of(TAXONOMY.categories[c]) for c in sorted(used)},
        **{"notice": NOTICE, **other},
    )


def _row(row_id: str, category: str) -> Row:
    known = TAXONOMY.categories.get(category)
    return {
        "schema": 1,
        "id": row_id,
        "image_sha256": None,
        "text": f"A picture called {row_id}",
        "text_source": "given",
        "category": category,
        "category_source": "given",
        "heal_class": known.heal_class if known else None,
        "judge": "offline",
        "judge_digest": "a" * 64,
        "question_digest": QUESTIONS.of(known).digest if known else None,
        "prompt_digest": None,
        "params": {"calibration": "2026-01"},
        "version": "0.1.0",
        "granularity": "item",
        **dict.fromkeys(
            (*DIMENSIONS, "total", "healing", "failures", "ratings", "rationale", "raw_reply_ref", "unscored")
        ),
        "repeats": 1,
    }
