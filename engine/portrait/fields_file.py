"""Dense fields on disk: one safetensors file a picture. A bad or missing file is simply a miss.

The caller names the file by the picture's content; `.fields` is added. Only the newest are kept.
Knows nothing of how fields are made.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from engine.portrait.coefficients import COUNT
from engine.portrait.fields import Basis, Fields
from engine.portrait.grid import ALL, COLS, ROWS, Box

VERSION = 1  # raise when the same landmarks give other fields
LISTS = ("upper", "lower")
SUFFIX = ".fields"
KEEP = 24  # files of 1 to 6 MB; the oldest go


def write_fields(path: Path | None, landmarks: np.ndarray, fields: Fields) -> None:
    """Whole or not at all; a full or read-only disk only means that nothing is kept."""
    if path is None:
        return
    path = named(path)
    arrays = {"landmarks": landmarks.astype(np.float32), "depth": fields.depth,
              "mouth": _numbers(fields.mouth), "version": np.array([VERSION])}  # fmt: skip
    for name, bases in zip(LISTS, (fields.upper, fields.lower), strict=True):
        for basis in bases:
            arrays[f"{name}.{basis.token}"] = basis.values
            arrays[f"{name}.{basis.token}.box"] = _numbers(basis.box)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        safetensors.numpy.save_file(arrays, part)
        part.replace(path)
        _forget_oldest(path.parent)
    except (OSError, SafetensorError):
        part.unlink(missing_ok=True)


def named(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _forget_oldest(folder: Path) -> None:
    """Other files of the folder are not ours and stay."""
    entries = sorted(folder.glob("*" + SUFFIX), key=lambda path: path.stat().st_mtime)
    for path in entries[:-KEEP]:
        path.unlink(missing_ok=True)


def read_fields(path: Path | None, landmarks: np.ndarray) -> Fields | None:
    """None unless the file is whole, of this version and made for these landmarks."""
    if path is None or not named(path).is_file():
        return None
    try:
        arrays = safetensors.numpy.load_file(named(path))
        if int(arrays["version"][0]) != VERSION or not np.array_equal(
            arrays["landmarks"], landmarks.astype(np.float32)
        ):
            return None
        upper, lower = (_bases(arrays, name) for name in LISTS)
        mouth, depth = _box(arrays["mouth"]), arrays["depth"]
        os.utime(named(path))  # used: not the next to go
    except (OSError, SafetensorError, KeyError, ValueError, IndexError):
        return None
    if depth.shape != (ROWS, COLS) or depth.dtype != np.float32:
        return None
    return Fields(upper, lower, mouth, depth)


def _bases(arrays: dict[str, np.ndarray], name: str) -> list[Basis]:
    found = []
    for token in range(COUNT):
        values = arrays.get(f"{name}.{token}")
        if values is None:
            continue
        box = _box(arrays[f"{name}.{token}.box"])
        if values.shape != (*box.shape, 2) or values.dtype != np.float32:
            raise ValueError(f"basis {token} has shape {values.shape}")
        found.append(Basis(token, box, values))
    return found


def _numbers(box: Box) -> np.ndarray:
    return np.array([box.top, box.bottom, box.left, box.right], np.int64)


def _box(numbers: np.ndarray) -> Box:
    box = Box(*(int(n) for n in numbers))
    if box.meet(ALL) != box:
        raise ValueError(f"{box} does not lie on the grid")
    return box
