"""Airbrush: soft shapes on a sheet, for the drawings of the starter library.

Smooth closed outlines, filled, shaded from within, blurred, strokes that taper. Units are `u`
around the face's origin between the eyes, y down. Knows nothing of what is drawn.
"""

from __future__ import annotations

import cv2
import numpy as np

WIDTH, HEIGHT = 880, 1360
UNIT_PX = 110.0  # px of one u
ORIGIN_PX = np.array([440.0, 560.0])  # where (0, 0) lies
FINE = 3  # masks are drawn this much finer and averaged

Points = list[tuple[float, float]]
Colour = tuple[int, int, int]  # RGB, 0..255


def mirrored(points: Points) -> Points:
    """The right half of a symmetric outline (x >= 0, from top to bottom) -> the whole of it."""
    left = [(-x, y) for x, y in reversed(points) if x > 1e-6]
    return [*points, *left]


def flipped(points: Points) -> Points:
    return [(-x, y) for x, y in points]


def curve(points: Points, closed: bool = True, per_span: int = 24) -> np.ndarray:
    """Catmull-Rom through the points [n, 2]; in u."""
    p = np.array(points, np.float64)
    p = np.vstack([p[-1:], p, p[:2]]) if closed else np.vstack([p[:1], p, p[-1:]])
    t = np.linspace(0, 1, per_span, endpoint=False)[:, None]
    spans = []
    for a, b, c, d in zip(p[:-3], p[1:-2], p[2:-1], p[3:], strict=True):
        spans.append(
            b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
        )
    return np.vstack([*spans, p[-2:-1]]) if not closed else np.vstack(spans)


def to_px(points_u: np.ndarray) -> np.ndarray:
    return points_u * UNIT_PX + ORIGIN_PX


def _polygon(points_u: np.ndarray) -> np.ndarray:
    mask = np.zeros((HEIGHT * FINE, WIDTH * FINE), np.uint8)
    px = np.round(to_px(points_u) * FINE * 16).astype(np.int32)
    cv2.fillPoly(mask, [px], 255, lineType=cv2.LINE_8, shift=4)
    return cv2.resize(mask, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA) / np.float32(255)


def shape(points: Points) -> np.ndarray:
    """Mask [h, w] float32 0..1 of a smooth closed outline."""
    return _polygon(curve(points))


def ellipse(x: float, y: float, rx: float, ry: float, turn_deg: float = 0.0) -> np.ndarray:
    t = np.linspace(0, 2 * np.pi, 160, endpoint=False)
    c, s = np.cos(np.radians(turn_deg)), np.sin(np.radians(turn_deg))
    ex, ey = rx * np.cos(t), ry * np.sin(t)
    return _polygon(np.stack([x + c * ex - s * ey, y + s * ex + c * ey], 1))


def stroke(points: Points, width: float, ends: float = 0.1) -> np.ndarray:
    """Mask of a line through the points: `width` u in the middle, `ends` of it at both ends."""
    line = curve(points, closed=False)
    along = np.gradient(line, axis=0)
    normal = np.stack([-along[:, 1], along[:, 0]], 1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    t = np.linspace(0, 1, len(line))[:, None]
    half = width / 2 * (ends + (1 - ends) * np.sin(np.pi * t) ** 0.7)
    return _polygon(np.vstack([line + normal * half, (line - normal * half)[::-1]]))


def soft(mask: np.ndarray, sigma_u: float) -> np.ndarray:
    return cv2.GaussianBlur(mask, (0, 0), sigma_u * UNIT_PX)


def moved(mask: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """Shifted by u; what comes in at the border is a copy of the border."""
    shift = np.array([[1, 0, dx * UNIT_PX], [0, 1, dy * UNIT_PX]])
    return cv2.warpAffine(mask, shift, (WIDTH, HEIGHT), borderMode=cv2.BORDER_REPLICATE)


class Sheet:
    """The drawing under way: `pixels` [h, w, 3] float32 RGB 0..255."""

    def __init__(self, top: Colour, bottom: Colour, glow: Colour) -> None:
        y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
        ramp = (y / HEIGHT)[:, :, None]
        self.pixels = np.float32(top) * (1 - ramp) + np.float32(bottom) * ramp
        far = np.hypot((x - 0.42 * WIDTH) / WIDTH, (y - 0.30 * HEIGHT) / HEIGHT)
        self.paint(np.clip(1 - far / 0.75, 0, 1) ** 2, glow, 0.75)

    def paint(self, mask: np.ndarray, colour: Colour, strength: float = 1.0) -> None:
        weight = (mask * np.float32(strength))[:, :, None]
        self.pixels += weight * (np.float32(colour) - self.pixels)

    def shade(
        self, mask: np.ndarray, colour: Colour, dx: float, dy: float, sigma: float, strength: float
    ) -> None:
        """Colour along the inner edge of the mask: on the side the light (dx, dy) does not move
        to. Positive dy leaves the upper edge, negative the lower one."""
        self.paint(mask * (1 - soft(moved(mask, dx, dy), sigma)), colour, strength)

    def bgr(self) -> np.ndarray:
        """Finished: [h, w, 3] uint8 with a breath of grain, so that flat parts do not band."""
        grain = np.random.default_rng(7).normal(0, 1.1, (HEIGHT, WIDTH, 1)).astype(np.float32)
        return np.clip(self.pixels[:, :, ::-1] + grain + 0.5, 0, 255).astype(np.uint8)
