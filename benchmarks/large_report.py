"""How long the report of a whole benchmark run of 15,330 rows takes, beside writing its rows as plain JSON.

python -m benchmarks.large_report
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from pathlib import Path

from healbench.report import write_report
from tests.report.runs import report_input, synthetic, with_pictures

ROWS = 15_330


def main() -> None:
    """Uses four pictures for all rows: making thumbnails is proportional to the pictures and comes on top."""
    rows = synthetic(ROWS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = report_input(rows, with_pictures(rows, folder / "pictures"))
        started = time.perf_counter()
        (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        plain = time.perf_counter() - started
        started = time.perf_counter()
        index = write_report(folder, source)
        ours = time.perf_counter() - started
        first = index.stat().st_size + (index.parent / "data" / "index.js").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{ROWS:,} rows: {ours:.1f} s, {ours / plain:.0f} times json.dumps of the rows ({plain:.2f} s); "
        f"index.html and index.js {first / 1e6:.2f} MB (at most 3); peak memory {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
