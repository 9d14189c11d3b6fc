"""Two strips of teeth, drawn once a picture in millimetres and scaled to its pixels.

Knows nothing of mouths, motion or light.
"""

from __future__ import annotations

import cv2
import numpy as np

STRIP_MM = (60.0, 16.0)  # width, height
DRAW_PX = 8  # px a mm while drawing
# From the middle outwards, mm.
UPPER_WIDTHS, UPPER_HEIGHTS = (8.4, 6.6, 7.4, 6.6, 6.4, 8.5), (10.2, 9.7, 9.9, 9.2, 8.8, 8.2)
LOWER_WIDTHS, LOWER_HEIGHTS = (5.4, 5.9, 6.8, 6.6, 6.6, 9.0), (8.6, 8.8, 9.4, 8.2, 7.6, 7.0)
UPPER_ARCH, LOWER_ARCH = 25.0, 22.0  # radius
ENAMEL = np.array([206, 222, 232], np.float32)  # BGR
GUM = np.array([96, 92, 170], np.float32)
BETWEEN = np.array([128, 148, 174], np.float32)  # never black: that reads as a denture
FLAT = np.array([222, 232, 240], np.float32)  # the drawn style: one band


def teeth_strip(upper: bool, drawn: bool, px_per_mm: float) -> np.ndarray:
    """[h, w, 4] float32, BGR premultiplied by alpha 0..1, 60 x 16 mm. The upper strip's roots are
    at its top edge, the lower one's at its bottom edge."""
    w, h = (int(mm * DRAW_PX) for mm in STRIP_MM)
    y, x = np.mgrid[0:h, 0:w].astype(np.float32) / DRAW_PX
    x -= STRIP_MM[0] / 2
    down = y if upper else STRIP_MM[1] - y  # mm from the roots
    colour, alpha = _teeth(x, down, upper)
    colour, alpha = _joined(colour, alpha, x, upper, drawn)
    gum = np.clip((2.2 - down) / 1.2, 0, 1)[..., None] * 0.8
    if not drawn:
        colour = colour * (1 - gum) + GUM * gum
    strip = np.dstack([colour * alpha[..., None], alpha])
    strip = cv2.GaussianBlur(strip, (0, 0), 0.16 * DRAW_PX)
    size = (max(8, round(STRIP_MM[0] * px_per_mm)), max(4, round(STRIP_MM[1] * px_per_mm)))
    return cv2.resize(strip, size, interpolation=cv2.INTER_AREA)


def _teeth(x: np.ndarray, down: np.ndarray, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    radius = UPPER_ARCH if upper else LOWER_ARCH
    widths = UPPER_WIDTHS if upper else LOWER_WIDTHS
    heights = UPPER_HEIGHTS if upper else LOWER_HEIGHTS
    starts = np.concatenate([[0.0], np.cumsum(widths)])
    colour, alpha = np.zeros((*x.shape, 3), np.float32), np.zeros(x.shape, np.float32)
    for side in (-1, 1):
        for a, b, height in zip(starts[:-1], starts[1:], heights, strict=True):
            # On the arch a tooth turns away to the side: narrower, darker, a little shorter.
            xa, xb = (radius * 1.02 * np.sin(s / radius / 1.12) for s in (a, b))
            turned = 1 - float(np.cos((a + b) / 2 / radius / 1.12))
            if xb - xa < 0.6:
                continue
            u = (x - side * (xa + xb) / 2) / ((xb - xa) / 2 - 0.06)
            tooth, cover = _tooth(u, down, (xb - xa) / 2, height - 2.0 * turned, turned)
            on_top = (cover > alpha)[..., None]
            colour, alpha = np.where(on_top, tooth, colour), np.maximum(alpha, cover)
    return colour, alpha


def _tooth(
    u: np.ndarray, down: np.ndarray, half: float, height: float, turned: float
) -> tuple[np.ndarray, np.ndarray]:
    """Colour and cover of one tooth; `u` -1..1 across it, rounded at its edge."""
    edge = height - 0.55 * np.abs(u) ** 4 - 0.12 * (1 - np.abs(u))
    cover = np.clip((edge - down) * DRAW_PX * 0.9, 0, 1)
    cover = cover * np.clip((1 - np.abs(u)) * half * DRAW_PX * 0.8, 0, 1)
    v = np.clip(down / np.maximum(edge, 1e-3), 0, 1)
    shade = (0.86 + 0.14 * np.sin(v * np.pi * 0.75)) * (1 - 0.10 * np.abs(u) ** 3)
    warm = np.stack([1 - 0.05 * (1 - v), 1 - 0.02 * (1 - v), np.ones_like(v)], -1)
    return ENAMEL * warm * (shade * (1 - 0.75 * turned))[..., None], cover


def _joined(
    colour: np.ndarray, alpha: np.ndarray, x: np.ndarray, upper: bool, drawn: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Between the teeth a soft line instead of a hole; the drawn style is one even band."""
    width = int(DRAW_PX * (1.6 if drawn else 1.2))
    full = cv2.morphologyEx(alpha, cv2.MORPH_CLOSE, np.ones((3, width), np.uint8))
    turned = 1 - np.cos(np.arctan2(np.abs(x), UPPER_ARCH if upper else LOWER_ARCH))
    if drawn:
        return FLAT * (1 - 0.5 * turned)[..., None], full
    gap = (full - alpha)[..., None]
    return colour * (1 - gap) + BETWEEN * (1 - 0.8 * turned)[..., None] * gap, full
