"""Rigid head motion on the grid: depth, how much each cell follows the head, the turn itself.

One layer: the silhouette sits near the depth of the ears and hardly moves, so the background
behind the hair looks untouched up to 10 degrees. Knows nothing of expressions.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.fields import ear_depth, oval_radius
from engine.portrait.grid import (
    CELL,
    COLS,
    HEIGHT,
    ROWS,
    WIDTH,
    centers_px,
    smooth,
    to_cells,
)
from engine.portrait.headframe import HeadFrame
from engine.portrait.mesh import CHIN_TIP, EARS, OVAL

DEPTH_BLUR, OUTLINE_BLUR = 0.05, 0.16  # S: raw depth makes scalloped jaws at 10 degrees
OUTLINE = (0.45, 0.85)  # of the oval: where the stronger blur takes over
SLOPE = (0.9, 1.5)  # depth per px: flattened between these, so that no turn can fold the skin
NECK_FADE = (-0.25, 1.25)  # S below the chin
HEAD_OUTLINE = 1.18  # of the oval: ears and a cap of hair
SIDE_FADE = 1.0  # S beyond the head's outline
BORDER_FADE = 0.35  # S from the canvas border, where there are no pixels to bring in
PIVOT_DOWN, PIVOT_BACK = 0.15, 0.10  # S from the middle of the ears
BREATH_RISE = 0.022  # S
BREATH_ROWS = (0.35, 1.5)  # S below the chin: shoulders begin to rise, rise in full
BREATH_SIDE = (1.7, 2.8)  # S from the neck's middle


@dataclass(frozen=True, slots=True)
class Head:
    """`follow` [ROWS, COLS] 0..1, `depth` [ROWS, COLS] cells relative to `pivot` [2] cells."""

    frame: HeadFrame
    follow: np.ndarray
    depth: np.ndarray
    pivot: np.ndarray


def make_head(frame: HeadFrame, landmarks: np.ndarray, depth: np.ndarray) -> Head:
    centers = centers_px()
    radius = oval_radius(frame, landmarks, centers)
    follow = _follow(frame, landmarks, centers)
    ears = landmarks[list(EARS), :2].astype(np.float64).mean(0)
    pivot = ears + PIVOT_DOWN * frame.s * frame.down
    back = ear_depth(landmarks) + PIVOT_BACK * frame.s
    relative = (limit_slope(depth, radius, frame.s / CELL) - back) / CELL
    return Head(frame, follow.astype(np.float32), relative.astype(np.float32), to_cells(pivot))


def limit_slope(depth: np.ndarray, radius: np.ndarray, s_cells: float) -> np.ndarray:
    """Blur toward the outline, then wherever the depth is still steeper than about 1."""
    near = cv2.GaussianBlur(depth, (0, 0), DEPTH_BLUR * s_cells)
    far = cv2.GaussianBlur(depth, (0, 0), OUTLINE_BLUR * s_cells)
    mix = smooth(radius, *OUTLINE).astype(np.float32)
    depth = near * (1 - mix) + far * mix
    for _ in range(3):
        dx = cv2.Sobel(depth, cv2.CV_32F, 1, 0, ksize=3) / (8 * CELL)
        dy = cv2.Sobel(depth, cv2.CV_32F, 0, 1, ksize=3) / (8 * CELL)
        steep = smooth(np.hypot(dx, dy), *SLOPE).astype(np.float32)
        steep = cv2.GaussianBlur(steep, (0, 0), DEPTH_BLUR * s_cells)
        depth = depth * (1 - steep) + cv2.GaussianBlur(depth, (0, 0), 0.12 * s_cells) * steep
    return depth


def _follow(frame: HeadFrame, landmarks: np.ndarray, centers: np.ndarray) -> np.ndarray:
    below = (centers - landmarks[CHIN_TIP, :2]) @ frame.down / frame.s
    oval = landmarks[list(OVAL), :2].astype(np.float64)
    outline = oval.mean(0) + (oval - oval.mean(0)) * HEAD_OUTLINE
    outside = np.full((ROWS, COLS), 255, np.uint8)
    cv2.fillPoly(outside, [np.round(to_cells(outline)).astype(np.int32)], (0,))
    distance = cv2.distanceTransform(outside, cv2.DIST_L2, 5) * CELL / frame.s
    side = 1 - smooth(distance, 0.0, SIDE_FADE)
    return (1 - smooth(below, *NECK_FADE)) * side * border_fade(centers, BORDER_FADE * frame.s)


def border_fade(centers: np.ndarray, width: float) -> np.ndarray:
    """0 at the canvas border, 1 from `width` px on. Hair at the top may move four times closer."""
    x, y = centers[..., 0], centers[..., 1]
    nearest = np.minimum(np.minimum(x, WIDTH - 1 - x), HEIGHT - 1 - y)
    nearest = np.minimum(nearest, 4 * np.maximum(y, 0) + 0.15 * width)
    return smooth(nearest, 0.0, width)


def breath_field(frame: HeadFrame, landmarks: np.ndarray) -> np.ndarray:
    """[ROWS, COLS, 2] cells at breath = 1: shoulders and chest rise, a little outward."""
    centers = centers_px()
    offset = centers - landmarks[CHIN_TIP, :2]
    below, beside = offset @ frame.down / frame.s, offset @ frame.right / frame.s
    weight = smooth(below, *BREATH_ROWS) * (1 - smooth(np.abs(beside), *BREATH_SIDE))
    weight *= border_fade(centers, 0.3 * frame.s)
    rise = -frame.down * BREATH_RISE * frame.s / CELL
    return (weight[..., None] * (rise + 0.25 * beside[..., None] * np.abs(rise[1]) * frame.right)
            ).astype(np.float32)  # fmt: skip


def head_matrix(head: Head, token: np.ndarray) -> np.ndarray | None:
    """[2, 4]: (x, y, depth) from the pivot, in cells -> how far to move; None when at rest.

    Yaw and pitch turn about the head's own axes, roll about the viewer's.
    """
    yaw, pitch, roll = (
        np.deg2rad(float(token[INDEX[n]])) for n in ("headYaw", "headPitch", "headRoll")
    )
    x, y = float(token[INDEX["headX"]]), float(token[INDEX["headY"]])
    if max(abs(yaw), abs(pitch), abs(roll), abs(x), abs(y)) < 1e-5:
        return None
    cy, sy, cp, sp = np.cos(-yaw), np.sin(-yaw), np.cos(pitch), np.sin(pitch)
    turn_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    turn_x = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    cr, sr = np.cos(roll), np.sin(roll)
    turn_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    axes = head.frame.axes
    turn = turn_z @ axes @ turn_x @ turn_y @ axes.T
    s_cells = head.frame.s / CELL
    move = np.array([x * s_cells, y * s_cells])
    return np.concatenate([(turn - np.eye(3))[:2], move[:, None]], 1)
