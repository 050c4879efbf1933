"""The one image door: a file becomes upright sRGB pixels, or an `ImageError` that says why not.

Scorer, judge, report and web page all come through `load_picture`, so they all see the same pixels.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import threading
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from PIL import ExifTags, Image, ImageCms, ImageFile

from healbench.errors import ImageError
from healbench.types import Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BYTES = 100_000_000
"""A larger file is `too_large`."""

MAX_PIXELS = 50_000_000
"""A picture with more pixels is `too_large`; read from its header, before any pixel is decoded."""

_SUFFIXES = ".jpg .jpeg .jfif .png .apng .webp .avif .gif .bmp .tif .tiff .ppm .pgm .pbm .pnm .pfm .heic .heif .hif"
IMAGE_SUFFIXES = frozenset(_SUFFIXES.split())
"""Lower-case suffixes that count as pictures when a folder is walked; a named file is judged by its bytes alone."""

_MAGIC = {
    "Jpeg": rb"\xff\xd8\xff",
    "Png": rb"\x89PNG\r\n\x1a\n",
    "WebP": rb"(?s)RIFF....WEBP",
    "Gif": rb"GIF8[79]a",
    "Bmp": rb"(?s)BM.{12}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\0\0\0",
    "Tiff": rb"II[*+]\0|MM\0[*+]",
    "Ppm": rb"P[1-6f]\s",
}
"""The kinds that are read, by the names of Pillow's plugins; Avif and Heif are told apart by their brands."""
_AVIF_BRANDS = {b"avif", b"avis"}
_HEIF_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"}
_NOT_PICTURES = (
    (rb"(?s).*<svg[\s>]", "an SVG drawing, which has no pixels; save it as PNG first"),
    (rb"\s*<(!doctype html|html)", "a web page, not a picture; download the picture itself"),
    (rb"version https://git-lfs", "a Git LFS pointer, not the picture itself; run: git lfs pull"),
    (rb"%PDF-", "a PDF, not a picture; save its page as PNG first"),
    (rb"(?s)....ftyp", "a video or another kind of MP4 file, not a picture; save a frame as PNG first"),
    (rb"[^\x00-\x08\x0e-\x1a\x1c-\x1f]*\Z", "text, not a picture"),
    (rb"", "not a picture of a known kind; save it as PNG or JPEG first"),
)
_UPRIGHT = {
    number: Image.Transpose[name]
    for number, name in enumerate(
        ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90"),
        start=2,
    )
}
_SEVERAL = {"TIFF": "first of its pages", "HEIF": "main one of its pictures"}


def load_picture(path: Path, *, background: tuple[int, int, int] = (255, 255, 255)) -> Picture:
    """Reads one picture file, whatever its suffix says it is.

    Args:
        path: a JPEG, PNG, WebP, AVIF, GIF, BMP, TIFF or PPM file, or HEIC with the extra `healbench[heic]`.
        background: red, green, blue, each 0-255; shown where the picture is transparent.

    Returns:
        Pixels as contiguous uint8 of shape (height, width, 3): upright by EXIF, in sRGB by its ICC profile, 16 bits
        and floats scaled to 8 bits, the first frame of an animation. `notes` says what was done, in plain words.

    Raises:
        ImageError: `missing`; `too_large` (`MAX_BYTES`, `MAX_PIXELS`); `image_unreadable` for everything else that
            can be wrong with a file, truncation included. Nothing else is raised for what a file contains.
        ValueError: the background is not a colour.
    """
    if len(background) != 3 or not all(0 <= channel <= 255 for channel in background):
        raise ValueError(f"background is {background}, not three numbers from 0 to 255")
    data = _read(path)
    kind = _sniff(data)
    if kind is None:
        what = next(what for pattern, what in _NOT_PICTURES if re.match(pattern, data[:4096], re.IGNORECASE))
        raise ImageError("image_unreadable", path, what)
    notes: list[str] = []
    try:
        with _strict_pillow:
            im = _open(kind, data, path)
            if im.width * im.height > MAX_PIXELS:
                size = f"{im.width} x {im.height} pixels, more than {MAX_PIXELS // 10**6} megapixels"
                raise ImageError("too_large", path, f"{size}; make it smaller first")
            rgb = _decode(im, background, notes)
    except ImageError:
        raise
    except (MemoryError, Image.DecompressionBombError):
        raise ImageError("too_large", path, "decoding it needs too much memory; make it smaller first") from None
    except Exception as error:
        # Pillow's plugins meet a damaged file with struct.error, SyntaxError, IndexError, zlib.error and many more.
        what = f"a damaged {kind.upper()} file ({str(error) or type(error).__name__})"
        cut = re.search(r"truncat|insufficient|\beof\b|end of file|end-of-file", what, re.IGNORECASE)
        reason = "truncated: only part of the picture is there" if cut else what
        raise ImageError("image_unreadable", path, f"{reason}; copy or download it again") from error
    return Picture(path, rgb, hashlib.sha256(data).hexdigest(), tuple(notes))


