"""The head's own axes and its unit of length, from landmarks.

Knows nothing of motion. A face of any size, tilt or turn gets the same numbers in this frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.errors import EngineError
from engine.portrait.mesh import CHIN_TIP, EYE_CORNERS, FOREHEAD, VERTICES

ADULT_S_MM = 90.0  # outer-eye distance of an adult: turns S into mm
LEAST_S_PX = 8.0  # landmarks closer than this are no face that could be drawn
ACROSS = ((33, 263), (234, 454), (127, 356))  # right to left: eyes and both ear rows


@dataclass(frozen=True, slots=True)
class HeadFrame:
    """`axes` [3, 3]: columns right, down, away in canvas axes. `s` and `mm` in canvas px."""

    axes: np.ndarray
    s: float
    center: np.ndarray  # [3] px, between the outer eye corners
    local: np.ndarray  # [468, 3] vertices in units of S

    @property
    def mm(self) -> float:
        return self.s / ADULT_S_MM

    @property
    def right(self) -> np.ndarray:
        """Unit vector [2] in the picture along the eyes, to the picture's right."""
        return self.axes[:2, 0] / np.linalg.norm(self.axes[:2, 0])

    @property
    def down(self) -> np.ndarray:
        """Unit vector [2] in the picture, square to `right`."""
        return np.array([-self.right[1], self.right[0]])


def head_frame(landmarks: np.ndarray) -> HeadFrame:
    """Axes from the mean of three left-right lines and the forehead-chin line.

    Raises EngineError("face_unusable") when the landmarks are no face: not finite, or in a heap.
    """
    points = landmarks[:VERTICES].astype(np.float64)
    x = np.sum([points[b] - points[a] for a, b in ACROSS], axis=0)
    a, b = EYE_CORNERS
    s = float(np.linalg.norm(points[b] - points[a]))
    y = points[CHIN_TIP] - points[FOREHEAD]
    wide, long = float(np.hypot(x[0], x[1])), float(np.hypot(y[0], y[1]))
    if not min(wide, long, s) >= LEAST_S_PX:  # also when one is nan
        raise EngineError(
            "face_unusable",
            f"the landmarks span {s:.0f} px between the eyes, at least {LEAST_S_PX:.0f} are needed",
            "place the points again, or choose a closer picture",
        )
    x = x / float(np.linalg.norm(x))
    y = y - x * (x @ y)
    y = y / max(float(np.linalg.norm(y)), 1e-9)
    axes = np.stack([x, y, np.cross(x, y)], 1)
    center = (points[a] + points[b]) / 2
    return HeadFrame(axes, s, center, (points - center) @ axes / s)
