"""The command line: one verb a stage, in the paper's order; each a short function over the package.

Results go to stdout, everything else to stderr. Exit 0: all done; 1: some rows are unscored; 2: usage or set-up.
"""

from __future__ import annotations

import io
import os
import sys

from cyclopts import CycloptsError

from healbench.cli import evalset, questions, score, taxonomy
from healbench.cli.command import app, say
from healbench.errors import HealBenchError

__all__ = ["app", "evalset", "main", "questions", "run", "score", "taxonomy"]


def main() -> None:
    """Entry point of the `healbench` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # whatever the locale says
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code; errors that are the user's are one message, no traceback."""
    try:
        return int(app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0)
    except CycloptsError as error:
        place = "healbench.toml: " if "TOMLDecodeError" in str(error) else ""
        say(f"{place}{error}\nSee `healbench --help`.")
    except HealBenchError as error:
        say(f"error: {error}")
    except BrokenPipeError:
        # The reader of our output has gone. Python would complain once more at exit if it could.
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for good
        return 1
    except KeyboardInterrupt:
        say("stopped; finished rows are kept: the same command with the same --out goes on")
        return 130
    return 2
