"""Every kind of file that a user may bring, against pixels known beforehand."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, ImageOps

from healbench import images
from healbench.errors import ImageError
from healbench.images import IMAGE_SUFFIXES, load_picture, resize_long_side
from healbench.types import Picture
from tests import image_files as files

PHOTO = Path(__file__).parent / "data" / "images" / "coffee.jpg"
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)

Load = Callable[..., Picture]
Refuse = Callable[..., ImageError]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads bytes as a file of a given name."""

    def load_bytes(data: bytes, name: str = "picture", **options: Any) -> Picture:
        path = tmp_path / name
        path.write_bytes(data)
        picture = load_picture(path, **options)
        assert picture.rgb.dtype == np.uint8
        assert picture.rgb.ndim == 3 and picture.rgb.shape[2] == 3
        assert picture.rgb.flags["C_CONTIGUOUS"]
        assert picture.path == path
        assert picture.sha256 == hashlib.sha256(data).hexdigest()
        return picture

    return load_bytes


@pytest.fixture
def refuse(load: Load) -> Refuse:
    """The error for bytes that are no picture."""

    def error_of(data: bytes, name: str = "picture.jpg") -> ImageError:
        with pytest.raises(ImageError) as caught:
            load(data, name)
        assert str(caught.value) == f"{caught.value.path}: {caught.value.reason}"
        assert caught.value.path.name == name
        return caught.value

    return error_of


def colours(picture: Picture) -> set[tuple[int, ...]]:
    return {tuple(int(channel) for channel in pixel) for pixel in picture.rgb.reshape(-1, 3)}


def near(picture: Picture, colour: tuple[int, int, int], within: int = 2) -> bool:
    return int(np.abs(picture.rgb.astype(int) - colour).max()) <= within


def rgbw() -> Image.Image:
    """Red, green over blue, white; then a grey column, so that no two orientations look alike."""
    rows = [[RED, GREEN, (9, 9, 9)], [BLUE, WHITE, (99, 99, 99)]]
    return Image.fromarray(np.array(rows, np.uint8))


def noise(size: int = 40) -> Image.Image:
    return Image.fromarray(np.random.default_rng(5).integers(0, 256, (size, size, 3), np.uint8))


# A plain picture


def test_a_real_photo_is_what_pillow_reads() -> None:
    picture = load_picture(PHOTO)
    with Image.open(PHOTO) as im:
        assert np.array_equal(picture.rgb, np.asarray(im))
    assert picture.rgb.shape == (320, 480, 3)
    assert picture.sha256 == hashlib.sha256(PHOTO.read_bytes()).hexdigest()
    assert picture.notes == ()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("PPM", {}),
        ("GIF", {}),
        ("WEBP", {"lossless": True}),
    ],
)
def test_lossless_kinds_keep_every_pixel(load: Load, kind: str, options: dict[str, Any]) -> None:
    picture = load(files.encode(rgbw(), kind, **options))
    assert np.array_equal(picture.rgb, np.asarray(rgbw()))
    assert picture.notes == ()


@pytest.mark.parametrize(("kind", "options"), [("JPEG", {"quality": 95}), ("AVIF", {"quality": 95}), ("WEBP", {})])
def test_lossy_kinds_keep_the_colour(load: Load, kind: str, options: dict[str, Any]) -> None:
    assert near(load(files.encode(Image.new("RGB", (32, 24), (200, 100, 50)), kind, **options)), (200, 100, 50), 6)


def test_heic_is_read_when_its_extra_is_there(load: Load) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    out = io.BytesIO()
    pillow_heif.from_pillow(Image.new("RGB", (64, 48), (200, 100, 50))).save(out, quality=95)
    before = dict(Image.OPEN)
    picture = load(out.getvalue(), "phone.heic")
    assert picture.rgb.shape == (48, 64, 3)
    assert near(picture, (200, 100, 50), 6)
    assert dict(Image.OPEN) == before  # nothing was registered in Pillow


