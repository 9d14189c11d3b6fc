"""What every kind of weights file offers: names, shapes, and tensors that are views of its pages.

Nothing is read before it is asked for, and pages go back to the system when the view is dropped.
Knows nothing of formats or of what the tensors mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from engine.errors import EngineError

GB = 1e9  # files are told in decimal gigabytes, as their publishers do


@dataclass(frozen=True, slots=True)
class TensorInfo:
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class TensorFile(Protocol):
    """An open file. `mapped` gives a view of the file's pages; `release` hands those pages back."""

    path: Path
    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]  # what the file says of itself
    branch: str  # the dict within the file that was chosen: "generator_ema", ...; "" if flat

    def mapped(self, name: str) -> Tensor: ...

    def release(self, view: Tensor) -> None: ...


def refused(path: Path, why: str, remedy: str) -> EngineError:
    """A file that cannot be used, in one line."""
    return EngineError("bad_checkpoint", f"{path.name}: {why}", remedy)


def first_five(names: Iterable[str]) -> str:
    """`a, b, c, d, e and 12 more`."""
    listed = sorted(names)
    tail = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(listed[:5]) + tail


def size_text(count: int) -> str:
    """Bytes as `2.8 GB`, `14 MB`, `3 kB`."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return (
                f"{count / unit:.1f} {name}" if count < 10 * unit else f"{count / unit:.0f} {name}"
            )
    return f"{count / 1e3:.0f} kB"
