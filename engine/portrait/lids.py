"""Eyelids: one closed lid painted per eye and picture, slid down over the eye in a blink.

Stretching the picture's skin instead dragged wrinkles along and left slits. Knows nothing of gaze.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.eye_shape import EYES, Eye, EyeGrid, eye_grid
from engine.portrait.grid import smooth

LEAST = 0.01  # blinks below this are not drawn
# All lengths in eye widths.
COVER_TOP, COVER_SOFT = 0.20, 0.09  # the lid reaches this far above the open margin, soft edge
SKIN_ABOVE = (0.12, 0.17, 0.22, 0.27)  # where lid skin is looked for, above the upper margin
SKIN_BELOW = (0.10, 0.14, 0.18)  # and below the lower one
LASH = 0.10  # lashes below the closing line
LINE = 0.022  # half thickness of the closing line
MEET = 0.03  # lids meet this far above the lower margin
PATCH = (0.25, 0.55, 0.40)  # sides, above, below: the painted rectangle
BULGE, LID_SHADE = 0.05, 0.12


@dataclass(frozen=True, slots=True)
class Lid:
    """`patch` [h, w, 3] uint8 BGR painted at rest; its first px is canvas px (left, top)."""

    eye: Eye
    patch: np.ndarray
    left: int
    top: int


def paint_lids(pixels: np.ndarray, landmarks: np.ndarray) -> list[Lid]:
    lids = []
    for eye in EYES:
        grid = eye_grid(eye, landmarks, *PATCH)
        if grid is not None:
            patch = _paint(pixels[..., :3], grid)
            lids.append(Lid(eye, patch, grid.cols.start, grid.rows.start))
    return lids


def _paint(bgr: np.ndarray, grid: EyeGrid) -> np.ndarray:
    picture = np.ascontiguousarray(bgr[grid.rows, grid.cols]).astype(np.float32)
    w = grid.width
    skin = _skin(picture, grid)
    closing = closed_margin(grid)
    t = np.clip((grid.y - grid.top) / np.maximum(closing - grid.top, 1e-3), 0, 1)
    shade = 1 + BULGE * np.sin(np.pi * t) * grid.ends - LID_SHADE * smooth(t, 0.6, 1.0) * grid.ends
    lid = skin * shade[..., None] + _grain(picture, grid)
    lid = _with_lashes(lid, picture, grid, closing)
    cover = smooth(grid.y, *_span(grid.top - (COVER_TOP + 0.04) * w * grid.ends, COVER_SOFT * w))
    cover *= 1 - smooth(grid.y, *_span(closing + (LASH - 0.02) * w, 0.1 * w))
    cover = cover[..., None]
    return np.clip(picture * (1 - cover) + lid * cover, 0, 255).astype(np.uint8)


def _span(low: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    return low, low + width


def closed_margin(grid: EyeGrid) -> np.ndarray:
    """y of the closing line: near the lower lid, a little flatter, for each pixel's x."""
    return grid.bottom - MEET * grid.width * grid.ends - 0.08 * (grid.bottom - grid.top)


def _skin(picture: np.ndarray, grid: EyeGrid) -> np.ndarray:
    """Clean skin over the whole rectangle: from the lid above and the skin below, column by
    column, blended down the eye. The brighter samples win: lashes, creases and brows are dark."""
    w = grid.width
    blurred = cv2.GaussianBlur(picture, (0, 0), 0.02 * w + 0.5)
    above = _brighter(blurred, grid, [grid.top - k * w * np.maximum(grid.ends, 0.5) for k in SKIN_ABOVE])
    below = _brighter(blurred, grid, [grid.bottom + k * w for k in SKIN_BELOW])
    t = smooth(grid.y, grid.top - 0.15 * w, grid.bottom + 0.12 * w)[..., None]
    return cv2.GaussianBlur(above * (1 - t) + below * t, (0, 0), 0.06 * w)


def _brighter(blurred: np.ndarray, grid: EyeGrid, lines: list[np.ndarray]) -> np.ndarray:
    """Soft maximum by brightness of the picture read along curves y = line(x)."""
    samples = np.stack([_read(blurred, grid, line) for line in lines])
    bright = samples.mean(-1, keepdims=True)
    weight = np.exp((bright - bright.max(0)) / 12.0)  # 12 grey levels darker counts a third
    return (samples * weight).sum(0) / weight.sum(0)


def _read(image: np.ndarray, grid: EyeGrid, y: np.ndarray) -> np.ndarray:
    """The rectangle's picture at the same x and at across-position `y` of each pixel."""
    move = (y - grid.y).astype(np.float32)
    rows, cols = np.mgrid[0 : image.shape[0], 0 : image.shape[1]].astype(np.float32)
    x = cols + move * np.float32(grid.down[0])
    return cv2.remap(image, x, rows + move * np.float32(grid.down[1]), cv2.INTER_LINEAR,
                     borderMode=cv2.BORDER_REPLICATE)  # fmt: skip


