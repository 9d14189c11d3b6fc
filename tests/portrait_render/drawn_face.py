"""A face drawn from the canonical mesh at any place and size: landmarks as data, no detector."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from engine.portrait import mesh
from engine.portrait.canvas import Canvas
from engine.portrait.grid import HEIGHT, WIDTH

CANONICAL = Path(__file__).with_name("canonical_face.npy")  # [468, 3], centimetres of a face
SKIN, LIP, DARK, WHITE = (150, 180, 225), (90, 90, 190), (40, 45, 60), (240, 240, 240)


def landmarks(center: tuple[float, float], scale: float, turn_deg: float = 0.0) -> np.ndarray:
    """[478, 3] float32 canvas px; `scale` px a centimetre."""
    points = np.load(CANONICAL, allow_pickle=False).astype(np.float64)
    turn = np.deg2rad(turn_deg)
    rotation = np.array(
        [[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]]
    )
    irises = []
    for upper, lower in (
        (mesh.RIGHT_EYE_UPPER, mesh.RIGHT_EYE_LOWER),
        (mesh.LEFT_EYE_UPPER, mesh.LEFT_EYE_LOWER),
    ):
        middle = points[list(upper + lower)].mean(0)
        ring = [(0, 0), (0.55, 0), (0, -0.55), (-0.55, 0), (0, 0.55)]
        irises.append(middle + np.array([(x, y, 0) for x, y in ring]))
    points = np.concatenate([points, *irises]) @ rotation.T * scale
    points[:, :2] += center
    return points.astype(np.float32)


def drawn_canvas(points: np.ndarray, style: str = "photo") -> Canvas:
    """A plain shaded face with its parts where `points` say, on a calm background."""
    ramp = np.linspace(170, 120, HEIGHT)[:, None, None] * np.array([1.0, 0.95, 0.9])
    picture = np.ascontiguousarray(np.broadcast_to(ramp, (HEIGHT, WIDTH, 3)).astype(np.uint8))
    xy = points[:, :2]

    def polygon(vertices: tuple[int, ...], colour: tuple[int, int, int]) -> None:
        corners = np.round(xy[list(vertices)] * 16).astype(np.int32)
        cv2.fillPoly(picture, [corners], colour, cv2.LINE_AA, 4)

    polygon(mesh.OVAL, SKIN)
    for upper, lower, iris in (
        (mesh.RIGHT_EYE_UPPER, mesh.RIGHT_EYE_LOWER, mesh.RIGHT_IRIS),
        (mesh.LEFT_EYE_UPPER, mesh.LEFT_EYE_LOWER, mesh.LEFT_IRIS),
    ):
        polygon(upper + lower[::-1], WHITE)
        radius = float(np.linalg.norm(xy[iris + 1] - xy[iris]))
        center = tuple(np.round(xy[iris] * 16).astype(int).tolist())
        cv2.circle(picture, center, max(1, round(radius * 0.8 * 16)), DARK, -1, cv2.LINE_AA, 4)
    polygon(mesh.UPPER_OUTER + mesh.UPPER_INNER[::-1], LIP)
    polygon(mesh.LOWER_OUTER + mesh.LOWER_INNER[::-1], LIP)
    polygon(mesh.UPPER_INNER + mesh.LOWER_INNER[::-1], DARK)
    right_brow = (70, 63, 105, 66, 107, 55, 65, 52, 53, 46)
    left_brow = (300, 293, 334, 296, 336, 285, 295, 282, 283, 276)
    for brow in (right_brow, left_brow):
        polygon(brow, DARK)
    picture = cv2.GaussianBlur(picture, (0, 0), 1.0)
    return Canvas(np.dstack([picture, np.full((HEIGHT, WIDTH), 255, np.uint8)]), points, 1.0, style)
