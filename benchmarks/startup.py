"""How long `healbench --help` takes beside `python -c "import numpy"`, in the same minute.

python -m benchmarks.startup
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15


def seconds(command: list[str]) -> float:
    """Wall time of a whole process."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Alternates the two, so that both see the same load."""
    help_command = [str(Path(sys.executable).with_name("healbench")), "--help"]
    numpy_command = [sys.executable, "-c", "import numpy"]
    times = [(seconds(help_command), seconds(numpy_command)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"healbench --help {ours:.3f} s, import numpy {theirs:.3f} s: ratio {ours / theirs:.2f} (at most 4)")


if __name__ == "__main__":
    main()
