"""Prepared characters on disk, one file a content key; a bad or missing entry is simply a miss.

Knows nothing of how they are made. Never pickle: plain arrays and JSON in an .npz.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from engine.portrait.canvas import Canvas
from engine.protocol.character import Framing
from engine.protocol.messages import FaceFound

KEEP = 40  # entries of 3 MB each; the oldest go


@dataclass(frozen=True, slots=True)
class Prepared:
    canvas: Canvas
    face: FaceFound
    automatic: Framing
    warnings: list[str]


class Note(msgspec.Struct, frozen=True):
    face: FaceFound
    automatic: Framing
    warnings: list[str]
    scale: float
    style: str


def read(folder: Path | None, key: str) -> Prepared | None:
    path = _path(folder, key)
    if path is None or not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as entry:
            note = msgspec.json.decode(entry["note"].tobytes(), type=Note)
            pixels, landmarks = entry["pixels"], entry["landmarks"]
        os.utime(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.MsgspecError):
        return None
    if pixels.shape != (1088, 704, 4) or landmarks.shape != (478, 3):
        return None
    canvas = Canvas(pixels, landmarks, note.scale, note.style)
    return Prepared(canvas, note.face, note.automatic, note.warnings)


def write(folder: Path | None, key: str, prepared: Prepared) -> None:
    """Whole or not at all; a full or read-only disk only means that nothing is kept."""
    path = _path(folder, key)
    if path is None:
        return
    canvas = prepared.canvas
    note = Note(prepared.face, prepared.automatic, prepared.warnings, canvas.scale, canvas.style)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.savez(
                file,
                pixels=canvas.pixels,
                landmarks=canvas.landmarks,
                note=np.frombuffer(msgspec.json.encode(note), np.uint8),
            )
        part.replace(path)
        _forget_oldest(path.parent)
    except OSError:
        part.unlink(missing_ok=True)


def _path(folder: Path | None, key: str) -> Path | None:
    return None if folder is None else folder / "canvas" / f"{key}.npz"


def _forget_oldest(folder: Path) -> None:
    entries = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime)
    for path in entries[:-KEEP]:
        path.unlink(missing_ok=True)
