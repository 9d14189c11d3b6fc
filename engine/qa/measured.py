"""What is taken from each frame of a video, and from nothing else: plain arrays.

Knows nothing of how the frames were made, of phones or of scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from engine.qa.tracker import Tracker

EYES = (33, 263)  # outer corners: their distance is S
NOSE_WINGS = (98, 327)
LIP_CORNERS = (61, 291)
INNER_LIPS = ((13, 14), (82, 87), (312, 317))  # (upper, lower): the middle of the mouth
STRIP_PX_PER_S = 128
STRIP_S = (0.25, 0.9)  # width and height of the strip below the nose, in S
STRIP = (int(STRIP_S[1] * STRIP_PX_PER_S), int(STRIP_S[0] * STRIP_PX_PER_S))  # rows, columns
FACE_PX = 160  # side of the grey face patch that sharpness is taken from
FACE_S = 1.7  # its side in S
SMALL = 4  # frames are compared at a quarter of their size


@dataclass(frozen=True, slots=True)
class Measured:
    """n frames. `times_s` [n] of their middles, 0 = first sample of the sound; `landmarks`
    [n, 478, 2] px, nan without a face; `strips` [n, *STRIP, 3] BGR columns below the nose; `luma`
    [n] 0..255 mean; `change` [n] mean difference from the frame before, first 0; `sharp` [n]
    variance of the Laplacian of the face at FACE_PX, nan without a face."""

    times_s: np.ndarray
    landmarks: np.ndarray
    strips: np.ndarray
    luma: np.ndarray
    change: np.ndarray
    sharp: np.ndarray

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def seen(self) -> np.ndarray:
        """[n] bool: a face was found."""
        return np.isfinite(self.landmarks[:, 0, 0])


def eye_line(points: np.ndarray) -> tuple[np.ndarray, float]:
    """(unit vector [2] from the right to the left eye, S in px) of landmarks [478, 2]."""
    across = points[EYES[1]] - points[EYES[0]]
    s = max(float(np.linalg.norm(across)), 1e-6)
    return across / s, s


def strip_below_nose(bgr: np.ndarray, points: np.ndarray) -> np.ndarray:
    """[*STRIP, 3]: the columns through the middle of the mouth, upright and in units of S."""
    right, s = eye_line(points)
    down = np.array([-right[1], right[0]])
    nose = points[list(NOSE_WINGS)].mean(0)
    sideways = (points[list(LIP_CORNERS)].mean(0) - nose) @ right
    step = s / STRIP_PX_PER_S
    origin = nose + right * (sideways - STRIP_S[0] / 2 * s)
    matrix = np.column_stack([right * step, down * step, origin])
    return _sampled(bgr, matrix, (STRIP[1], STRIP[0]))


def sharpness(grey: np.ndarray, points: np.ndarray) -> float:
    """Variance of the Laplacian of the face, cut upright at FACE_PX."""
    right, s = eye_line(points)
    down = np.array([-right[1], right[0]])
    step = FACE_S * s / FACE_PX
    middle = points[list(NOSE_WINGS)].mean(0)
    matrix = np.column_stack([right * step, down * step, middle - (right + down) * FACE_S * s / 2])
    return float(cv2.Laplacian(_sampled(grey, matrix, (FACE_PX, FACE_PX)), cv2.CV_32F).var())


def _sampled(pixels: np.ndarray, matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(pixels, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)


class Measurer:
    """Takes frames in order; `measured()` gives the arrays."""

    def __init__(self, models: Path | None = None) -> None:
        self._tracker = Tracker(models)
        self._before: np.ndarray | None = None
        self._times: list[float] = []
        self._points: list[np.ndarray] = []
        self._strips: list[np.ndarray] = []
        self._numbers: list[tuple[float, float, float]] = []

    def push(self, bgr: np.ndarray, time_s: float) -> None:
        """One uint8 BGR frame [h, w, 3] whose middle is shown at `time_s` of the sound."""
        grey = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)
        small = cv2.resize(
            grey, None, fx=1 / SMALL, fy=1 / SMALL, interpolation=cv2.INTER_AREA
        )  # fmt: skip
        change = 0.0
        if self._before is not None and self._before.shape == small.shape:
            change = float(cv2.absdiff(small, self._before).mean())
        self._before = small
        points = self._tracker.landmarks(bgr)
        self._times.append(time_s)
        if points is None:
            self._points.append(np.full((478, 2), np.nan, np.float32))
            self._strips.append(np.zeros((*STRIP, 3), np.uint8))
        else:
            self._points.append(points)
            self._strips.append(strip_below_nose(bgr, points))
        sharp = float("nan") if points is None else sharpness(grey, points)
        self._numbers.append((float(small.mean()), change, sharp))

    def measured(self, times_s: np.ndarray | None = None) -> Measured:
        """`times_s` [n] replaces the times of the pushes: a file tells them only at its end."""
        n = len(self._times)
        numbers = np.array(self._numbers, np.float64).reshape(n, 3)
        return Measured(
            np.array(self._times) if times_s is None else times_s,
            np.array(self._points, np.float32).reshape(n, 478, 2),
            np.array(self._strips, np.uint8).reshape(n, *STRIP, 3),
            *numbers.T,
        )
