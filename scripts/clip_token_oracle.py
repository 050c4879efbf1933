# mypy: ignore-errors
# open_clip is not among the development packages.
"""Writes tests/data/clip_token_counts.json with the original tokenizer.

In an environment of its own:  pip install torch==2.13.0 && pip install --no-deps open_clip_torch==3.3.0
                               pip install ftfy regex && python scripts/clip_token_oracle.py
"""

import json
from pathlib import Path

import torch  # noqa: F401 - open_clip's tokenizer module needs it
from open_clip.tokenizer import SimpleTokenizer

TEXTS = [
    "a cat",
    "A tabby cat sleeps on a blue cushion near the window; rain falls outside.",
    "Café au lait, naïve façade, São Paulo, Hokkaidō — 3 o'clock, 1,095 prompts!",
    "治愈的画面",
    "хорошо عربى ไทย",
    "don't can't it's we'll they've I'm he'd",
    "low-angle close-up of moss-covered, rain-wet stones (mid-morning)",
    "word " * 80,
    "snake_case and CamelCase and émigré's naïveté",
    "emoji ☕ and 🌲 stay",
]


def main() -> None:
    tokenizer = SimpleTokenizer()
    counts = {text: len(tokenizer.encode(text)) + 2 for text in TEXTS}
    out = Path(__file__).parents[1] / "tests" / "data" / "clip_token_counts.json"
    out.write_text(json.dumps(counts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
