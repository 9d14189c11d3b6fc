"""What the inside of the mouth and the lids must match: skin, lips, light, tint, sharpness.

Measured once on the picture. BGR float32 throughout. Knows nothing of motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.portrait.grid import HEIGHT, WIDTH, smooth
from engine.portrait.mesh import (
    LEFT_CHEEK,
    LEFT_EYE_LOWER,
    LEFT_EYE_UPPER,
    LOWER_INNER,
    LOWER_OUTER,
    RIGHT_CHEEK,
    RIGHT_EYE_LOWER,
    RIGHT_EYE_UPPER,
    UPPER_INNER,
    UPPER_OUTER,
    VERTICES,
)

FALLBACK_SKIN = (120.0, 140.0, 180.0)


@dataclass(frozen=True, slots=True)
class Colours:
    skin: np.ndarray  # [3] median of the cheeks
    lip: np.ndarray  # [3] median of the lower lip
    light: float  # 0..1, how bright lit skin is
    tint: np.ndarray  # [3] factors for neutral colours: the picture's light and colour cast
    chroma: float  # 0..1: 0 in a black-and-white picture
    blur: float  # px sigma that makes painted detail as soft as the picture


def measure_colours(pixels: np.ndarray, landmarks: np.ndarray) -> Colours:
    bgr = pixels[..., :3]
    cheeks = _inside(bgr, landmarks, [RIGHT_CHEEK, LEFT_CHEEK])
    if not len(cheeks):
        cheeks = np.array([FALLBACK_SKIN], np.float32)
    skin = np.median(cheeks, 0)
    lip = np.concatenate(
        [
            _inside(bgr, landmarks, [(*LOWER_OUTER, *LOWER_INNER[::-1])]),
            _inside(bgr, landmarks, [(*UPPER_OUTER, *UPPER_INNER[::-1])]),
        ]
    )
    light = float(np.percentile(cheeks.mean(1), 85) / 255)
    white = _white(bgr, landmarks, skin)
    lip = np.median(lip, 0) if len(lip) else skin * 0.7
    # Pale skin may be almost grey in a coloured picture: the lips tell.
    chroma = max(float(np.ptp(c) / max(float(c.max()), 1.0)) for c in (skin, lip))
    return Colours(
        skin.astype(np.float32),
        lip.astype(np.float32),
        light,
        _tint(skin, light, white),
        float(smooth(np.array(chroma), 0.03, 0.22)),
        _blur(bgr, landmarks),
    )


def _inside(bgr: np.ndarray, landmarks: np.ndarray, polygons: list) -> np.ndarray:
    """[n, 3] float32 pixels of polygons given by vertex numbers."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    for vertices in polygons:
        cv2.fillPoly(mask, [np.round(landmarks[list(vertices), :2]).astype(np.int32)], (255,))
    return bgr[mask > 0].astype(np.float32)


def _white(bgr: np.ndarray, landmarks: np.ndarray, skin: np.ndarray) -> np.ndarray | None:
    """[3] the white of the eyes: what white is in this picture's light, whatever the skin. None
    when it does not show."""
    openings = [
        (*RIGHT_EYE_UPPER, *RIGHT_EYE_LOWER[::-1]),
        (*LEFT_EYE_UPPER, *LEFT_EYE_LOWER[::-1]),
    ]
    eyes = _inside(bgr, landmarks, openings)
    if len(eyes) < 20:
        return None
    bright = eyes.mean(1)
    white = eyes[bright >= np.percentile(bright, 75)].mean(0)
    greyer = np.ptp(white) / white.max() < 0.8 * np.ptp(skin) / max(float(skin.max()), 1.0)
    return white if greyer and white.mean() > 0.9 * skin.mean() else None


def _tint(skin: np.ndarray, light: float, white: np.ndarray | None) -> np.ndarray:
    """Colour of white things. From the eyes' white where it shows; else part of the skin's cast,
    more for strongly tinted paintings, times the light."""
    if white is not None:
        light = max(light, float(white.mean()) / 255)
        cast, mix = white / float(white.max()), 0.8
    else:
        cast = skin / max(float(skin.max()), 1.0)
        mix = 0.30 + 0.45 * float(smooth(np.array(1 - cast.min()), 0.25, 0.65))
    return ((cast * mix + 1 - mix) * np.clip(light * 1.05, 0.35, 1.0)).astype(np.float32)


def _blur(bgr: np.ndarray, landmarks: np.ndarray) -> float:
    """From how sharp the face's edges are: its strongest detail under 0.8 px over that under 3 px,
    0.35 in sharp pictures, 0.16 in one enlarged 3.5 times."""
    limit = [WIDTH - 4, HEIGHT - 4]
    low = np.clip(landmarks[:VERTICES, :2].min(0), 0, limit).astype(int)
    high = np.clip(landmarks[:VERTICES, :2].max(0), low + 4, [WIDTH, HEIGHT]).astype(int)
    face = cv2.cvtColor(
        np.ascontiguousarray(bgr[low[1] : high[1], low[0] : high[0]]), cv2.COLOR_BGR2GRAY
    ).astype(np.float32)
    fine, all_detail = (
        float(np.percentile(np.abs(face - cv2.GaussianBlur(face, (0, 0), sigma)), 98))
        for sigma in (0.8, 3.0)
    )
    return float(np.clip((0.40 - fine / max(all_detail, 1e-3)) * 7, 0.40, 1.7))
