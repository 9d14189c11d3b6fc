"""Light that changes with the expression: folds beside a smile, cheeks, the chin's shadow.

A few soft strokes in the picture's own place, carried along by the warp. Knows nothing of where
the light comes from: strokes are weak enough to suit any.
"""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.fields import oval_radius
from engine.portrait.grid import CELL, Box, box_where, centers_px, smooth
from engine.portrait.headframe import HeadFrame
from engine.portrait.sampling import ZERO, less, read
from engine.portrait.warp import Warp, corner_px

# (coefficients, line of vertices, shift (right, down) in S, half width in S, change of light at 1)
STROKES: tuple[tuple[tuple[str, ...], tuple[int, ...], tuple[float, float], float, float], ...] = (
    (("mouthSmileR",), (129, 203, 206, 216), (0.0, 0.0), 0.028, -0.22),
    (("mouthSmileL",), (358, 423, 426, 436), (0.0, 0.0), 0.028, -0.22),
    (("mouthSmileR",), (61, 57), (-0.03, 0.0), 0.025, -0.20),  # dimple beside the corner
    (("mouthSmileL",), (291, 287), (0.03, 0.0), 0.025, -0.20),
    (("mouthSmileR", "cheekSquintR"), (50, 205), (0.0, -0.03), 0.09, 0.06),
    (("mouthSmileL", "cheekSquintL"), (280, 425), (0.0, -0.03), 0.09, 0.06),
    (("jawOpen",), (148, 152, 377), (0.0, 0.10), 0.07, -0.5),  # the chin's shadow on the neck
    (("browDownR", "browDownL"), (107, 9, 336), (0.0, 0.0), 0.035, -0.12),
    (("mouthPucker",), (43, 106), (-0.03, 0.0), 0.045, -0.10),
    (("mouthPucker",), (273, 335), (0.03, 0.0), 0.045, -0.10),
)
IDLE, JAW_IDLE = 0.20, 0.25  # coefficients up to here leave the light alone: a held smile and
# small openings cost nothing
LEAST = 0.004  # of the light: where a stroke ends
FACE = (0.80, 1.00)  # of the oval: strokes fade here, or they would fall on what is behind


class Shade:
    def __init__(self, frame: HeadFrame, landmarks: np.ndarray, skin: np.ndarray) -> None:
        """`skin` [3] BGR: shadows go toward a deeper tone of it, not toward grey."""
        centers = centers_px().astype(np.float32)
        inside = 1 - smooth(oval_radius(frame, landmarks, centers), *FACE).astype(np.float32)
        self._strokes = []
        for names, vertices, shift, width, change in STROKES:
            away = _distance(frame, landmarks, centers, vertices, shift) / (width * frame.s)
            light = (change * np.exp(-0.5 * away**2)).astype(np.float32)
            light *= 1.0 if names == ("jawOpen",) else inside
            box = box_where(np.abs(light) > LEAST)
            if box is not None:
                self._strokes.append((names, box, np.ascontiguousarray(light[box.cells])))
        deep = 255 * (skin / 255) ** 2
        self._deep = np.append(0.8 * deep, 255).astype(np.uint8)

    def draw(self, out: np.ndarray, token: np.ndarray, warp: Warp) -> None:
        """Change the light of `out` [1088, 704, 4] uint8 after the remap."""
        moving = []
        for names, box, light in self._strokes:
            amount = sum(float(token[INDEX[name]]) for name in names) / len(names)
            idle = JAW_IDLE if names == ("jawOpen",) else IDLE
            if amount > idle:
                moving.append(((amount - idle) / (1 - idle), box, light))
        if not moving:
            return
        joined = moving[0][1]
        for _, box, _ in moving[1:]:
            joined = joined.join(box)
        total = np.zeros(joined.shape, np.float32)
        for amount, box, light in moving:
            part = total[box.inside(joined)]
            cv2.scaleAdd(light, amount, part, dst=part)
        self._lay(out, joined, total, warp)

    def _lay(self, out: np.ndarray, box: Box, light: np.ndarray, warp: Warp) -> None:
        """`light` over `box` of the picture; in the frame it lies where the warp carries it."""
        whole = warp.upper.box
        grown = carried(box, warp).meet(whole)
        back = less(
            warp.upper.backward[grown.inside(whole)], box.left - whole.left, box.top - whole.top
        )
        small = read(light, back, None, ZERO)
        h, w = grown.shape
        large = cv2.resize(small, (w * CELL, h * CELL), interpolation=cv2.INTER_LINEAR)
        top, left = corner_px(grown)
        rows, cols = grown.canvas()
        large = large[rows.start - top : rows.stop - top, cols.start - left : cols.stop - left]
        if not large.size:
            return
        part = out[rows, cols]
        deep = np.empty_like(part)
        deep[:] = self._deep
        # Weights 1 + light and -light: toward the deep tone, or away from it; alpha stays.
        cv2.blendLinear(part, deep, 1 + large, -large, dst=part)


def carried(box: Box, warp: Warp) -> Box:
    """Cells of the frame that hold `box` of the picture: its border, moved, and one more."""
    moves = warp.upper.forward[box.meet(warp.upper.box).inside(warp.upper.box)]
    low = np.floor(moves.reshape(-1, 2).min(0)).astype(int) - 1
    high = np.ceil(moves.reshape(-1, 2).max(0)).astype(int) + 1
    return Box(
        box.top + int(low[1]), box.bottom + int(high[1]),
        box.left + int(low[0]), box.right + int(high[0]),
    )  # fmt: skip


def _distance(
    frame: HeadFrame,
    landmarks: np.ndarray,
    centers: np.ndarray,
    vertices: tuple[int, ...],
    shift: tuple[float, float],
) -> np.ndarray:
    """[ROWS, COLS] px from a line of vertices, moved by `shift` S right and down."""
    line = landmarks[list(vertices), :2] + frame.s * (
        shift[0] * frame.right + shift[1] * frame.down
    )
    least = np.full(centers.shape[:2], np.inf, np.float32)
    for a, b in pairwise(line):
        along = b - a
        t = np.clip((centers - a) @ along / max(float(along @ along), 1e-6), 0, 1)
        least = np.minimum(least, np.hypot(*np.moveaxis(centers - a - t[..., None] * along, -1, 0)))
    return least
