"""A .pt or .pth file, through torch's weights-only reader: no code in it is ever run.

Accepts one level of dict around the tensors, as trainers write it (`generator_ema`, `generator`,
...), and says which was taken. Knows nothing of the tensors' meaning; torch's old tar format is
refused.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.models.checkpoint.tensor_file import TensorInfo, first_five, refused

# Dicts that hold a model, best first: the averaged weights are what the authors sample with.
BRANCHES = (
    "generator_ema", "generator", "generator_lora", "model_ema", "ema", "model", "state_dict",
    "module", "params_ema", "params",
)  # fmt: skip
MAX_PICKLE = 64 << 20  # bytes of the index; that of a model of 10,000 tensors is 2 MB
MADV_DONTNEED = 4
COPY_AGAIN = "copy or download the file again"


class TorchFile:
    """See `TensorFile`. Raises EngineError("bad_checkpoint")."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: dict[str, str] = {}
        _check_archive(path)
        self.branch, self._values = _state(path, _load(path))
        self.tensors = {
            name: TensorInfo(value.dtype, tuple(value.shape))
            for name, value in self._values.items()
        }

    def mapped(self, name: str) -> Tensor:
        return self._values[name]

    def release(self, view: Tensor) -> None:
        """Tell the system that the pages under `view` are not needed now (Linux only)."""
        if sys.platform != "linux" or view.numel() == 0:
            return
        page = mmap.PAGESIZE
        first, count = view.data_ptr(), view.untyped_storage().nbytes()
        begin, end = -(-first // page) * page, (first + count) // page * page
        if end > begin:  # whole pages only: the rest is shared with its neighbours
            libc = ctypes.CDLL(None)
            libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), MADV_DONTNEED)


def _check_archive(path: Path) -> None:
    """A zip whose records are stored plainly, with an index of a sane size."""
    try:
        with zipfile.ZipFile(path) as archive:
            records = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        why = "is cut short, or is not a torch file of this decade"
        raise refused(path, why, COPY_AGAIN) from error
    pickles = [r for r in records if r.filename.endswith("data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > MAX_PICKLE:
        raise refused(path, "holds no index of tensors that can be read", COPY_AGAIN)
    if any(r.compress_type != zipfile.ZIP_STORED for r in records):
        raise refused(path, "is compressed, which torch never does", COPY_AGAIN)
    end = path.stat().st_size
    if any(r.header_offset + r.file_size > end for r in records):
        raise refused(path, "is cut short", COPY_AGAIN)


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # a hostile file may make the reader raise anything
        reason = str(error)
        if "Unsupported" in reason or "weights_only" in reason or "global" in reason.lower():
            why, remedy = (
                "holds code or objects besides tensors, which are never run",
                ("use a file of tensors alone, best a .safetensors"),
            )
        else:
            why, remedy = f"cannot be read ({type(error).__name__})", COPY_AGAIN
        raise refused(path, why, remedy) from error


def _state(path: Path, loaded: Any) -> tuple[str, dict[str, Tensor]]:
    """(branch, tensors) of what was loaded."""
    if isinstance(loaded, dict):
        for branch in BRANCHES:
            inner = loaded.get(branch)
            if isinstance(inner, dict) and (tensors := _tensors(inner)):
                return branch, tensors
        if tensors := _tensors(loaded):
            return "", tensors
        inside = first_five(str(k) for k in loaded) or "nothing"
        raise refused(path, f"holds {inside}, none a dict of tensors", "use the model's own file")
    raise refused(path, f"holds a {type(loaded).__name__}, no dict of tensors", "use another file")


def _tensors(values: dict[Any, Any]) -> dict[str, Tensor]:
    return {str(k): v for k, v in values.items() if isinstance(v, Tensor)}
