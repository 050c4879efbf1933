"""How long a text is for CLIP, which cuts everything after 77 tokens.

The vocabulary is that of OpenAI's CLIP (MIT), used by every text-to-image model with a CLIP text encoder.
"""

from __future__ import annotations

import functools
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTEXT = 77
"""Tokens that CLIP reads, the start and the end mark included."""

_MERGES = Path(__file__).parent / "data" / "clip_bpe_merges.txt.gz"
_MERGE_COUNT = 49152 - 256 - 2
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def count_clip_tokens(text: str) -> int:
    """Tokens of a text for CLIP, with the start and the end mark."""
    return len(_tokenizer().encode(text).ids) + 2


@functools.cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers  # noqa: PLC0415 - only needed here

    lines = gzip.decompress(_MERGES.read_bytes()).decode("utf-8").split("\n")[1 : _MERGE_COUNT + 1]
    merges = [(first, second) for first, second in (line.split() for line in lines)]
    letters = _byte_letters()
    words = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(merge) for merge in merges)]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def _byte_letters() -> list[str]:
    """The 256 letters that stand for bytes, printable ones for themselves, in CLIP's order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
