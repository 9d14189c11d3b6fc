"""An eye's own coordinates: along and across its axis, with the margins of both lids.

Knows nothing of pixels' colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from engine.portrait.curves import open_spline
from engine.portrait.grid import HEIGHT, WIDTH
from engine.portrait.mesh import (
    LEFT_EYE_LOWER,
    LEFT_EYE_UPPER,
    LEFT_IRIS,
    RIGHT_EYE_LOWER,
    RIGHT_EYE_UPPER,
    RIGHT_IRIS,
)
from engine.portrait.sampling import read_rows

SAMPLES = 96
BEFORE, AFTER = 0.35, 1.35  # of the eye's width: how far the margins are carried on
LEAST_WIDTH = 4.0  # px: narrower eyes are left alone


@dataclass(frozen=True, slots=True)
class Eye:
    """Vertex numbers and the coefficient's letter. Margins run from left to right."""

    letter: str
    upper: tuple[int, ...]
    lower: tuple[int, ...]
    iris: int


EYES = (
    Eye("R", RIGHT_EYE_UPPER, RIGHT_EYE_LOWER, RIGHT_IRIS),
    Eye("L", LEFT_EYE_UPPER, LEFT_EYE_LOWER, LEFT_IRIS),
)


@dataclass(frozen=True, slots=True)
class EyeGrid:
    """Per pixel of a canvas rectangle, in px: `x` along the eye from its left corner, `y` across
    (down), `top` and `bottom` the lid margins at that x; `ends` 0 at the corners, 1 between."""

    rows: slice
    cols: slice
    width: float  # px of the eye
    right: np.ndarray  # [2] unit vectors in the picture
    down: np.ndarray
    x: np.ndarray
    y: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    ends: np.ndarray


def eye_grid(
    eye: Eye, points: np.ndarray, sides: float, above: float, below: float
) -> EyeGrid | None:
    """The rectangle reaches `sides`, `above`, `below` eye widths beyond the lids. None: no eye."""
    upper, lower = points[list(eye.upper), :2], points[list(eye.lower), :2]
    origin, along = upper[0].astype(np.float64), (upper[-1] - upper[0]).astype(np.float64)
    width = float(np.hypot(*along))
    if width < LEAST_WIDTH:
        return None
    right = along / width
    down = np.array([-right[1], right[0]])
    all_points = np.concatenate([upper, lower])
    reach = np.array([sides, above]) * width, np.array([sides, below]) * width
    x0, y0 = np.maximum(np.floor(all_points.min(0) - reach[0]), 0).astype(int)
    x1, y1 = np.minimum(np.ceil(all_points.max(0) + reach[1]), [WIDTH, HEIGHT]).astype(int)
    if x1 - x0 < 3 or y1 - y0 < 3:
        return None
    px = np.arange(x0, x1, dtype=np.float32)[None] - np.float32(origin[0])
    py = np.arange(y0, y1, dtype=np.float32)[:, None] - np.float32(origin[1])
    x = px * np.float32(right[0]) + py * np.float32(right[1])
    y = px * np.float32(down[0]) + py * np.float32(down[1])
    column = (x / width + BEFORE) * ((SAMPLES - 1) / (AFTER + BEFORE))
    zero = np.zeros_like(column)
    margins = [_margin(p - origin, right, down, width) for p in (upper, lower)]
    top, bottom, ends = (read_rows(row, column, zero) for row in (*margins, _ends()))
    return EyeGrid(slice(y0, y1), slice(x0, x1), width, right, down, x, y, top,
                   np.maximum(bottom, top), ends)  # fmt: skip


@lru_cache(maxsize=1)
def _ends() -> np.ndarray:
    """[1, SAMPLES] float32: 0 at the corners and beyond, 1 between."""
    t = np.clip(np.linspace(-BEFORE, AFTER, SAMPLES), 0, 1)
    return (np.maximum(np.sin(np.pi * t), 0) ** 0.6)[None].astype(np.float32)


def _margin(points: np.ndarray, right: np.ndarray, down: np.ndarray, width: float) -> np.ndarray:
    """[1, SAMPLES] float32: y of a lid margin over x from -0.35 to 1.35 widths."""
    curve = open_spline(9, 33) @ np.stack([points @ right, points @ down], 1)
    x = np.linspace(-BEFORE * width, AFTER * width, SAMPLES)
    y = np.interp(x, np.maximum.accumulate(curve[:, 0]), curve[:, 1]).astype(np.float32)
    return cv2.GaussianBlur(y[None], (0, 0), 1.5, borderType=cv2.BORDER_REPLICATE)