def resize_long_side(rgb: NDArray[np.uint8], pixels: int) -> NDArray[np.uint8]:
    """Shrinks a picture until its longer side has that many pixels; one that is small enough comes back as it is.

    Args:
        rgb: uint8, shape (height, width, 3).
        pixels: at least 1.

    Returns:
        uint8, shape (h, w, 3), 1 <= min(h, w) and max(h, w) <= pixels.
    """
    if pixels < 1:
        raise ValueError(f"a side of {pixels} pixels; it must be at least 1")
    height, width = rgb.shape[:2]
    scale = pixels / max(height, width)
    if scale >= 1:
        return rgb
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.array(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


class _StrictPillow:
    """While any thread decodes: Pillow's warnings are not shown, and no truncated file is filled up with grey.

    Both are process-wide settings (other libraries do switch LOAD_TRUNCATED_IMAGES on), so the first thread in sets
    them and the last one out restores them; one context manager a thread would restore them in the wrong order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0

    def __enter__(self) -> None:
        with self._lock:
            self._threads += 1
            if self._threads == 1:
                self._undo = contextlib.ExitStack()
                self._undo.enter_context(warnings.catch_warnings())
                self._undo.callback(setattr, ImageFile, "LOAD_TRUNCATED_IMAGES", ImageFile.LOAD_TRUNCATED_IMAGES)
                warnings.filterwarnings("ignore", module=r"PIL\.")
                ImageFile.LOAD_TRUNCATED_IMAGES = False

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                self._undo.close()


_strict_pillow = _StrictPillow()


def _read(path: Path) -> bytes:
    try:
        if not path.is_file() and path.exists():  # reading a pipe or a device would never end
            what = "a folder" if path.is_dir() else "a pipe or a device"
            raise ImageError("image_unreadable", path, f"{what}, not a picture")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise ImageError("missing", path, "no such file") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ImageError("image_unreadable", path, f"cannot be read ({why})") from None
    if not data:
        raise ImageError("image_unreadable", path, "an empty file (0 bytes); copy or download it again")
    if len(data) > MAX_BYTES:
        raise ImageError("too_large", path, f"more than {MAX_BYTES // 10**6} MB; make it smaller first")
    return data


def _sniff(data: bytes) -> str | None:
    if data[4:8] == b"ftyp":
        end = min(int.from_bytes(data[:4]), 512)
        brands = {data[at : at + 4] for at in (8, *range(16, end, 4))}  # 12-15 are a version, not a brand
        return "Avif" if brands & _AVIF_BRANDS else "Heif" if brands & _HEIF_BRANDS else None
    return next((kind for kind, magic in _MAGIC.items() if re.match(magic, data)), None)


def _open(kind: str, data: bytes, path: Path) -> ImageFile.ImageFile:
    """Reads the header by the class of the one plugin, and registers nothing.

    `Image.open` would also ask what other libraries registered, and would warn of large pictures by the
    process-wide `Image.MAX_IMAGE_PIXELS`, which is not ours to change.
    """
    try:
        plugin = import_module("pillow_heif" if kind == "Heif" else f"PIL.{kind}ImagePlugin")
    except ImportError:
        raise ImageError("image_unreadable", path, 'HEIC needs: pip install "healbench[heic]"') from None
    return cast("ImageFile.ImageFile", getattr(plugin, f"{kind}ImageFile")(io.BytesIO(data)))


def _decode(im: ImageFile.ImageFile, background: tuple[int, int, int], notes: list[str]) -> NDArray[np.uint8]:
    # Pillow turns a TIFF upright while it loads one, and then forgets that there was an orientation.
    turned = getattr(im, "tag_v2", {}).get(ExifTags.Base.Orientation) in _UPRIGHT
    _scale_transparent_colour(im)
    im.load()
    colour, alpha = _split_alpha(_grey_to_8_bit(im, notes))
    rgb = _to_srgb(colour, im.info.get("icc_profile"), notes)
    if alpha is not None and alpha.getextrema() != (255, 255):
        canvas = Image.new("RGB", rgb.size, background)
        canvas.paste(rgb, mask=alpha)
        rgb = canvas
        over = "white" if tuple(background) == (255, 255, 255) else "rgb({}, {}, {})".format(*background)
        notes.append(f"its transparent parts are shown over {over}")
    try:
        orientation = im.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:
        orientation = 1
        notes.append("its EXIF block is broken and was ignored")
    if orientation in _UPRIGHT:
        rgb = rgb.transpose(_UPRIGHT[orientation])
        turned = True
    if turned:
        notes.append("rotated by its EXIF orientation")
    # Last, because a GIF moves on to its second frame to answer, and a damaged second frame does not matter here.
    several = True
    with contextlib.suppress(Exception):
        several = bool(getattr(im, "is_animated", False))
    if several:
        notes.append(f"only the {_SEVERAL.get(im.format or '', 'first frame of its animation')} is used")
    return np.array(rgb)


def _scale_transparent_colour(im: ImageFile.ImageFile) -> None:
    """Pillow scales the pixels of a PNG of 2, 4 or 16 bits to 8, but leaves its transparent colour as it was."""
    rawmode = im.tile[0].args if im.tile else None
    transparent = im.info.get("transparency")
    if isinstance(transparent, int) and rawmode in ("L;2", "L;4"):
        im.info["transparency"] = transparent * (85 if rawmode == "L;2" else 17)
    elif isinstance(transparent, tuple) and rawmode == "RGB;16B":
        im.info["transparency"] = tuple(channel >> 8 for channel in transparent)


def _grey_to_8_bit(im: Image.Image, notes: list[str]) -> Image.Image:
    """Scales one channel of 16 or 32 bits or floats to 8 bits, which Pillow's `convert` would clip."""
    if im.mode not in ("I", "F") and not im.mode.startswith("I;16"):
        return im
    values, tags = np.asarray(im), getattr(im, "tag_v2", {})
    low, high = float(values.min()), float(values.max())
    if not np.isfinite((low, high)).all():
        raise ValueError("some of its pixels are NaN or infinite")
    whole = im.mode != "F" or bool((values == np.rint(values)).all())
    bottom, top = min(low, 0.0), 65535.0
    if tags.get(ExifTags.Base.BitsPerSample) == (12,):
        top = 4095.0
    elif im.mode == "F" and high <= 255 and (whole or high <= 1):
        top = 1.0 if high <= 1 else 255.0
    elif high > 65535 or not whole:
        top = high
    grey = (values - np.float64(bottom)) * (255 / (top - bottom))
    if tags.get(ExifTags.Base.PhotometricInterpretation) == 0:
        grey = 255 - grey
    notes.append(f"its grey values from {bottom:g} to {top:g} were scaled to 8 bits")
    scaled = Image.fromarray(np.rint(grey).astype(np.uint8))
    if isinstance(transparent := im.info.get("transparency"), int):
        scaled.putalpha(Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8)))
    return scaled


