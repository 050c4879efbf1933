"""Writes NOTICE from the demo's own list of pictures.

python scripts/notice.py
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "healbench" / "data" / "demo" / "samples.jsonl"

HEAD = """HealBench
Copyright 2026 The HealBench developers

Licensed under the Apache License, Version 2.0 (see LICENSE).

Embedded weights: src/healbench/models/offline/weights/LICENSES.md names their sources and licences.

Demo photographs (src/healbench/data/demo). Each has its own licence:

  CC0-1.0       https://creativecommons.org/publicdomain/zero/1.0/
  CC-BY-2.0     https://creativecommons.org/licenses/by/2.0/
  CC-BY-3.0     https://creativecommons.org/licenses/by/3.0/
  CC-BY-4.0     https://creativecommons.org/licenses/by/4.0/
  CC-BY-SA-3.0  https://creativecommons.org/licenses/by-sa/3.0/
  CC-BY-SA-4.0  https://creativecommons.org/licenses/by-sa/4.0/
"""


def notice() -> str:
    """The text of NOTICE."""
    entries = {}
    for line in DEMO.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        entries[row["image"]] = "\n".join(
            [
                row["image"],
                f"  author:  {row['author']}",
                f"  licence: {row['licence']}",
                f"  source:  {row.get('source_url') or 'none given'}",
                f"  from:    {row['package']} {row['package_version']}, {row['path']}",
                f"  changes: {row['change']}",
            ]
        )
    return "\n".join([HEAD, *(f"{entry}\n" for entry in entries.values())])


if __name__ == "__main__":
    (ROOT / "NOTICE").write_text(notice(), encoding="utf-8")
