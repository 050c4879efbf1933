"""The exceptions that HealBench raises on purpose.

    HealBenchError
    ├── UsageError      the caller asked for something that cannot be (exit 2)
    ├── SetupError      the installation lacks something: an extra, a weight, a browser (exit 2)
    ├── RunFolderError  a run folder cannot be used: locked, other settings, disk full (exit 2)
    ├── ImageError      one picture cannot be used; becomes an unscored row, never stops the others
    └── ChatError       one question to a chat model has no whole reply; becomes an unscored row likewise

Every message names what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from healbench.types import UnscoredCode


class HealBenchError(Exception):
    """Base of everything raised here on purpose; its text is shown to the user without a traceback."""


class UsageError(HealBenchError):
    """A wrong argument, an unknown category, a malformed input file."""


class SetupError(HealBenchError):
    """Something that has to be installed or configured first is missing."""


class RunFolderError(HealBenchError):
    """A run folder that is in use, holds a run of other settings, or cannot be written."""


ImageErrorCode = Literal["image_unreadable", "too_large", "missing"]


class ImageError(HealBenchError):
    """One picture that cannot be turned into pixels.

    Args:
        code: the unscored code of the row (see `healbench.types.UnscoredCode`).
        path: the file.
        reason: what is wrong with it, as a phrase.
    """

    def __init__(self, code: ImageErrorCode, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.code: ImageErrorCode = code
        self.path = path
        self.reason = reason


class ChatError(HealBenchError):
    """A chat model gave no whole reply, or none that can be used.

    Args:
        code: the unscored code of what was asked for.
        message: what happened, and what to do about it where something can be done.
    """

    def __init__(self, code: UnscoredCode, message: str) -> None:
        super().__init__(message)
        self.code: UnscoredCode = code
