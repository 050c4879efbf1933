"""Pictures of the report: WebP files named by the sha256 of the picture they show, so none is made twice."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healbench.errors import ImageError
from healbench.images import load_picture, resize_long_side

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CARD_PIXELS = 384
PANEL_PIXELS = 768
QUALITY = 80

Progress = Callable[[int, int], None]
"""Called with how many pictures are done, of how many."""


@dataclass(frozen=True, slots=True)
class Thumb:
    """What a row's picture looks like in the report.

    Attributes:
        card, panel: file names in the thumbs folder; the panel's is the card's where no larger one was made.
        width, height: of the card's file.
        reason: why there is no picture; then the rest is empty.
    """

    card: str = ""
    panel: str = ""
    width: int = 0
    height: int = 0
    reason: str = ""


def make_thumbs(
    rows: Sequence[Mapping[str, Any]],
    images: Mapping[str, Path],
    folder: Path,
    *,
    large: bool,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Thumb]:
    """Row id → thumb. What exists for a picture's sha256 stays; what no row shows any more is removed.

    Args:
        large: also make the panel's larger picture.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs: dict[tuple[str, str], Path | None] = {}
    keys: dict[str, tuple[str, str]] = {}
    for row in rows:
        sha, path = str(row.get("image_sha256") or ""), images.get(str(row["id"]))
        keys[row["id"]] = (sha, "" if sha else str(path))
        jobs.setdefault(keys[row["id"]], path)
    made: dict[tuple[str, str], Thumb] = {}
    with ThreadPoolExecutor(workers or min(8, os.cpu_count() or 1)) as pool:
        todo = pool.map(lambda job: _make(job[0][0], job[1], folder, large), jobs.items())
        for done, (key, thumb) in enumerate(zip(jobs, todo, strict=True), 1):
            made[key] = thumb
            if progress:
                progress(done, len(jobs))
    _remove_others(folder, made.values())
    return {row_id: made[key] for row_id, key in keys.items()}


def _make(sha: str, path: Path | None, folder: Path, large: bool) -> Thumb:
    if sha and (thumb := _existing(sha, folder, large)):
        return thumb
    if path is None:
        return Thumb(reason="no picture is known for this row")
    try:
        picture = load_picture(path)
    except ImageError as error:
        return Thumb(reason=error.reason)
    if sha and picture.sha256 != sha:
        return Thumb(reason="the file has changed since it was scored")
    card, panel = _names(picture.sha256, large)
    _write(_webp(picture.rgb, CARD_PIXELS), folder / card)
    if large:
        _write(_webp(picture.rgb, PANEL_PIXELS), folder / panel)
    return _existing(picture.sha256, folder, large) or Thumb(reason="the report's folder could not be written")


def _names(sha: str, large: bool) -> tuple[str, str]:
    card = f"{sha[:20]}-{CARD_PIXELS}.webp"
    return card, f"{sha[:20]}-{PANEL_PIXELS}.webp" if large else card


def _existing(sha: str, folder: Path, large: bool) -> Thumb | None:
    from PIL import Image  # noqa: PLC0415 - only a report needs it

    card, panel = _names(sha, large)
    if not ((folder / card).is_file() and (folder / panel).is_file()):
        return None
    try:
        with Image.open(folder / card) as image:
            return Thumb(card, panel, *image.size)
    except OSError:
        return None


def _webp(rgb: NDArray[np.uint8], pixels: int) -> bytes:
    from PIL import Image  # noqa: PLC0415 - only a report needs it

    file = io.BytesIO()
    Image.fromarray(resize_long_side(rgb, pixels)).save(file, "WEBP", quality=QUALITY)
    return file.getvalue()


def _write(data: bytes, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def _remove_others(folder: Path, thumbs: Iterable[Thumb]) -> None:
    used = {name for thumb in thumbs for name in (thumb.card, thumb.panel)}
    for path in folder.iterdir():
        if path.name not in used and (path.suffix == ".webp" or path.name.startswith(".")):
            path.unlink(missing_ok=True)
