"""Gaze: the iris glides inside the lids by an edit of the warp's map.

Knows nothing of lids' skin (`lids.py`).
"""

from __future__ import annotations

import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.eye_shape import EYES, EyeGrid, eye_grid
from engine.portrait.grid import smooth

REACH_X, REACH_Y = 0.14, 0.10  # of the eye's width at gaze = 1
LEAST = 0.01
LID_EDGE_TOP, LID_EDGE_BOTTOM = (-0.02, 0.10), (-0.02, 0.08)  # eye widths over which it starts
IRIS_FADE = 0.45  # eye widths from the iris' border to where the white stands still


def move_gaze(
    full: np.ndarray, top: int, left: int, token: np.ndarray, points: np.ndarray
) -> None:
    """Edit the map `full` [h, w, 2] px, whose first element is canvas px (top, left)."""
    gaze = np.array([token[INDEX["gazeX"]], token[INDEX["gazeY"]]], np.float64)
    if np.abs(gaze).sum() < LEAST:
        return
    for eye in EYES:
        grid = eye_grid(eye, points, 0.05, 0.05, 0.05)
        part = None if grid is None else _part(full, top, left, grid)
        if grid is None or part is None:
            continue
        shift = gaze * [REACH_X * grid.width, REACH_Y * grid.width]
        move = shift[0] * grid.right + shift[1] * grid.down
        iris = points[eye.iris : eye.iris + 5, :2]
        weight = _weight(grid, iris, move)
        part[..., 0] -= weight * np.float32(move[0])
        part[..., 1] -= weight * np.float32(move[1])


def _part(full: np.ndarray, top: int, left: int, grid: EyeGrid) -> np.ndarray | None:
    rows = slice(grid.rows.start - top, grid.rows.stop - top)
    cols = slice(grid.cols.start - left, grid.cols.stop - left)
    inside = rows.start >= 0 and cols.start >= 0
    if not inside or rows.stop > full.shape[0] or cols.stop > full.shape[1]:
        return None  # an eye at the edge of what moves: leave it
    return full[rows, cols]


def _weight(grid: EyeGrid, iris: np.ndarray, move: np.ndarray) -> np.ndarray:
    """1 on the moved iris, 0 at the lids and far out in the white."""
    w = grid.width
    radius = float(np.hypot(*(iris[1:] - iris[0]).T).mean())
    center = iris[0] + move
    dx = np.arange(grid.cols.start, grid.cols.stop, dtype=np.float32)[None] - center[0]
    dy = np.arange(grid.rows.start, grid.rows.stop, dtype=np.float32)[:, None] - center[1]
    distance = np.hypot(dx, dy)
    near = 1 - smooth(distance, radius, radius + IRIS_FADE * w)
    lids = smooth(grid.y - grid.top, LID_EDGE_TOP[0] * w, LID_EDGE_TOP[1] * w)
    lids *= smooth(grid.bottom - grid.y, LID_EDGE_BOTTOM[0] * w, LID_EDGE_BOTTOM[1] * w)
    return (near * lids * grid.ends).astype(np.float32)
