"""FP8 weights kept on disk: the second load reads half the bytes and quantises nothing.

One safetensors file a checkpoint, rank and rank count, written beside the reading (its header last,
into room left at the front) and renamed when whole: a load that was cut off leaves nothing. A
checkpoint that changed has another key; its older files are then deleted. A full disk ends the
writing, not the load. Knows nothing of how weights are quantised.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.safetensors_file import SafetensorsFile
from engine.models.checkpoint.tensor_file import size_text
from kernels.reference import FP8

VERSION = 1  # of the way weights are quantised
SPARE = 2 << 30  # bytes of disk that a cache leaves free
ENTRY = 256  # bytes of header a tensor at most
DATA_AT = 8


class Fp8Cache:
    """`get` what an earlier load `put`; `finish` makes what was put last, `abandon` drops it."""

    def __init__(self, folder: Path, origin: str, key: str, part: str, tensors: int) -> None:
        """`origin` names the checkpoint (8 hex), `key` its contents (16 hex), `part` the rank.

        `tensors` is how many may be put, at most.
        """
        self.path = folder / f"{origin}-{key}-{part}.safetensors"
        self.note = ""  # why nothing is kept, when nothing is
        self._stale = f"{origin}-*-{part}.safetensors"
        self._kept = self._open()
        self._writer = None if self._kept is not None else self._begin(folder, tensors)

    def _open(self) -> SafetensorsFile | None:
        if not self.path.is_file():
            return None
        try:
            return SafetensorsFile(self.path)
        except (EngineError, OSError):
            self.path.unlink(missing_ok=True)
            return None

    def _begin(self, folder: Path, tensors: int) -> _Writer | None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for torn in folder.glob(f".{self._stale}.*.part"):
                _remove_orphan(torn)
            return _Writer(self.path, tensors)
        except OSError as error:
            self.note = f"FP8 weights are not kept: {error.strerror}"
            return None

    @property
    def line(self) -> str:
        """What is said of it after a load."""
        if self.note:
            return self.note
        size = self.path.stat().st_size if self.path.is_file() else 0
        how = "read from" if self._kept is not None else "kept in"
        return f"FP8 weights {how} {self.path} ({size_text(size)})"

    def get(self, name: str, shape: tuple[int, int]) -> tuple[Tensor, Tensor] | None:
        """(e4m3 [N, K], scales [N]), views of the file; None when a load has yet to put it."""
        if self._kept is None or name not in self._kept.tensors:
            return None
        if self._kept.tensors[name].shape != shape:
            return None
        return self._kept.mapped(name), self._kept.mapped(f"{name}.scale")

    def put(self, name: str, values: Tensor, scale: Tensor) -> None:
        if self._writer is None:
            return
        try:
            if shutil.disk_usage(self.path.parent).free < SPARE + values.numel():
                raise OSError(28, "the disk is nearly full")
            self._writer.add(name, values)
            self._writer.add(f"{name}.scale", scale)
        except OSError as error:
            self.note = f"FP8 weights are not kept: {error.strerror}"
            self.abandon()

    def finish(self) -> None:
        """Rename the finished file into place and delete those of older contents."""
        if self._writer is None:
            return
        try:
            self._writer.close()
        except OSError as error:
            self.note = f"FP8 weights are not kept: {error.strerror}"
            self.abandon()
        else:
            self._writer = None
            for old in self.path.parent.glob(self._stale):
                if old != self.path:
                    old.unlink(missing_ok=True)

    def abandon(self) -> None:
        """After a cancelled or failed load."""
        if self._writer is not None:
            self._writer.drop()
            self._writer = None


def _remove_orphan(torn: Path) -> None:
    """Delete what a process that no longer runs left half written."""
    try:
        os.kill(int(torn.suffixes[-2][1:]), 0)
    except (ProcessLookupError, ValueError, IndexError, OverflowError):
        torn.unlink(missing_ok=True)
    except PermissionError:
        return  # alive, and another user's


class _Writer:
    """A safetensors file written front to back, its header filled in at the end."""

    def __init__(self, path: Path, tensors: int) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._room = 2 * tensors * ENTRY + 64
        self._entries: dict[str, Any] = {"__metadata__": {"version": str(VERSION)}}
        self._at = 0
        self._file: BinaryIO = self._temporary.open("wb")
        self._file.seek(DATA_AT + self._room)

    def add(self, name: str, value: Tensor) -> None:
        plain = value.detach().contiguous().cpu()
        size = plain.numel() * plain.element_size()
        self._entries[name] = {
            "dtype": "F8_E4M3" if plain.dtype == FP8 else "F32",
            "shape": list(plain.shape), "data_offsets": [self._at, self._at + size],
        }  # fmt: skip
        self._file.write(plain.view(torch.uint8).numpy().data)
        self._at += size

    def close(self) -> None:
        header = json.dumps(self._entries, separators=(",", ":")).encode()
        if len(header) > self._room:
            raise OSError(7, "more tensors than were announced")
        self._file.seek(0)
        self._file.write(struct.pack("<Q", self._room) + header.ljust(self._room))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)
