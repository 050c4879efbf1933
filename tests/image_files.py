"""Builds picture files byte by byte where Pillow cannot write them: odd PNGs, ICC profiles, bombs."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from PIL import Image


def encode(im: Image.Image, kind: str, **options: Any) -> bytes:
    """The picture as the bytes of a file that Pillow writes."""
    out = io.BytesIO()
    im.save(out, kind, **options)
    return out.getvalue()


def animation(kind: str, colours: Iterable[str], **options: Any) -> bytes:
    """An animation of one-colour frames, 8 x 6."""
    first, *rest = [Image.new("RGB", (8, 6), colour) for colour in colours]
    return encode(first, kind, save_all=True, append_images=rest, duration=100, **options)


def chunk(name: bytes, body: bytes) -> bytes:
    """One chunk of a PNG."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, depth: int, colour_type: int, rows: bytes, *extra: tuple[bytes, bytes]) -> bytes:
    """A PNG from packed rows; each gets the filter byte 0. `extra` chunks come before the pixels."""
    stride = len(rows) // height
    raw = b"".join(b"\0" + rows[y * stride : (y + 1) * stride] for y in range(height))
    return _png_of(width, height, depth, colour_type, zlib.compress(raw), *extra)


def png_bomb(width: int, height: int) -> bytes:
    """A black PNG of one bit a pixel, compressed as a stream, so that making it takes no memory either."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return _png_of(width, height, 1, 0, packed)


def _png_of(width: int, height: int, depth: int, colour_type: int, packed: bytes, *extra: tuple[bytes, bytes]) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0))
    middle = b"".join(chunk(name, body) for name, body in extra)
    return b"\x89PNG\r\n\x1a\n" + header + middle + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def exif(orientation: int) -> bytes:
    """An EXIF block that holds nothing but an orientation."""
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


def pfm(rows: list[list[float]]) -> bytes:
    """A grey PFM of little-endian floats, which are stored from the bottom row up."""
    body = b"".join(struct.pack(f"<{len(row)}f", *row) for row in reversed(rows))
    return b"Pf\n%d %d\n-1.0\n" % (len(rows[0]), len(rows)) + body


def tiff_12_bits(two_pixels: bytes) -> bytes:
    """A grey TIFF, 2 x 1, of 12 bits a pixel."""
    tags = {256: 2, 257: 1, 258: 12, 259: 1, 262: 1, 273: 8 + 2 + 9 * 12 + 4, 277: 1, 278: 1, 279: 3}
    entries = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + two_pixels


def display_p3() -> bytes:
    """An ICC profile with the primaries of Display P3 (adapted to D50) and the transfer curve of sRGB."""
    curve = b"para" + bytes(4) + struct.pack(">HH", 3, 0) + _fixed(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
    tags = {
        b"rXYZ": _xyz(0.51512, 0.24120, -0.00105),
        b"gXYZ": _xyz(0.29198, 0.69225, 0.04189),
        b"bXYZ": _xyz(0.15710, 0.06657, 0.78407),
        b"rTRC": curve,
        b"gTRC": curve,
        b"bTRC": curve,
    }
    return _icc(b"mntr", b"RGB ", b"XYZ ", "Display P3", tags)


def linear_grey() -> bytes:
    """An ICC profile for grey values that are proportional to light."""
    return _icc(b"mntr", b"GRAY", b"XYZ ", "Linear grey", {b"kTRC": b"curv" + bytes(4) + struct.pack(">I", 0)})


def cmyk_inks(paper: tuple[int, int, int], inks: Mapping[int, tuple[int, int, int]]) -> bytes:
    """An ICC profile for CMYK.

    Args:
        paper: the Lab colour of every corner of the CMYK cube that is not named.
        inks: the corners by number: cyan 8, magenta 4, yellow 2, black 1, added up.
    """
    corners = [inks.get(number, paper) for number in range(16)]
    cube = b"".join(bytes((round(li * 2.55), a + 128, b + 128)) for li, a, b in corners)
    identity = bytes(range(256))
    matrix = _fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    table = b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) + matrix + identity * 4 + cube + identity * 3
    return _icc(b"scnr", b"CMYK", b"Lab ", "Test inks", {b"A2B0": table, b"A2B1": table})


def _fixed(*values: float) -> bytes:
    return struct.pack(f">{len(values)}i", *(round(value * 65536) for value in values))


def _xyz(*values: float) -> bytes:
    return b"XYZ " + bytes(4) + _fixed(*values)


def _icc(device: bytes, space: bytes, connection: bytes, name: str, tags: Mapping[bytes, bytes]) -> bytes:
    text = name.encode("utf-16-be")
    description = b"mluc" + bytes(4) + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(text), 28) + text
    everything = {b"desc": description, b"wtpt": _xyz(0.9642, 1.0, 0.8249), **tags}
    index, body = b"", b""
    start = 128 + 4 + 12 * len(everything)
    for tag, value in everything.items():
        index += struct.pack(">4sII", tag, start + len(body), len(value))
        body += value + bytes(-len(value) % 4)
    header = struct.pack(
        ">I4sI4s4s4s12s4s", start + len(body), b"test", 0x04200000, device, space, connection, b"", b"acsp"
    )
    header += bytes(68 - len(header)) + _fixed(0.9642, 1.0, 0.8249)
    return header.ljust(128, b"\0") + struct.pack(">I", len(everything)) + index + body
