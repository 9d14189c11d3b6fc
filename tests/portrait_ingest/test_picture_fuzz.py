"""Mutated picture files: read or refused with one line, in bounded time and memory."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.errors import EngineError
from engine.portrait import pictures
from engine.portrait.pictures import read_picture

from .conftest import encoded

KINDS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "JPEG2000", "PPM", "TGA")


def original(kind: str) -> bytes:
    noise = np.random.default_rng(3).integers(0, 255, (12, 15, 3), np.uint8)
    image = Image.fromarray(noise).resize((150, 120), Image.Resampling.BICUBIC)
    if kind in ("JPEG", "PNG", "WEBP"):
        exif = Image.Exif()
        exif[0x112] = 6
        return encoded(image, kind, exif=exif)
    return encoded(image, kind)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut out, put in or cut off; mostly near the head, where the sizes are."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(min(len(out), rng.choice((40, 400, len(out)))))
        kind = rng.randrange(4)
        if kind == 0:
            out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 1:
            out[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff"))
        elif kind == 2:
            del out[at : at + rng.randint(1, 30)]
        else:
            out[at:at] = rng.randbytes(rng.randint(1, 30))
        if not out:
            return b"\0"
    return bytes(out[: rng.randrange(1, len(out) + 1)] if rng.random() < 0.2 else out)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_pictures_are_read_or_refused(kind: str) -> None:
    rng = random.Random(kind)
    data = original(kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = {"read": 0, "refused": 0}
    for _ in range(150):
        try:
            picture = read_picture(mutated(data, rng))
        except EngineError as error:
            assert error.code in ("bad_picture", "out_of_memory")
            assert "\n" not in str(error)
            outcomes["refused"] += 1
        else:
            assert picture.pixels.ndim == 3 and picture.pixels.shape[2] == 4
            assert picture.pixels.shape[0] * picture.pixels.shape[1] <= 1.2 * 13_000_000
            outcomes["read"] += 1
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert outcomes["refused"] > 5, outcomes
    # The largest that may be decoded: 64 million px of 4 bytes, and a copy of them.
    assert grown_mb < 1100, grown_mb


def test_random_bytes_are_refused() -> None:
    rng = random.Random(5)
    heads = [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF0000WEBP", b"II*\0",
             b"BM", b"P6 ", b"\0\0\0\x0cjP  "]  # fmt: skip
    for i in range(400):
        with pytest.raises(EngineError):
            read_picture(heads[i % len(heads)] + rng.randbytes(rng.randint(0, 300)))


def test_no_picture_starts_a_program_or_opens_a_file() -> None:
    """EPS would start Ghostscript: only formats that decode by themselves are allowed."""
    assert not {"EPS", "PS", "WMF", "FITS", "HDF5", "GRIB", "BUFR"} & set(pictures.FORMATS)


def test_a_picture_of_the_largest_size_takes_bounded_memory() -> None:
    """In a process of its own, so that the peak is its own: VmHWM, because Linux hands the peak of
    the process that started it on to ru_maxrss (1,540 MB of the test suite's)."""
    code = (
        "import io\n"
        "from PIL import Image\n"
        "from engine.portrait.pictures import read_picture\n"
        "b = io.BytesIO(); Image.new('L', (8000, 7990), 9).save(b, 'PNG')\n"
        "p = read_picture(b.getvalue())\n"
        "assert p.width == 8000 and p.pixels.shape[1] <= 4000\n"
        "status = open('/proc/self/status').read()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) // 1024)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=root
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 900
