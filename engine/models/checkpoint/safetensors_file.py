"""A safetensors file: its header checked byte for byte, its tensors mapped one at a time.

Mapping each tensor alone (instead of the file) keeps resident memory at one tensor: the pages go
when the view does. Knows nothing of shards.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.models.checkpoint.tensor_file import TensorInfo, refused

MAX_HEADER = 100_000_000  # bytes; the format's own limit
DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
COPY_AGAIN = "copy or download the file again"


class SafetensorsFile:
    """See `TensorFile`. Raises EngineError("bad_checkpoint") for anything that is not whole."""

    branch = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = path.stat().st_size
        header = self._header()
        metadata = header.pop("__metadata__", {})
        is_text = isinstance(metadata, dict)
        self.metadata = {str(k): str(v) for k, v in metadata.items()} if is_text else {}
        self.tensors: dict[str, TensorInfo] = {}
        self._begin: dict[str, int] = {}
        for name, entry in header.items():
            self._add(name, entry)
        self._check_extent()

    def _header(self) -> dict[str, Any]:
        with self.path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= MAX_HEADER:
                raise refused(self.path, "is not a safetensors file", COPY_AGAIN)
            if 8 + length > self._size:
                raise refused(self.path, f"ends within its header at {self._size} B", COPY_AGAIN)
            text = file.read(length)
        self._data = 8 + length
        try:
            header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise refused(self.path, "its header is not readable JSON", COPY_AGAIN) from error
        if not isinstance(header, dict):
            raise refused(self.path, "its header is not a table of tensors", COPY_AGAIN)
        return header

    def _add(self, name: str, entry: Any) -> None:
        try:
            dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            whole = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
            fits = whole and end - begin == math.prod(shape) * dtype.itemsize
        except (KeyError, TypeError, ValueError) as error:
            raise refused(self.path, f"its entry {name!r} is malformed", COPY_AGAIN) from error
        if not fits:
            raise refused(self.path, f"shape and bytes of {name!r} disagree", COPY_AGAIN)
        self.tensors[name] = TensorInfo(dtype, shape)
        self._begin[name] = begin

    def _check_extent(self) -> None:
        """Tensors lie end to end, none over another, and the file ends where the last one does."""
        at = 0
        for name in sorted(self._begin, key=lambda n: (self._begin[n], self.tensors[n].bytes)):
            if self._begin[name] != at:
                raise refused(self.path, f"{name!r} does not lie where it should", COPY_AGAIN)
            at += self.tensors[name].bytes
        if self._data + at > self._size:
            missing = self._data + at - self._size
            raise refused(self.path, f"is cut short: {missing} bytes are missing", COPY_AGAIN)

    def mapped(self, name: str) -> Tensor:
        """View of one tensor; its mapping lives as long as the view."""
        info = self.tensors[name]
        if info.bytes == 0:
            return torch.empty(info.shape, dtype=info.dtype)
        start = self._data + self._begin[name]
        skip = start % mmap.ALLOCATIONGRANULARITY
        with self.path.open("rb") as file:
            # copy on write: torch wants a writable buffer, and the file stays as it is
            pages = mmap.mmap(
                file.fileno(), info.bytes + skip, access=mmap.ACCESS_COPY, offset=start - skip
            )
        if start % info.dtype.itemsize:  # legal in the format, not for a torch view
            copy = bytearray(pages[skip : skip + info.bytes])
            return torch.frombuffer(copy, dtype=info.dtype).view(info.shape)
        flat = torch.frombuffer(pages, dtype=info.dtype, count=math.prod(info.shape), offset=skip)
        return flat.view(info.shape)

    def release(self, view: Tensor) -> None:
        """Nothing: dropping the view unmaps it."""