def test_the_main_picture_of_a_heic_is_upright(load: Load) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    left_red = Image.new("RGB", (64, 32), "blue")
    left_red.paste((255, 0, 0), (0, 0, 32, 32))
    heif = pillow_heif.from_pillow(Image.new("RGB", (64, 32), "lime"))
    heif.add_from_pillow(left_red)
    heif[1].info["exif"] = files.exif(6)
    out = io.BytesIO()
    heif.save(out, quality=95, primary_index=1)
    picture = load(out.getvalue())
    assert picture.rgb.shape == (64, 32, 3)
    assert np.abs(picture.rgb[8, 16].astype(int) - RED).max() < 10
    assert np.abs(picture.rgb[56, 16].astype(int) - BLUE).max() < 10
    assert picture.notes[-1] == "only the main one of its pictures is used"


def test_heic_without_its_extra_says_how_to_get_it(tmp_path: Path) -> None:
    path = tmp_path / "phone.heic"
    path.write_bytes(struct.pack(">I", 24) + b"ftypheic\0\0\0\0mif1heic" + bytes(100))
    code = (
        "import sys, pathlib; sys.modules['pillow_heif'] = None\n"
        "from healbench.images import load_picture; from healbench.errors import ImageError\n"
        "try: load_picture(pathlib.Path(sys.argv[1]))\n"
        "except ImageError as error: print(error.code, error.reason)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout == 'image_unreadable HEIC needs: pip install "healbench[heic]"\n'


def test_avif_is_told_from_heic_by_its_brands_in_any_order(load: Load) -> None:
    data = files.encode(noise(), "AVIF")
    assert data[8:12] == b"avif" and b"mif1" in data[16:32]
    other = data[:8] + b"mif1" + data[12:]
    assert np.array_equal(load(other).rgb, load(data).rgb)


def test_the_bytes_say_what_it_is_not_the_name(load: Load) -> None:
    assert np.array_equal(load(files.encode(rgbw(), "PNG"), "really-a-png.jpg").rgb, np.asarray(rgbw()))


def test_a_name_beyond_ascii(load: Load) -> None:
    assert load(files.encode(rgbw(), "PNG"), "Grüße 静かな海 🌊.png").rgb.shape == (2, 3, 3)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "PPM"])
def test_a_single_pixel(load: Load, kind: str) -> None:
    assert load(files.encode(Image.new("RGB", (1, 1), RED), kind)).rgb.tolist() == [[[255, 0, 0]]]


# Orientation


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG", "AVIF"])
def test_exif_orientation_is_applied_once(load: Load, kind: str, orientation: int) -> None:
    data = files.encode(noise().crop((0, 0, 40, 24)), kind, exif=files.exif(orientation))
    with Image.open(io.BytesIO(data)) as im:
        expected = np.asarray(ImageOps.exif_transpose(im).convert("RGB"))
    picture = load(data)
    assert np.array_equal(picture.rgb, expected)
    assert picture.notes == (("rotated by its EXIF orientation",) if orientation > 1 else ())


def test_orientation_6_and_8_are_quarter_turns(load: Load) -> None:
    pixels = np.asarray(rgbw())
    assert np.array_equal(load(files.encode(rgbw(), "PNG", exif=files.exif(6))).rgb, np.rot90(pixels, -1))
    assert np.array_equal(load(files.encode(rgbw(), "PNG", exif=files.exif(8))).rgb, np.rot90(pixels, 1))
    assert np.array_equal(load(files.encode(rgbw(), "PNG", exif=files.exif(2))).rgb, np.fliplr(pixels))


@pytest.mark.parametrize("block", [b"Exif\0\0MM\0*\0\0\0\x08\0\x05\x01", b"Exif\0\0nonsense", files.exif(6)[:-9]])
def test_a_broken_exif_block_does_not_cost_the_picture(load: Load, block: bytes) -> None:
    data = files.encode(noise(), "JPEG", quality=95, exif=block)
    with warnings.catch_warnings(), Image.open(io.BytesIO(files.encode(noise(), "JPEG", quality=95))) as im:
        assert np.array_equal(load(data).rgb, np.asarray(im))


