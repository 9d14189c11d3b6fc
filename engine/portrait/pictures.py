"""Picture bytes -> one upright BGRA picture, whatever the format; or one clear line why not.

Knows nothing of faces. The first frame of an animation, colours in sRGB, see-through parts laid
over a calm background. Sizes are read from the header and limited before anything is decoded.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
import zlib
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from engine.errors import EngineError, first_line
from engine.portrait.picture_colours import flattened, to_8_bit

MAX_BYTES = 60 * 1024 * 1024  # a picture travels in one control message of at most 64 MiB
MAX_PIXELS = 64_000_000
MIN_SIDE = 64
WORKING_PIXELS = 13_000_000  # larger pictures are halved: the canvas has 0.77 million

# Only these are opened: other plug-ins of Pillow start programs (EPS) or read further files.
FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "GIF", "BMP", "TIFF", "JPEG2000", "PPM", "TGA")
# What Pillow's decoders raise on damaged files, besides OSError (found by mutating files).
DAMAGE = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, AttributeError,
          EOFError, OverflowError, RuntimeError, struct.error, zlib.error)  # fmt: skip
SAVE_AS = "save it as JPEG, PNG or WebP"
# First bytes (or first bytes after four of length) of what people drop by mistake.
KNOWN_OTHERS = (
    (b"ftypheic", "a HEIC picture"), (b"ftypheix", "a HEIC picture"),
    (b"ftypmif1", "a HEIC picture"), (b"ftyp", "a video"), (b"\x1a\x45\xdf\xa3", "a video"),
    (b"%PDF", "a PDF"), (b"<svg", "an SVG"),
    (b"<?xml", "an SVG"), (b"8BPS", "a Photoshop file"), (b"%!PS", "a PostScript file"),
    (b"RIFF", "a sound or video"), (b"ID3", "a sound"), (b"PK\x03\x04", "a zip file"),
)  # fmt: skip
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = (TURNS[5], TURNS[6], TURNS[7], TURNS[8])
ORIENTATION = 0x0112


@dataclass(frozen=True, slots=True)
class Picture:
    """`pixels` [h, w, 4] uint8 BGRA, alpha 255, upright. `width` and `height` are the upright
    picture's own size; `scale` = working px per own px: 1, or 1/2, 1/3 .. for the largest ones."""

    pixels: np.ndarray
    width: int
    height: int
    scale: float = 1.0
    warnings: tuple[str, ...] = ()


def read_picture(data: bytes) -> Picture:
    """Decode picture bytes. Raises EngineError("bad_picture") with one line."""
    if not data:
        raise EngineError("bad_picture", "the picture's file is empty", "choose another file")
    if len(data) > MAX_BYTES:
        size = f"{len(data) / 1e6:.0f} MB, more than the {MAX_BYTES / 1e6:.0f} MB allowed"
        raise EngineError("bad_picture", f"the picture's file has {size}", "save it smaller")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's notes on odd files; sizes are checked below
        try:
            return _decode(_open(data))
        except MemoryError as error:
            raise EngineError(
                "out_of_memory", "not enough memory for this picture", "save it smaller"
            ) from error
        except DAMAGE as error:
            raise EngineError(
                "bad_picture",
                f"the picture's file is damaged or cut short ({first_line(error)[:80]})",
                "open it in a picture editor and save it again, or choose another",
            ) from error


def _open(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_large("more than 170") from error
    except Image.UnidentifiedImageError as error:
        head = data[:64].lstrip().removeprefix(b"\xef\xbb\xbf")
        for mark, what in KNOWN_OTHERS:
            if head.startswith(mark) or head[4:].startswith(mark):
                message = f"this is {what}, not a picture that can be read"
                raise EngineError("bad_picture", message, SAVE_AS) from error
        message = "this is not a picture that can be read"
        raise EngineError("bad_picture", message, SAVE_AS) from error


def _decode(image: Image.Image) -> Picture:
    _check_size(*image.size)
    width, height = image.size
    notes = _page_notes(image)
    divisor = _divisor(width, height)
    image.draft(None, (width // divisor, height // divisor))  # JPEG decodes itself smaller
    image.load()
    turn = TURNS.get(_orientation(image))
    profile = _profile(image)
    eight_bit = to_8_bit(image)
    still = _divisor(*image.size)
    flat, see_through = flattened(eight_bit.reduce(still) if still > 1 else eight_bit, profile)
    if see_through:
        notes.append("parts of the picture are see-through: a calm grey was put behind them")
    if turn is not None:
        flat = flat.transpose(turn)
        if turn in SIDEWAYS:
            width, height = height, width
    bgra = cv2.cvtColor(np.asarray(flat), cv2.COLOR_RGB2BGRA)
    return Picture(bgra, width, height, bgra.shape[1] / width, tuple(notes))


def _divisor(width: int, height: int) -> int:
    """By how much both sides are divided to come under WORKING_PIXELS."""
    return max(1, math.ceil(math.sqrt(width * height / WORKING_PIXELS)))


def _too_large(megapixels: str) -> EngineError:
    limit = f"{MAX_PIXELS / 1e6:.0f} are the limit"
    message = f"the picture is too large ({megapixels} megapixels; {limit})"
    return EngineError("bad_picture", message, "save it smaller")


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_large(f"{width}x{height} px, {width * height / 1e6:.0f}")
    if min(width, height) < MIN_SIDE:
        raise EngineError(
            "bad_picture",
            f"the picture has {width}x{height} px; at least {MIN_SIDE} px a side are needed",
            "choose a larger one, best over 700 px wide",
        )


def _page_notes(image: Image.Image) -> list[str]:
    """Files of several pictures: only the first is used. MPO holds previews: no note."""
    if image.format == "MPO" or getattr(image, "n_frames", 1) <= 1:
        return []
    what = "page" if image.format == "TIFF" else "picture of the animation"
    return [f"only the first {what} is used"]


def _orientation(image: Image.Image) -> int:
    """EXIF orientation 1..8; 1 where the tag is missing, broken or out of range."""
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except DAMAGE:
        return 1  # the pixels are good: a broken note about them is no reason to refuse
    return value if isinstance(value, int) else 1


def _profile(image: Image.Image) -> bytes:
    profile = image.info.get("icc_profile")
    return profile if isinstance(profile, bytes) else b""
