"""The quarter-resolution grid on which the warp is worked out, and boxes on it.

One cell is 4x4 canvas px; one ring of cells lies outside the canvas, so that enlarging a map never
has to extrapolate. Positions in "cells" are grid indices. Knows nothing of faces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 704, 1088  # canvas px
CELL = 4
PAD = 1
COLS, ROWS = WIDTH // CELL + 2 * PAD, HEIGHT // CELL + 2 * PAD


def to_cells(px: np.ndarray) -> np.ndarray:
    """Canvas px (centres at whole numbers) -> grid index."""
    return (px + 0.5) / CELL - 0.5 + PAD


def to_px(cells: np.ndarray) -> np.ndarray:
    return (cells - PAD + 0.5) * CELL - 0.5


def centers_px() -> np.ndarray:
    """[ROWS, COLS, 2] canvas px of every cell's centre."""
    x, y = np.meshgrid(to_px(np.arange(COLS)), to_px(np.arange(ROWS)))
    return np.stack([x, y], -1)


@dataclass(frozen=True, slots=True)
class Box:
    """Cells [top, bottom) x [left, right)."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def cells(self) -> tuple[slice, slice]:
        return slice(self.top, self.bottom), slice(self.left, self.right)

    @property
    def shape(self) -> tuple[int, int]:
        return self.bottom - self.top, self.right - self.left

    def inside(self, other: Box) -> tuple[slice, slice]:
        """This box's cells as slices of an array that covers `other`."""
        return (
            slice(self.top - other.top, self.bottom - other.top),
            slice(self.left - other.left, self.right - other.left),
        )

    def canvas(self) -> tuple[slice, slice]:
        """The canvas px that these cells cover."""
        return (
            slice(max(0, (self.top - PAD) * CELL), min(HEIGHT, (self.bottom - PAD) * CELL)),
            slice(max(0, (self.left - PAD) * CELL), min(WIDTH, (self.right - PAD) * CELL)),
        )

    def join(self, other: Box) -> Box:
        return Box(
            min(self.top, other.top),
            max(self.bottom, other.bottom),
            min(self.left, other.left),
            max(self.right, other.right),
        )

    def meet(self, other: Box) -> Box:
        """What both cover; at least one cell, so that a face at the border stays drawable."""
        top, left = max(self.top, other.top), max(self.left, other.left)
        top, left = min(top, other.bottom - 1), min(left, other.right - 1)
        return Box(
            top,
            max(top + 1, min(self.bottom, other.bottom)),
            left,
            max(left + 1, min(self.right, other.right)),
        )


ALL = Box(0, ROWS, 0, COLS)


def box_of_px(low: np.ndarray, high: np.ndarray) -> Box:
    """Smallest box that holds canvas px `low` to `high` [2], clipped to the grid."""
    x0, y0 = np.floor(to_cells(np.asarray(low))).astype(int)
    x1, y1 = np.ceil(to_cells(np.asarray(high))).astype(int) + 1
    return Box(int(y0), int(y1), int(x0), int(x1)).meet(ALL)


def box_where(mask: np.ndarray) -> Box | None:
    """Smallest box of an array over ALL that holds every true cell."""
    ys, xs = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(ys):
        return None
    return Box(int(ys[0]), int(ys[-1]) + 1, int(xs[0]), int(xs[-1]) + 1)


def smooth(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below `low`, 1 above `high`, S-shaped between."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)