def test_an_orientation_that_does_not_exist_is_ignored(load: Load) -> None:
    picture = load(files.encode(rgbw(), "PNG", exif=files.exif(77)))
    assert np.array_equal(picture.rgb, np.asarray(rgbw()))
    assert picture.notes == ()


# More than eight bits


def ramp() -> np.ndarray[Any, np.dtype[np.uint16]]:
    return np.linspace(0, 65535, 256 * 16).astype(np.uint16).reshape(16, 256)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_16_bit_grey_is_scaled_not_clipped(load: Load, kind: str) -> None:
    picture = load(files.encode(Image.fromarray(ramp()), kind))
    assert np.array_equal(picture.rgb[:, :, 0], np.rint(ramp() / 257).astype(np.uint8))
    assert picture.rgb.mean() == pytest.approx(127.5, abs=0.1)
    assert picture.notes == ("its grey values from 0 to 65535 were scaled to 8 bits",)


def test_16_bit_grey_of_a_big_endian_tiff(load: Load) -> None:
    picture = load(files.encode(Image.fromarray(ramp().astype(">u2")), "TIFF"))
    assert np.array_equal(picture.rgb[:, :, 1], np.rint(ramp() / 257).astype(np.uint8))


def test_a_dark_16_bit_picture_stays_dark(load: Load) -> None:
    for kind in ("PNG", "PPM", "TIFF"):
        assert colours(load(files.encode(Image.fromarray(np.full((4, 4), 257 * 3, np.uint16)), kind))) == {(3, 3, 3)}


def test_16_bit_white_is_zero_is_inverted(load: Load) -> None:
    data = files.encode(Image.fromarray(np.array([[0, 65535]], np.uint16)), "TIFF", tiffinfo={262: 0})
    with Image.open(io.BytesIO(data)) as im:
        assert im.tag_v2[262] == 0  # type: ignore[attr-defined]
    assert load(data).rgb[0, :, 0].tolist() == [255, 0]


def test_12_bit_grey(load: Load) -> None:
    picture = load(files.tiff_12_bits(b"\xff\xf8\x00"))  # 4095 and 2048
    assert picture.rgb[0, :, 0].tolist() == [255, 128]
    assert picture.notes == ("its grey values from 0 to 4095 were scaled to 8 bits",)


def test_32_bit_grey_beyond_16_bits_is_scaled_by_its_range(load: Load) -> None:
    picture = load(files.encode(Image.fromarray(np.array([[0, 500_000, 1_000_000]], np.int32)), "TIFF"))
    assert picture.rgb[0, :, 0].tolist() == [0, 128, 255]
    assert picture.notes == ("its grey values from 0 to 1e+06 were scaled to 8 bits",)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.25, 1.0], [0, 64, 255]),  # light from 0 to 1
        ([0.0, 0.25, 0.5], [0, 64, 128]),  # a dark one is not stretched
        ([0.0, 51.0, 200.0], [0, 51, 200]),  # whole numbers: 8 bits
        ([0.0, 771.0, 25700.0], [0, 3, 100]),  # whole numbers: 16 bits
        ([0.0, 1.1, 2.2], [0, 128, 255]),  # beyond 1: by its own range
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([0.0, 1e38, 3e38], [0, 85, 255]),
        ([-3e38, 0.0, 3e38], [0, 128, 255]),
        ([-7.0, -7.0, -7.0], [0, 0, 0]),
    ],
)
def test_floats_are_scaled(load: Load, values: list[float], expected: list[int]) -> None:
    for data in (files.pfm([values]), files.encode(Image.fromarray(np.array([values], np.float32)), "TIFF")):
        assert np.abs(load(data).rgb[0, :, 0].astype(int) - expected).max() <= 1


