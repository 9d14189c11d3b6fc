"""Plain geometry on 478 landmarks: angles, mouth gap, eye distance, likeness to a face.

Lengths in units of S, the distance of the outer eye corners in 3D. Knows nothing of pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Pairs (person's right, left): outer eye corners, mouth corners, ears' edge of the mesh, jaw.
PAIRS = np.array([[33, 263], [61, 291], [234, 454], [127, 356], [172, 397]])
RIGHT_EYE, LEFT_EYE = 33, 263
FOREHEAD, CHIN, NOSE_TIP = 10, 152, 1
MOUTH_RIGHT, MOUTH_LEFT = 61, 291
INNER_LIPS = np.array([[13, 14], [82, 87], [312, 317]])  # (upper, lower)
EYE_MM = 90.0  # S of an adult: turns shares of S into millimetres


@dataclass(frozen=True, slots=True)
class Angles:
    """Degrees. Yaw + turns to the picture's right, pitch + looks down, roll + tilts clockwise."""

    yaw: float
    pitch: float
    roll: float


def eye_distance(points: np.ndarray) -> float:
    """S in px, from [478, 3]."""
    return float(np.linalg.norm(points[LEFT_EYE] - points[RIGHT_EYE]))


def angles(points: np.ndarray) -> Angles:
    """Head angles from the mean left-right axis and the forehead-chin axis of [478, 3]."""
    across = (points[PAIRS[:, 1]] - points[PAIRS[:, 0]]).astype(np.float64)
    x = across.sum(0)
    x /= max(np.linalg.norm(x), 1e-9)
    y = (points[CHIN] - points[FOREHEAD]).astype(np.float64)
    y -= x * (x @ y)
    y /= max(np.linalg.norm(y), 1e-9)
    yaw = np.degrees(np.arctan2(x[2], np.hypot(x[0], x[1])))
    pitch = np.degrees(np.arctan2(y[2], np.hypot(y[0], y[1])))
    roll = np.degrees(np.arctan2(x[1], x[0]))
    return Angles(float(yaw), float(pitch), float(roll))


def mouth_gap_mm(points: np.ndarray) -> float:
    """Mean distance of the inner lips, as millimetres on an adult face."""
    gap = np.linalg.norm(points[INNER_LIPS[:, 0]] - points[INNER_LIPS[:, 1]], axis=1).mean()
    return float(gap / max(eye_distance(points), 1e-6) * EYE_MM)


def is_face_like(points: np.ndarray) -> bool:
    """Eyes, nose, mouth and chin in a face's order and at a face's distances. Wide limits: the
    drawn faces of the test pictures lie well inside, hands, leaves and muzzles mostly not."""
    s = eye_distance(points)
    xy = points[:, :2].astype(np.float64)
    eyes = (xy[RIGHT_EYE] + xy[LEFT_EYE]) / 2
    mouth = (xy[MOUTH_RIGHT] + xy[MOUTH_LEFT]) / 2
    down = xy[CHIN] - xy[FOREHEAD]
    length = np.linalg.norm(down)
    if s < 8 or length < 1e-6:
        return False
    down /= length
    along = [float((p - xy[FOREHEAD]) @ down) for p in (eyes, xy[NOSE_TIP], mouth, xy[CHIN])]
    gaps = np.diff([0.0, *along]) / s
    mouth_width = np.linalg.norm(xy[MOUTH_LEFT] - xy[MOUTH_RIGHT]) / s
    return bool((gaps > 0.08).all() and (gaps < 1.6).all() and 0.15 < mouth_width < 1.2
                and 0.8 < length / s < 3.0)  # fmt: skip
