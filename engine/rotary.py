"""Rotary phases computed per chunk: no table whose last row a long session could pass.

Angles are worked out on the host in float64 and reduced to cosine and sine there, so that an hour
in (position 21,600 at 6 latent frames a second) is as exact as the start. Pairs are interleaved;
of the hd/2 pairs, 2 * (hd // 6) are spatial, the rest temporal (Wan's split: 22 + 21 + 21 of 64).
"""

from __future__ import annotations

import torch
from torch import Tensor

THETA = 10_000.0


def frequencies(pairs: int) -> Tensor:
    """float64 [pairs], radians a position."""
    return THETA ** (-torch.arange(pairs, dtype=torch.float64) / pairs)


class Phases:
    """cos and sin [tokens, hd/2] fp32 of one chunk at fixed addresses; `move` changes its time."""

    def __init__(
        self, frames: int, grid: tuple[int, int], head_dim: int, device: torch.device
    ) -> None:
        spatial = head_dim // 6
        self.frames = frames
        self.temporal = head_dim // 2 - 2 * spatial
        tokens = frames * grid[0] * grid[1]
        down = torch.arange(grid[0]).repeat_interleave(grid[1]).repeat(frames)
        across = torch.arange(grid[1]).repeat(frames * grid[0])
        angle = torch.zeros(tokens, head_dim // 2, dtype=torch.float64)
        step = frequencies(spatial)
        angle[:, self.temporal : self.temporal + spatial] = down[:, None] * step
        angle[:, self.temporal + spatial :] = across[:, None] * step
        self.cos = angle.cos().float().to(device)
        self.sin = angle.sin().float().to(device)
        self._step = frequencies(self.temporal)

    def move(self, position: int) -> None:
        """Place the chunk's first latent frame at `position`. One small copy, no wait."""
        at = torch.arange(position, position + self.frames, dtype=torch.float64)
        angle = at[:, None] * self._step
        both = torch.stack((angle.cos(), angle.sin())).float()
        if self.cos.is_cuda:
            both = both.pin_memory().to(self.cos.device, non_blocking=True)
        per_frame = self.cos.shape[0] // self.frames
        for table, values in zip((self.cos, self.sin), both, strict=True):
            view = table.view(self.frames, per_frame, -1)[:, :, : self.temporal]
            view.copy_(values[:, None])
