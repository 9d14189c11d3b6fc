"""One rank's part of a mapped tensor, on its way to a device: only its own pages are read.

Knows nothing of files or ranks. `Cut` itself is the builder's (`engine.models.wan_weights`).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.models.wan_weights import Cut


def cut_shape(whole: tuple[int, ...], cut: Cut | None) -> tuple[int, ...]:
    """Of the part that `cut` names."""
    if cut is None:
        return whole
    return (*whole[: cut.axis], cut.length, *whole[cut.axis + 1 :])


def part_of(whole: Tensor, cut: Cut | None, device: torch.device) -> Tensor:
    """A copy of the part, zeros beyond the tensor's end."""
    if cut is None:
        return whole.to(device, copy=True)
    size = whole.shape[cut.axis]
    start = min(cut.start, size)
    there = min(cut.length, size - start)
    part = whole.narrow(cut.axis, start, there).to(device, copy=True)
    missing = cut.length - there
    return F.pad(part, [0, 0] * (part.ndim - 1 - cut.axis) + [0, missing]) if missing else part