def _split_alpha(im: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Colour (L, RGB, CMYK or LAB) and alpha apart: a colour profile is for the colours alone."""
    if not im.has_transparency_data:
        return (im if im.mode in ("L", "CMYK", "LAB") else im.convert("L" if im.mode == "1" else "RGB")), None
    if im.mode in ("LA", "La"):
        im = im.convert("LA")
        return im.getchannel("L"), im.getchannel("A")
    rgba = im.convert("RGBA")
    return rgba.convert("RGB"), rgba.getchannel("A")


def _to_srgb(colour: Image.Image, icc: bytes | None, notes: list[str]) -> Image.Image:
    if icc:
        try:
            profile = ImageCms.ImageCmsProfile(io.BytesIO(icc))
            if colour.mode == "L" and profile.profile.xcolor_space.strip() == "RGB":
                colour = colour.convert("RGB")
            srgb = cast("ImageCms.ImageCmsProfile", ImageCms.createProfile("sRGB"))
            how = ImageCms.Intent.RELATIVE_COLORIMETRIC, ImageCms.Flags.BLACKPOINTCOMPENSATION
            rgb = ImageCms.buildTransform(profile, srgb, colour.mode, "RGB", *how).apply(colour)
            name = (profile.profile.profile_description or "unnamed").strip()
        except Exception:
            notes.append("its ICC profile is broken or does not fit its colours, and was ignored")
        else:
            if "sRGB" not in name:
                notes.append(f"its colours were converted from the ICC profile {name!r} to sRGB")
            return rgb
    if colour.mode == "CMYK":
        notes.append("its CMYK colours were converted without an ICC profile")
    return colour.convert("RGB")