def _grain(picture: np.ndarray, grid: EyeGrid) -> np.ndarray:
    """The picture's own fine noise, so that the lid is not smoother than the face."""
    fine = picture - cv2.GaussianBlur(picture, (0, 0), 1.5)
    lid = (grid.y < grid.top - 0.14 * grid.width) & (grid.y > grid.top - 0.4 * grid.width)
    amount = min(float(np.median(np.abs(fine[lid]))) if lid.any() else 1.0, 3.0)
    noise = np.random.default_rng(1).standard_normal(grid.x.shape).astype(np.float32)
    return cv2.GaussianBlur(noise, (0, 0), 0.7)[..., None] * (1.5 * amount)


def _with_lashes(
    lid: np.ndarray, picture: np.ndarray, grid: EyeGrid, closing: np.ndarray
) -> np.ndarray:
    """The picture's upper lash strip, flipped below the closing line, and a thin line at least."""
    w = grid.width
    strip = _read(picture, grid, grid.top - (grid.y - closing))
    inside = smooth(grid.x, -0.02 * w, 0.10 * w) * (1 - smooth(grid.x, 0.90 * w, 1.02 * w))
    zone = smooth(grid.y, *_span(closing - 0.04 * w, 0.03 * w))
    zone *= (1 - smooth(grid.y, *_span(closing + 0.04 * w, (LASH - 0.04) * w))) * inside
    dark = (lid.mean(-1) - strip.mean(-1)) / np.maximum(lid.mean(-1), 1)
    dark = np.clip(dark * 1.5, 0, 1) * zone
    lid = lid * (1 - dark[..., None]) + strip * dark[..., None]
    margin = (np.abs(grid.y - grid.top) < 0.04 * w) & (grid.ends > 0.3)
    colour = np.percentile(picture[margin], 10, axis=0) if margin.any() else np.full(3, 30.0)
    thick = LINE * w * (0.35 + 0.65 * grid.ends)
    line = np.exp(-(((grid.y - closing) / thick) ** 2)) * inside * 0.7
    return lid * (1 - line[..., None]) + (colour * 0.85) * line[..., None]


@dataclass(frozen=True, slots=True)
class Cover:
    """A lid of one frame: where it lies and where its skin comes from, [h, w, 2] canvas px."""

    lid: Lid
    grid: EyeGrid
    blink: float
    source: np.ndarray


def covers(
    lids: list[Lid], token: np.ndarray, points: np.ndarray, full: np.ndarray, top: int, left: int
) -> list[Cover]:
    """The lids to draw; reads the warp's map `full` (first px: canvas (top, left)) before the
    gaze changes it."""
    found = []
    for lid in lids:
        blink = float(np.clip(token[INDEX["eyeBlink" + lid.eye.letter]], 0, 1))
        grid = eye_grid(lid.eye, points, 0.15, 0.35, 0.25) if blink > LEAST else None
        if grid is None or grid.rows.start < top or grid.cols.start < left:
            continue
        part = full[
            grid.rows.start - top : grid.rows.stop - top,
            grid.cols.start - left : grid.cols.stop - left,
        ]
        if part.shape[:2] == grid.x.shape:
            found.append(Cover(lid, grid, blink, part.copy()))
    return found


def draw_cover(out: np.ndarray, cover: Cover) -> None:
    """Paint one lid over `out` [1088, 704, 4] uint8."""
    lid, grid, blink, w = cover.lid, cover.grid, cover.blink, cover.grid.width
    closing = closed_margin(grid)
    slide = ((closing - grid.top) * (1 - blink)).astype(np.float32)
    margin = closing - slide
    source = cover.source
    source[..., 0] += slide * np.float32(grid.down[0]) - np.float32(lid.left)
    source[..., 1] += slide * np.float32(grid.down[1]) - np.float32(lid.top)
    skin = cv2.remap(lid.patch, source, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    climb = min(1.0, 1.7 * blink)
    edge = grid.top - (COVER_TOP * climb + 0.02) * w * np.maximum(grid.ends, 0.3)
    alpha = np.clip((grid.y - edge) / (COVER_SOFT * w), 0, 1)
    alpha *= np.clip((margin + LASH * w * grid.ends + 0.5 - grid.y) / (0.06 * w + 0.5), 0, 1)
    alpha *= np.clip(grid.x / (0.06 * w) + 2, 0, 1) * np.clip((w - grid.x) / (0.06 * w) + 2, 0, 1)
    alpha = (alpha * min(1.0, 4 * blink)).astype(np.float32)[..., None]
    below = np.clip((grid.y - margin) / 1.0, 0, 1).astype(np.float32)[..., None]
    under = out[grid.rows, grid.cols, :3]
    shown = skin + (np.minimum(skin, under) - skin.astype(np.float32)) * below
    under[:] = np.clip(under + (shown - under) * alpha + 0.5, 0, 255).astype(np.uint8)
