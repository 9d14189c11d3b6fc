"""The layout of pictures inside the video decoder: rows of channels with a zero border.

Frame f of a buffer is `rows` rows of C channels; pixel (y, x) is row `(y + 1) * pitch + x`, pitch =
W + 1. The border (a line above and below, one column that serves both sides) stays zero, so each
tap of a convolution is the same rows shifted by a constant: a convolution becomes a plain GEMM.
Rows are rounded up to 128, the tile of that GEMM. Knows nothing of devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

TILE = 128


@dataclass(frozen=True, slots=True)
class Grid:
    """Height and width of one level, in pixels."""

    height: int
    width: int

    @property
    def pitch(self) -> int:
        return self.width + 1

    @property
    def rows(self) -> int:
        """Of one frame, border and rounding included."""
        return -(-(self.height + 2) * self.pitch // TILE) * TILE

    def doubled(self) -> Grid:
        return Grid(2 * self.height, 2 * self.width)

    def pixels(self, buffer: Tensor) -> Tensor:
        """View [frames, H, W, C] of the pixels of a buffer [frames * rows, C]."""
        channels = buffer.shape[-1]
        framed = buffer.view(-1, self.rows, channels)[:, : (self.height + 2) * self.pitch]
        lines = framed.unflatten(1, (self.height + 2, self.pitch))
        return lines[:, 1:-1, : self.width]
