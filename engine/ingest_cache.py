"""Prepared characters on disk, one file a content key; a bad or missing entry is simply a miss.

An entry is a SHA-256 and what it was taken of: one MessagePack map. Never pickle, nor NumPy's own
format, whose header is parsed as Python. Knows nothing of how characters are made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from engine.portrait.canvas import Canvas
from engine.protocol.character import Framing
from engine.protocol.messages import FaceFound

KEEP = 40  # entries of 3 MB each; the oldest go
DIGEST = 32  # bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    canvas: Canvas
    face: FaceFound
    automatic: Framing
    warnings: list[str]


class Entry(msgspec.Struct, frozen=True):
    """`pixels` and `landmarks` as raw bytes of the arrays of `Canvas`."""

    face: FaceFound
    automatic: Framing
    warnings: list[str]
    scale: float
    style: str
    pixels: bytes
    landmarks: bytes


def read(folder: Path | None, key: str) -> Prepared | None:
    path = _path(folder, key)
    if path is None:
        return None
    try:
        data = path.read_bytes()
        if hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
            return None
        entry = msgspec.msgpack.decode(data[DIGEST:], type=Entry)
        pixels = np.frombuffer(entry.pixels, np.uint8).reshape(1088, 704, 4).copy()
        landmarks = np.frombuffer(entry.landmarks, np.float32).reshape(478, 3).copy()
        os.utime(path)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
    canvas = Canvas(pixels, landmarks, entry.scale, entry.style)
    return Prepared(canvas, entry.face, entry.automatic, entry.warnings)


def write(folder: Path | None, key: str, prepared: Prepared) -> None:
    """Whole or not at all; a full or read-only disk only means that nothing is kept."""
    path = _path(folder, key)
    if path is None:
        return
    canvas = prepared.canvas
    entry = Entry(
        prepared.face, prepared.automatic, prepared.warnings, canvas.scale, canvas.style,
        canvas.pixels.tobytes(), canvas.landmarks.astype(np.float32).tobytes(),
    )  # fmt: skip
    data = msgspec.msgpack.encode(entry)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(hashlib.sha256(data).digest() + data)
        part.replace(path)
        _forget_oldest(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()


def _path(folder: Path | None, key: str) -> Path | None:
    return None if folder is None else folder / "canvas" / f"{key}.bin"


def _forget_oldest(folder: Path) -> None:
    entries = sorted(folder.glob("*.bin"), key=lambda path: path.stat().st_mtime)
    for path in entries[:-KEEP]:
        path.unlink(missing_ok=True)
