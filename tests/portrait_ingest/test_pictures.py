"""Every kind of picture file: right pixels or one clear line."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

from engine.errors import EngineError
from engine.portrait import pictures
from engine.portrait.pictures import read_picture

from .conftest import encoded

RAMP = np.zeros((80, 100, 3), np.uint8)
RAMP[..., 0] = np.linspace(0, 250, 100)[None]
RAMP[..., 1] = np.linspace(0, 250, 80)[:, None]
RAMP[:20, :30, 2] = 255  # a corner that shows orientation
IMAGE = Image.fromarray(RAMP)


def rgb(data: bytes) -> np.ndarray:
    picture = read_picture(data)
    assert picture.pixels.dtype == np.uint8
    assert (picture.pixels[..., 3] == 255).all()
    return picture.pixels[..., 2::-1].astype(int)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "TGA"])
def test_lossless_formats_give_the_same_pixels(kind: str) -> None:
    assert (rgb(encoded(IMAGE, kind)) == RAMP).all()


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "AVIF", "JPEG2000"])
def test_lossy_formats_are_close(kind: str) -> None:
    options = {"quality": 95} if kind != "JPEG2000" else {}
    assert np.abs(rgb(encoded(IMAGE, kind, **options)) - RAMP).mean() < 6


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_all_exif_orientations_come_out_upright(kind: str, orientation: int) -> None:
    back = {2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}.get(orientation)
    stored = IMAGE.transpose(pictures.TURNS[back]) if back else IMAGE
    if kind == "TIFF":
        data = encoded(stored, kind, tiffinfo={0x112: orientation})
    else:
        exif = Image.Exif()
        exif[0x112] = orientation
        data = encoded(stored, kind, exif=exif, **({"quality": 95} if kind != "PNG" else {}))
    picture = read_picture(data)
    assert (picture.width, picture.height) == (100, 80)
    assert np.abs(picture.pixels[..., 2::-1].astype(int) - RAMP).mean() < 6


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0garbage!",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0MM\0*\0\0\0\x08\xff",
    ],
)
def test_broken_exif_is_no_reason_to_refuse(exif: bytes) -> None:
    assert rgb(encoded(IMAGE, "JPEG", quality=95, exif=exif)).shape == RAMP.shape


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_impossible_orientation_is_ignored(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    assert rgb(encoded(IMAGE, "JPEG", exif=exif)).shape == RAMP.shape


def test_cmyk_jpeg() -> None:
    assert np.abs(rgb(encoded(IMAGE.convert("CMYK"), "JPEG", quality=95)) - RAMP).mean() < 8


def test_palette_and_grey_and_bilevel() -> None:
    assert np.abs(rgb(encoded(IMAGE.quantize(256), "PNG")) - RAMP).mean() < 12
    grey = np.asarray(IMAGE.convert("L")).astype(int)
    assert (rgb(encoded(IMAGE.convert("L"), "PNG")) == grey[..., None]).all()
    assert set(np.unique(rgb(encoded(IMAGE.convert("1"), "PNG")))) == {0, 255}


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("top", [4095, 65535])
def test_sixteen_bit_grey_uses_the_full_range(kind: str, top: int) -> None:
    deep = np.linspace(0, top, 100, dtype=np.uint16)[None].repeat(80, 0)
    out = rgb(encoded(Image.fromarray(deep), kind))
    assert np.abs(out[0, :, 0] - np.linspace(0, 255, 100)).max() <= 1


def test_sixteen_bit_colour_png() -> None:
    out = rgb(sixteen_bit_png(RAMP.astype(np.uint16) * 257))
    assert np.abs(out - RAMP).max() <= 1


def test_float_tiff() -> None:
    values = np.linspace(0, 1, 8000, dtype=np.float32).reshape(80, 100)
    assert rgb(encoded(Image.fromarray(values), "TIFF")).max() == 255


def test_transparency_lies_over_calm_grey_and_is_said() -> None:
    rgba = np.dstack([RAMP, np.full((80, 100), 255, np.uint8)])
    rgba[:, 50:, 3] = 0
    picture = read_picture(encoded(Image.fromarray(rgba), "PNG"))
    assert any("see-through" in note for note in picture.warnings)
    grey = picture.pixels[:, 60:, :3].astype(int)
    assert grey.min() > 100 and grey.max() < 220
    assert (picture.pixels[:, :40, 2::-1] == RAMP[:, :40]).all()
    opaque = np.dstack([RAMP, np.full((80, 100), 255, np.uint8)])
    assert read_picture(encoded(Image.fromarray(opaque), "PNG")).warnings == ()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_animation_gives_its_first_frame_and_a_note(kind: str) -> None:
    second = Image.new("RGB", (100, 80), (0, 0, 255))
    data = encoded(IMAGE, kind, save_all=True, append_images=[second], duration=100)
    picture = read_picture(data)
    assert any("only the first" in note for note in picture.warnings)
    assert np.abs(picture.pixels[..., 2::-1].astype(int) - RAMP).mean() < 12


def test_profile_is_converted_to_srgb_and_a_broken_one_is_ignored() -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    assert (rgb(encoded(IMAGE, "PNG", icc_profile=lab)) == RAMP).all()
    assert (rgb(encoded(IMAGE, "PNG", icc_profile=b"not a profile")) == RAMP).all()


def test_large_pictures_are_halved_but_keep_their_own_size() -> None:
    for kind in ("JPEG", "PNG"):
        picture = read_picture(encoded(Image.new("L", (6000, 4000), 90), kind))
        assert (picture.width, picture.height) == (6000, 4000)
        assert picture.pixels.shape == (2000, 3000, 4)
        assert picture.scale == 0.5


def refused(data: bytes) -> str:
    with pytest.raises(EngineError) as caught:
        read_picture(data)
    assert caught.value.code == "bad_picture"
    line = str(caught.value)
    assert "\n" not in line and "Traceback" not in line and caught.value.hint
    return line


def test_refusals_name_the_value_and_the_limit() -> None:
    assert "empty" in refused(b"")
    assert "63x63" in refused(encoded(Image.new("RGB", (63, 63)), "PNG")) and "64" in refused(
        encoded(Image.new("RGB", (400, 63)), "PNG")
    )
    assert "64" in refused(bomb_png(9000, 9000))
    assert "63 MB allowed" in refused(bytes(pictures.MAX_BYTES + 1))


def test_decompression_bomb_is_refused_from_its_header() -> None:
    assert "too large" in refused(bomb_png(60_000, 60_000))
    assert "too large" in refused(bomb_png(20_000, 9_000))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "video"),
        (b"%PDF-1.7", "PDF"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "sound"),
        (b"PK\x03\x04rest", "zip"),
        (b"hello, I am a text", "not a picture"),
    ],
)
def test_wrong_types_are_called_by_name(data: bytes, what: str) -> None:
    assert what in refused(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"])
def test_a_file_cut_short_is_refused(kind: str) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (80, 100, 3), np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    assert refused(data[: len(data) // 2])


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def bomb_png(width: int, height: int) -> bytes:
    """A header that promises much, and nearly nothing behind it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99))


def sixteen_bit_png(values: np.ndarray) -> bytes:
    height, width, _ = values.shape
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
