"""The picture's own teeth, cut out of an open smile and moved rigidly with the skull.

Knows nothing of drawn teeth. Wrong about white tongues or a gum in the light: then they are used.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.portrait.canvas import Canvas
from engine.portrait.colours import Colours
from engine.portrait.curves import open_spline
from engine.portrait.grid import HEIGHT, WIDTH
from engine.portrait.mesh import LOWER_INNER, UPPER_INNER

LEAST_GAP_MM = 1.6
LEAST_SHARE = 0.25  # of the gap brighter and greyer than the lips
ANCHORS = (2, 164, 0, 13, 12, 11, 37, 267, 39, 269, 61, 291, 78, 308)
SUB = 4


@dataclass(frozen=True, slots=True)
class OwnTeeth:
    """`texture` [1088, 704, 4] uint8 BGR and cover; `rest` [n, 2] anchors in the picture."""

    texture: np.ndarray
    rest: np.ndarray

    def place(
        self, inside: np.ndarray, skull: np.ndarray, left: int, top: int, light: np.ndarray
    ) -> None:
        """Lay them over `inside` [3, h, w] float32, whose first px is canvas px (left, top);
        `light` [h, w] 0..1."""
        now = skull[list(ANCHORS)] - np.array([left, top], np.float32)
        matrix, _ = cv2.estimateAffinePartial2D(now.astype(np.float32), self.rest, method=cv2.LMEDS)
        if matrix is None:
            return
        size = (inside.shape[2], inside.shape[1])
        laid = cv2.warpAffine(
            self.texture, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        )
        *bgr, cover = cv2.split(laid)
        alpha = cover.astype(np.float32) / 255
        for plane, colour in zip(inside, bgr, strict=True):
            plane += (colour * light - plane) * alpha


def own_teeth(canvas: Canvas, colours: Colours, mm: float) -> OwnTeeth | None:
    """None when the lips are closed or no teeth show between them."""
    upper, lower = canvas.landmarks[list(UPPER_INNER), :2], canvas.landmarks[list(LOWER_INNER), :2]
    if float(np.linalg.norm(lower - upper, axis=1).max()) / mm <= LEAST_GAP_MM:
        return None
    curve = open_spline(11, 41)
    outline = np.concatenate([curve @ upper, (curve @ lower)[::-1]])
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.fillPoly(mask, [np.round(outline * (1 << SUB)).astype(np.int32)], (255,), cv2.LINE_AA, SUB)
    if _share(canvas.pixels, mask, colours) <= LEAST_SHARE:
        return None
    k = max(1, int(0.5 * mm))
    cover = cv2.GaussianBlur(
        cv2.erode(mask, np.ones((k, k), np.uint8)), (0, 0), max(0.8, 0.25 * mm)
    )
    texture = np.dstack([canvas.pixels[..., :3], cover])
    return OwnTeeth(texture, canvas.landmarks[list(ANCHORS), :2].astype(np.float32))


def _share(pixels: np.ndarray, mask: np.ndarray, colours: Colours) -> float:
    """Of the gap's pixels, how many are brighter and greyer than the lips."""
    inner = pixels[cv2.erode(mask, np.ones((3, 3), np.uint8)) > 127, :3].astype(np.float32)
    if not len(inner):
        return 0.0
    grey = np.ptp(inner, axis=1) / np.maximum(inner.max(1), 1)
    lip_grey = float(np.ptp(colours.lip) / max(float(colours.lip.max()), 1.0))
    tooth = (inner.mean(1) > colours.lip.mean() * 1.08) & (grey < lip_grey * 0.8)
    return float(tooth.mean())
