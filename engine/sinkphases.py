"""Where the window's sink lies in time, so that it never looks further away than training saw.

A reference picture follows the session at a longest distance. The condition tokens of a model with
sound (S2V) lie apart: their picture always the same way ahead, the packed past behind, on coarser
grids. Phases are worked out in float64 on the host and written to fixed addresses.
Knows nothing of keys.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from engine.models.dit_config import Speech
from engine.rotary import Phases, frequencies


class SinkPhases(Protocol):
    """cos, sin [sink tokens, hd/2] fp32 of the sink, as a chunk at some position sees it."""

    cos: Tensor
    sin: Tensor

    def turn(self, position: int) -> bool:
        """For a chunk whose first latent frame is at `position`; False when nothing changed."""
        ...


class PictureSink:
    """Latent frames on the window's own grid, at 0 and then `reach` behind the chunk."""

    def __init__(
        self, frames: int, grid: tuple[int, int], head_dim: int, reach: int, device: torch.device
    ) -> None:
        self._phases, self._reach = Phases(frames, grid, head_dim, device), reach
        self.cos, self.sin = self._phases.cos, self._phases.sin
        self._at = -1

    def turn(self, position: int) -> bool:
        at = max(0, position - self._reach)
        if at == self._at or not len(self.cos):
            return False
        self._at = at
        self._phases.move(at)
        return True


class ConditionSink:
    """S2V's condition tokens. The past stays at the clip's beginning until the chunk is `reach`
    latent frames on, then follows; upstream never lets it follow, and clips there are short.
    """

    def __init__(
        self, speech: Speech, grid: tuple[int, int], head_dim: int, patch: int, reach: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        self._reach, self._picture = reach, grid[0] * grid[1]
        self._ahead = speech.reference_at
        places = torch.cat([_picture_places(grid), *_pack_places(speech, grid, patch)])
        self._time = places[:, 0]
        spatial = head_dim // 6
        self._temporal = head_dim // 2 - 2 * spatial
        step = frequencies(spatial)
        self._fixed = torch.cat((places[:, 1:2] * step, places[:, 2:3] * step), 1)
        self.cos = torch.empty(len(places), head_dim // 2, device=device)
        self.sin = torch.empty_like(self.cos)
        self._at = -1

    def turn(self, position: int) -> bool:
        if position == self._at:
            return False
        self._at = position
        time = self._time + max(0, position - self._reach)
        time[: self._picture] = position + self._ahead
        angle = torch.cat((time[:, None] * frequencies(self._temporal), self._fixed), 1)
        for table, values in ((self.cos, angle.cos()), (self.sin, angle.sin())):
            values = values.float()
            if table.is_cuda:
                values = values.pin_memory()
            table.copy_(values, non_blocking=True)
        return True


def _grid_places(time: int, down: Tensor, across: Tensor) -> Tensor:
    """float64 [n, 3]: time, down and across of every token of one frame."""
    rows = down.repeat_interleave(len(across))
    columns = across.repeat(len(down))
    return torch.stack((torch.full_like(rows, time), rows, columns), 1).double()


def _picture_places(grid: tuple[int, int]) -> Tensor:
    return _grid_places(0, torch.arange(grid[0]), torch.arange(grid[1]))


def _stretched(count: int, over: int) -> Tensor:
    """`count` whole places evenly over 0..over-1, as upstream spreads a coarse grid."""
    return torch.linspace(0, over - 1, count, dtype=torch.float64).long()


def _pack_places(speech: Speech, grid: tuple[int, int], patch: int) -> list[Tensor]:
    """Nearest first: each pack's frames end where the nearer pack begins, and each coarse token
    stands at the oldest of the frames it covers, spread as upstream spreads them.
    """
    found, behind = [], 0
    for frames, by in zip(speech.packs, (1, 2, 4), strict=True):
        behind += frames
        size = [cells * patch // (patch * by) for cells in grid]
        down, across = (_stretched(n, over) for n, over in zip(size, grid, strict=True))
        times = torch.linspace(behind, behind - frames + 1, frames // by, dtype=torch.float64)
        found += [_grid_places(-int(time), down, across) for time in times]
    return found


def sink_phases(
    speech: Speech | None, frames: int, grid: tuple[int, int], patch: int, head_dim: int,
    reach: int, device: torch.device,
) -> SinkPhases:  # fmt: skip
    """The sink of a model's window."""
    if speech is None:
        return PictureSink(frames, grid, head_dim, reach, device)
    return ConditionSink(speech, grid, head_dim, patch, reach, device)