def test_rows_of_a_float_map_are_not_upside_down(load: Load) -> None:
    assert load(files.pfm([[1.0], [0.0]])).rgb[:, 0, 0].tolist() == [255, 0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_is_no_pixel(refuse: Refuse, value: float) -> None:
    assert "NaN or infinite" in refuse(files.pfm([[0.0, value]])).reason


def test_16_bit_colour_png(load: Load) -> None:
    rows = struct.pack(">6H", 65535, 0x8000, 0, 0, 0x1234, 65535)
    assert load(files.png(2, 1, 16, 2, rows)).rgb.tolist() == [[[255, 128, 0], [0, 0x12, 255]]]


@pytest.mark.parametrize(("depth", "row"), [(1, b"\x40"), (2, b"\x30"), (4, b"\x0f")])
def test_grey_of_few_bits(load: Load, depth: int, row: bytes) -> None:
    assert load(files.png(2, 1, depth, 0, row)).rgb[0, :, 0].tolist() == [0, 255]


# Transparency


def test_transparent_red_is_the_background(load: Load) -> None:
    data = files.encode(Image.new("RGBA", (3, 2), (255, 0, 0, 0)), "PNG")
    picture = load(data)
    assert colours(picture) == {WHITE}
    assert picture.notes == ("its transparent parts are shown over white",)
    picture = load(data, background=(10, 20, 30))
    assert colours(picture) == {(10, 20, 30)}
    assert picture.notes == ("its transparent parts are shown over rgb(10, 20, 30)",)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "AVIF"])
def test_half_transparent_red_is_pink(load: Load, kind: str) -> None:
    best: dict[str, dict[str, Any]] = {"WEBP": {"lossless": True}, "AVIF": {"quality": 100, "subsampling": "4:4:4"}}
    data = files.encode(Image.new("RGBA", (8, 8), (255, 0, 0, 128)), kind, **best.get(kind, {}))
    assert near(load(data), (255, 127, 127), 3)


def test_an_opaque_alpha_channel_is_not_worth_a_note(load: Load) -> None:
    picture = load(files.encode(Image.new("RGBA", (3, 2), (*RED, 255)), "PNG"))
    assert colours(picture) == {RED}
    assert picture.notes == ()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_grey_with_alpha(load: Load, kind: str) -> None:
    im = Image.new("LA", (2, 1), (0, 255))
    im.putpixel((1, 0), (0, 51))
    assert load(files.encode(im, kind)).rgb[0, :, 2].tolist() == [0, 204]


@pytest.mark.parametrize("transparency", [1, b"\xff\x00\x80"])
def test_palette_with_transparency(load: Load, transparency: int | bytes) -> None:
    im = Image.new("P", (3, 1))
    im.putpalette([*RED, *GREEN, *BLUE])
    im.putdata([0, 1, 2])
    picture = load(files.encode(im, "PNG", transparency=transparency))
    blue = BLUE if isinstance(transparency, int) else (127, 127, 255)
    assert [tuple(pixel) for pixel in picture.rgb[0].tolist()] == [RED, WHITE, blue]


def test_transparent_gif(load: Load) -> None:
    im = Image.new("P", (2, 1))
    im.putpalette([*RED, *GREEN])
    im.putdata([0, 1])
    picture = load(files.encode(im, "GIF", transparency=0), background=BLUE)
    assert [tuple(pixel) for pixel in picture.rgb[0].tolist()] == [BLUE, GREEN]


@pytest.mark.parametrize(
    ("depth", "colour_type", "rows", "transparent", "expected"),
    [
        (8, 2, bytes((*RED, *GREEN)), (255, 0, 0), [WHITE, GREEN]),
        (16, 2, struct.pack(">6H", 65535, 0, 0, 0, 65535, 0), (65535, 0, 0), [WHITE, GREEN]),
        (8, 0, bytes((7, 9)), (7,), [WHITE, (9, 9, 9)]),
        (16, 0, struct.pack(">2H", 700, 257 * 9), (700,), [WHITE, (9, 9, 9)]),
        (4, 0, b"\x35", (3,), [WHITE, (85, 85, 85)]),
        (2, 0, b"\x60", (1,), [WHITE, (170, 170, 170)]),
        (1, 0, b"\x80", (0,), [WHITE, WHITE]),
        (1, 0, b"\x40", (0,), [WHITE, WHITE]),
        (1, 0, b"\x40", (1,), [(0, 0, 0), WHITE]),
    ],
)
def test_one_transparent_colour(
    load: Load,
    depth: int,
    colour_type: int,
    rows: bytes,
    transparent: tuple[int, ...],
    expected: list[tuple[int, int, int]],
) -> None:
    chunk = (b"tRNS", struct.pack(f">{len(transparent)}H", *transparent))
    picture = load(files.png(2, 1, depth, colour_type, rows, chunk))
    assert [tuple(pixel) for pixel in picture.rgb[0].tolist()] == expected


