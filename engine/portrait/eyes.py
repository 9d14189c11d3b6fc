"""Both eyes of a frame: gaze by an edit of the warp's map, lids painted over the result.

Knows nothing of how a lid is painted (`lids.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.eye_shape import EYES, EyeGrid, eye_grid
from engine.portrait.grid import smooth
from engine.portrait.lids import COVER, LEAST, PATCH, Lid, draw_lid, paint_lid

REACH_X, REACH_Y = 0.14, 0.10  # of the eye's width at gaze = 1
LEAST_GAZE = 0.01
LID_EDGE_TOP, LID_EDGE_BOTTOM = (-0.02, 0.10), (0.0, 0.09)  # eye widths over which it starts
IRIS_FADE = 0.45  # eye widths from the iris' border to where the white stands still
OPENING = (0.02, 0.03, 0.03)  # beyond the lids: sides, above, below, for gaze alone
SHUT = 0.98  # blink from which nothing of the eyeball is seen


@dataclass(frozen=True, slots=True)
class Cover:
    """A lid of one frame and where the warp takes its pixels from, [h, w, 2] canvas px."""

    lid: Lid
    grid: EyeGrid
    blink: float
    source: np.ndarray


class Eyes:
    def __init__(self, pixels: np.ndarray, landmarks: np.ndarray, skin: np.ndarray) -> None:
        self._lids: dict[str, Lid] = {}
        for eye in EYES:
            grid = eye_grid(eye, landmarks, *PATCH)
            if grid is not None:
                self._lids[eye.letter] = paint_lid(pixels, skin, eye, grid)

    def edit(
        self, full: np.ndarray, top: int, left: int, token: np.ndarray, points: np.ndarray
    ) -> list[Cover]:
        """Move the gaze in the map `full` [h, w, 2] px, whose first element is canvas px
        (top, left). Returns the lids to draw after the remap."""
        gaze = np.array([token[INDEX["gazeX"]], token[INDEX["gazeY"]]], np.float64)
        covers = []
        for eye in EYES:
            lid = self._lids.get(eye.letter)
            blink = float(token[INDEX["eyeBlink" + eye.letter]])
            looks = np.abs(gaze).sum() > LEAST_GAZE and blink < SHUT
            if lid is None or not (looks or blink > LEAST):
                continue
            grid = eye_grid(eye, points, *(COVER if blink > LEAST else OPENING))
            part = None if grid is None else _part(full, top, left, grid)
            if grid is None or part is None:
                continue
            if blink > LEAST:
                covers.append(Cover(lid, grid, blink, part.copy()))
            if looks:
                _look(part, grid, points[eye.iris : eye.iris + 5, :2], gaze)
        return covers

    def draw(self, out: np.ndarray, covers: list[Cover]) -> None:
        """Paint over `out` [1088, 704, 4] uint8."""
        for cover in covers:
            draw_lid(out, cover.lid, cover.grid, cover.blink, cover.source)


def _part(full: np.ndarray, top: int, left: int, grid: EyeGrid) -> np.ndarray | None:
    rows = slice(grid.rows.start - top, grid.rows.stop - top)
    cols = slice(grid.cols.start - left, grid.cols.stop - left)
    inside = rows.start >= 0 and cols.start >= 0
    if not inside or rows.stop > full.shape[0] or cols.stop > full.shape[1]:
        return None  # an eye at the edge of what moves: leave it
    return full[rows, cols]


def _look(part: np.ndarray, grid: EyeGrid, iris: np.ndarray, gaze: np.ndarray) -> None:
    """Shift what is seen through the lids: all of the moved iris, nothing at the lids."""
    w = grid.width
    move = gaze[0] * REACH_X * w * grid.right + gaze[1] * REACH_Y * w * grid.down
    radius = float(np.hypot(*(iris[1:] - iris[0]).T).mean())
    x, y = (float(v) for v in iris[0] + move)
    dx = np.arange(grid.cols.start, grid.cols.stop, dtype=np.float32)[None] - x
    dy = np.arange(grid.rows.start, grid.rows.stop, dtype=np.float32)[:, None] - y
    weight = 1 - smooth(np.hypot(dx, dy), radius, radius + IRIS_FADE * w)
    weight *= smooth(grid.y - grid.top, LID_EDGE_TOP[0] * w, LID_EDGE_TOP[1] * w)
    weight *= smooth(grid.bottom - grid.y, LID_EDGE_BOTTOM[0] * w, LID_EDGE_BOTTOM[1] * w)
    weight *= grid.ends
    for axis in (0, 1):
        part[..., axis] -= weight * np.float32(move[axis])
