"""What the commands share: how they print, and where the root command is.

Each command imports what it needs inside itself, so that `healbench --help` costs no more than its own text.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

from cyclopts import App, Parameter, config

from healbench import __version__

AsJson = Annotated[bool, Parameter("--json", negative="")]

app = App(
    name="healbench",
    help="Measures whether a picture comforts the person who looks at it, and says why it fails.",
    version=__version__,
    config=[
        config.Env("HEALBENCH_", command=True),
        config.Toml("healbench.toml", must_exist=False, search_parents=False),
    ],
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # `run` says how to go on
    help_epilogue="Start with `healbench demo`, or `healbench score photo.jpg`.",
)


def print_json(content: Any) -> None:
    """One line of machine output on stdout."""
    print(json.dumps(content, ensure_ascii=False), flush=True)


def say(message: str) -> None:
    """Everything that is no result goes to stderr."""
    print(message, file=sys.stderr, flush=True)