@pytest.mark.parametrize("background", [(0, 0, 256), (-1, 0, 0), (0, 0)])
def test_a_background_that_is_no_colour(background: Any) -> None:
    with pytest.raises(ValueError, match="three numbers from 0 to 255"):
        load_picture(PHOTO, background=background)


# Colour


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_display_p3_red_is_srgb_red(load: Load, kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    im = Image.new("RGB", (4, 4), (234, 51, 34))
    picture = load(files.encode(im, kind, icc_profile=files.display_p3(), **options))
    assert near(picture, RED)
    assert picture.notes == ("its colours were converted from the ICC profile 'Display P3' to sRGB",)


def test_a_profile_is_applied_under_alpha_not_to_the_background(load: Load) -> None:
    im = Image.new("RGBA", (2, 1), (234, 51, 34, 0))
    im.putpixel((0, 0), (234, 51, 34, 255))
    picture = load(files.encode(im, "PNG", icc_profile=files.display_p3()), background=(234, 51, 34))
    assert np.abs(picture.rgb.astype(int) - [[RED, (234, 51, 34)]]).max() <= 2


def test_a_profile_of_a_palette(load: Load) -> None:
    im = Image.new("P", (2, 1))
    im.putpalette([234, 51, 34])
    assert near(load(files.encode(im, "PNG", icc_profile=files.display_p3())), RED)


def test_a_profile_for_grey(load: Load) -> None:
    linear = 0.5**2.4  # about the light of sRGB value 0.5
    expected = round(255 * (1.055 * (round(255 * linear) / 255) ** (1 / 2.4) - 0.055))
    data = files.encode(Image.new("L", (2, 2), round(255 * linear)), "PNG", icc_profile=files.linear_grey())
    assert near(load(data), (expected, expected, expected))


def test_an_srgb_profile_changes_next_to_nothing(load: Load) -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    picture = load(files.encode(noise(), "PNG", icc_profile=profile))
    assert np.abs(picture.rgb.astype(int) - np.asarray(noise())).max() <= 1
    assert picture.notes == ()


@pytest.mark.parametrize(
    "profile",
    [b"nonsense", b"\0" * 200, files.display_p3()[:150], files.cmyk_inks((100, 0, 0), {}), files.linear_grey()],
)
def test_a_profile_that_does_not_fit_is_ignored(load: Load, profile: bytes) -> None:
    picture = load(files.encode(rgbw(), "PNG", icc_profile=profile))
    assert np.array_equal(picture.rgb, np.asarray(rgbw()))
    assert picture.notes == ("its ICC profile is broken or does not fit its colours, and was ignored",)


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_without_a_profile(load: Load, kind: str) -> None:
    options = {"quality": 100} if kind == "JPEG" else {}
    for ink, colour in (((0, 0, 0, 0), WHITE), ((0, 255, 255, 0), RED), ((0, 0, 0, 255), (0, 0, 0))):
        picture = load(files.encode(Image.new("CMYK", (16, 16), ink), kind, **options))
        assert near(picture, colour, 3)
        assert picture.notes == ("its CMYK colours were converted without an ICC profile",)


def test_a_cmyk_jpeg_has_adobe_marker_and_inverted_inks() -> None:
    assert b"Adobe" in files.encode(Image.new("CMYK", (16, 16)), "JPEG")  # what the test above relies on


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_by_its_profile(load: Load, kind: str) -> None:
    # Lab (54, 81, 70) is sRGB red: here it is what magenta ink looks like, unlike in Pillow's own conversion.
    profile = files.cmyk_inks((100, 0, 0), {4: (54, 81, 70), 1: (0, 0, 0)})
    options = {"quality": 100} if kind == "JPEG" else {}
    data = files.encode(Image.new("CMYK", (16, 16), (0, 255, 0, 0)), kind, icc_profile=profile, **options)
    picture = load(data)
    assert near(picture, RED, 4)
    assert picture.notes == ("its colours were converted from the ICC profile 'Test inks' to sRGB",)


def test_the_blackest_ink_is_black(load: Load) -> None:
    profile = files.cmyk_inks((100, 0, 0), dict.fromkeys(range(1, 16), (12, 0, 0)))
    data = files.encode(Image.new("CMYK", (4, 4), (255, 255, 255, 255)), "TIFF", icc_profile=profile)
    assert near(load(data), (0, 0, 0), 4)


def test_a_lab_tiff(load: Load) -> None:
    assert near(load(files.encode(Image.new("LAB", (2, 2), (138, 128 + 81, 128 + 70)), "TIFF")), RED, 6)


# Animations and pages


@pytest.mark.parametrize(("kind", "options"), [("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {}), ("AVIF", {})])
def test_an_animation_is_its_first_frame(load: Load, kind: str, options: dict[str, Any]) -> None:
    picture = load(files.animation(kind, ["red", "lime", "blue", "white"], **options))
    assert picture.rgb.shape == (6, 8, 3)
    assert near(picture, RED, 4)
    assert picture.notes == ("only the first frame of its animation is used",)


def test_a_tiff_is_its_first_page(load: Load) -> None:
    picture = load(files.animation("TIFF", ["red", "lime"]))
    assert colours(picture) == {RED}
    assert picture.notes == ("only the first of its pages is used",)


def test_a_gif_whose_second_frame_is_cut_off(load: Load) -> None:
    frames = [noise(), Image.fromarray(255 - np.asarray(noise()))]
    data = files.encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    whole = load(data)
    assert np.array_equal(load(data[: len(data) * 3 // 4]).rgb, whole.rgb)


# What is refused


def test_a_missing_file(tmp_path: Path) -> None:
    for path in (tmp_path / "no.png", tmp_path / "no" / "no.png", PHOTO / "inside.png"):
        with pytest.raises(ImageError) as caught:
            load_picture(path)
        assert (caught.value.code, caught.value.reason) == ("missing", "no such file")


def test_paths_that_cannot_be_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, reason in (
        (".", "a folder, not a picture"),
        ("pipe", "a pipe or a device, not a picture"),
        ("loop", "cannot be read (Too many levels of symbolic links)"),
        ("x" * 300, "cannot be read (File name too long)"),
        ("null\0byte", "cannot be read (embedded null byte)"),
    ):
        with pytest.raises(ImageError) as caught:
            load_picture(tmp_path / name)
        assert (caught.value.code, caught.value.reason) == ("image_unreadable", reason)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.png"
    path.write_bytes(files.encode(rgbw(), "PNG"))
    path.chmod(0)
    root = os.geteuid() == 0  # root reads everything, so it becomes nobody for a moment
    try:
        if root:
            os.seteuid(65534)
        with pytest.raises(ImageError) as caught:
            load_picture(path)
    finally:
        if root:
            os.seteuid(0)
    assert (caught.value.code, caught.value.reason) == ("image_unreadable", "cannot be read (Permission denied)")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "an empty file (0 bytes)"),
        (b"Just some notes about calm pictures.\n", "text, not a picture"),
        ("Grüße, ruhig und schön".encode(), "text, not a picture"),
        (
            b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
            "SVG",
        ),
        (b"\xef\xbb\xbf<SVG></SVG>", "SVG"),
        (b"\n<!DOCTYPE html><html><body>404</body></html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "PDF"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "video"),
        (bytes(range(256)), "not a picture of a known kind"),
        (b"BM is how this sentence starts.", "text, not a picture"),
        (b"P5", "text, not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "text, not a picture"),
    ],
)
def test_what_is_no_picture_is_named(refuse: Refuse, data: bytes, reason: str) -> None:
    error = refuse(data)
    assert error.code == "image_unreadable"
    assert reason in error.reason


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("GIF", {}),
        ("BMP", {}),
        ("PPM", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("AVIF", {}),
    ],
)
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_no_picture(refuse: Refuse, kind: str, options: dict[str, Any], part: float) -> None:
    data = files.encode(noise(100), kind, **options)
    error = refuse(data[: int(len(data) * part)])
    assert error.code == "image_unreadable"
    assert error.reason.startswith(("truncated: only part of the picture is there", "a damaged"))
    assert error.reason.endswith("copy or download it again")
    if kind in ("JPEG", "PNG"):
        assert error.reason == "truncated: only part of the picture is there; copy or download it again"


def test_half_a_photo_is_no_picture_even_where_pillow_was_told_to_fill_it_up(
    refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    data = PHOTO.read_bytes()
    assert refuse(data[: len(data) // 2]).reason.startswith("truncated")
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


@pytest.mark.parametrize(("width", "height", "at_most"), [(30_000, 30_000, 120_000), (12_000, 10_000, 20_000)])
def test_a_decompression_bomb_is_refused_by_its_header(refuse: Refuse, width: int, height: int, at_most: int) -> None:
    data = files.png_bomb(width, height)
    assert len(data) < at_most
    began, limit = time.perf_counter(), Image.MAX_IMAGE_PIXELS
    error = refuse(data, "bomb.png")
    assert time.perf_counter() - began < 0.5
    assert error.code == "too_large"
    assert error.reason == f"{width} x {height} pixels, more than 50 megapixels; make it smaller first"
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("frame", [(60_000, 60_000), (1, 1)])
def test_a_gif_of_a_huge_screen(refuse: Refuse, frame: tuple[int, int]) -> None:
    data = bytearray(files.encode(Image.new("L", (1, 1)), "GIF"))
    at = data.index(b",")
    struct.pack_into("<HH", data, 6 if frame == (1, 1) else at + 5, 60_000, 60_000)
    assert refuse(bytes(data)).code == "too_large"


def test_49_megapixels_are_not_too_many(load: Load) -> None:
    assert load(files.png_bomb(7_000, 7_000)).rgb.shape == (7_000, 7_000, 3)


def test_a_file_of_too_many_bytes(refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_BYTES", 1_000_000)
    error = refuse(bytes(1_000_001))
    assert (error.code, error.reason) == ("too_large", "more than 1 MB; make it smaller first")


# Whatever the bytes


def seeds() -> dict[str, bytes]:
    small = noise(24)
    alpha = small.convert("RGBA")
    alpha.putalpha(128)
    out = {
        "jpeg": files.encode(small, "JPEG", exif=files.exif(6), icc_profile=files.display_p3()),
        "cmyk": files.encode(small.convert("CMYK"), "JPEG", icc_profile=files.cmyk_inks((100, 0, 0), {})),
        "png": files.encode(alpha, "PNG", exif=files.exif(3), icc_profile=files.display_p3()),
        "palette": files.encode(small.convert("P"), "PNG", transparency=b"\0\x80\xff"),
        "trns": files.png(2, 2, 16, 0, bytes(8), (b"tRNS", b"\0\0")),
        "apng": files.animation("PNG", ["red", "lime"]),
        "gif": files.animation("GIF", ["red", "lime"]),
        "webp": files.encode(alpha, "WEBP", exif=files.exif(6)),
        "webp-animation": files.animation("WEBP", ["red", "lime"]),
        "avif": files.encode(alpha, "AVIF", exif=files.exif(6)),
        "bmp": files.encode(small, "BMP"),
        "tiff": files.encode(small, "TIFF", exif=files.exif(6), icc_profile=files.display_p3()),
        "tiff-lzw": files.encode(alpha, "TIFF", compression="tiff_lzw"),
        "tiff-jpeg": files.encode(small, "TIFF", compression="jpeg"),
        "tiff-float": files.encode(small.convert("F"), "TIFF"),
        "ppm": files.encode(small, "PPM"),
        "plain-ppm": b"P3 2 2 255 " + b"1 2 3 " * 4,
        "pgm-16": files.encode(Image.fromarray(ramp()[:4, :4]), "PPM"),
        "pfm": files.pfm([[0.1, 0.9], [2.0, -1.0]]),
    }
    try:
        import pillow_heif
    except ImportError:
        return out
    heic = io.BytesIO()
    pillow_heif.from_pillow(small).save(heic)
    return {**out, "heic": heic.getvalue()}


SEEDS = seeds()


def opens_or_is_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.jpg"
        path.write_bytes(data)
        try:
            picture = load_picture(path)
        except ImageError as error:
            assert error.reason and "\n" not in error.reason
        else:
            assert picture.rgb.dtype == np.uint8 and picture.rgb.size


@pytest.mark.parametrize("name", SEEDS)
def test_the_seeds_of_the_fuzzer_are_pictures(load: Load, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert load(SEEDS[name]).rgb.size
    assert capfd.readouterr() == ("", "")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", *(seed[:30] for seed in SEEDS.values())]))
def test_random_bytes(tail: bytes, head: bytes) -> None:
    opens_or_is_refused(head + tail)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SEEDS)), st.floats(0, 1))
def test_truncations(name: str, part: float) -> None:
    opens_or_is_refused(SEEDS[name][: int(len(SEEDS[name]) * part)])


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(sorted(SEEDS)),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8),
    st.booleans(),
)
def test_damaged_bytes(name: str, changes: list[tuple[float, int]], in_header: bool) -> None:
    data = bytearray(SEEDS[name])
    reach = min(len(data), 80) if in_header else len(data)
    for where, value in changes:
        data[int(where * reach)] ^= value
    opens_or_is_refused(bytes(data))


# Threads share Pillow's settings


def test_threads_see_the_same_pixels_and_leave_the_settings_as_they_were(tmp_path: Path) -> None:
    broken_exif = tmp_path / "broken.jpg"
    broken_exif.write_bytes(files.encode(noise(), "JPEG", exif=files.exif(6)[:-9]))
    filters, results, errors = list(warnings.filters), [], []

    def work() -> None:
        try:
            for _ in range(15):
                load_picture(broken_exif)
                results.append(load_picture(PHOTO).rgb.sum())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(results) == 120 and len(set(results)) == 1
    assert list(warnings.filters) == filters
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


# Helpers


@pytest.mark.parametrize(
    ("shape", "pixels", "expected"),
    [
        ((320, 480), 240, (160, 240)),
        ((480, 320), 240, (240, 160)),
        ((1000, 3), 10, (10, 1)),
        ((50, 50), 1, (1, 1)),
        ((333, 500), 100, (67, 100)),
    ],
)
def test_the_long_side_shrinks(shape: tuple[int, int], pixels: int, expected: tuple[int, int]) -> None:
    small = resize_long_side(np.full((*shape, 3), 77, np.uint8), pixels)
    assert small.shape == (*expected, 3)
    assert small.dtype == np.uint8 and small.flags["C_CONTIGUOUS"]
    assert (small == 77).all()


def test_a_small_picture_is_not_enlarged() -> None:
    rgb = np.asarray(rgbw())
    assert resize_long_side(rgb, 3) is rgb
    assert resize_long_side(rgb, 1000) is rgb


def test_shrinking_averages_instead_of_skipping_pixels() -> None:
    board = np.indices((400, 400)).sum(axis=0) % 2 * 255
    small = resize_long_side(np.repeat(board[:, :, None], 3, axis=2).astype(np.uint8), 50)
    assert np.abs(small.astype(int) - 127).max() <= 2


def test_a_side_of_no_pixels() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        resize_long_side(np.asarray(rgbw()), 0)


def test_the_suffixes_of_a_walk() -> None:
    assert {".jpg", ".jpeg", ".png", ".webp", ".avif", ".gif", ".bmp", ".tif", ".tiff", ".heic"} <= IMAGE_SUFFIXES
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in IMAGE_SUFFIXES)
    assert not {".svg", ".txt", ".pdf", ""} & IMAGE_SUFFIXES
