"""Eyelids: skin painted over each eye once a picture, and a lash line that slides over it.

Stretching the picture's skin instead dragged wrinkles along and left slits. Knows nothing of gaze.
All lengths named here are in eye widths.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.portrait.eye_shape import Eye, EyeGrid
from engine.portrait.fill import fill
from engine.portrait.grid import smooth
from engine.portrait.sampling import less, read, read_rows

LEAST = 0.01  # blinks below this are not drawn
PATCH = (0.42, 0.62, 0.45)  # sides, above, below: the painted rectangle
COVER = (0.24, 0.45, 0.30)  # the rectangle of a frame
COVER_LEAST, COVER_MOST = 0.08, 0.22  # how far above the open margin the old lashes are hidden
COVER_SOFT, SIDE_SOFT = 0.08, 0.14
OUTER, INNER = 0.18, 0.08  # reach beyond the outer and the inner corner
MEET = 0.02  # closed lids meet this far below the lower margin (landmarks sit a little high)
LASH = 0.09  # length of lashes below the closing line
LINE = 0.020  # half thickness of the closing line
DARKER = 25.0  # grey levels below the skin at which a pixel counts as hair by 63 %
SHADED = 0.60  # of the cheeks' brightness: the least that lid skin has
LASH_DARKER = 16.0  # grey levels: rows above the margin this much darker still are lashes
LID_LIGHT, LID_SHADE = 0.03, 0.08  # bulge of the lid, shade toward its lashes


@dataclass(frozen=True, slots=True)
class Lid:
    """Painted at rest: `skin` [h, w, 4] uint8 BGRA and `lashes` [h, w, 4] uint8, alpha last, as
    they lie when shut; their first px is canvas px (left, top). `reach`: how far above the open
    margin the skin must cover the picture's lashes, in eye widths."""

    eye: Eye
    reach: float
    skin: np.ndarray
    lashes: np.ndarray
    left: int
    top: int


def paint_lid(pixels: np.ndarray, skin_bgr: np.ndarray, eye: Eye, grid: EyeGrid) -> Lid:
    """`grid` over PATCH around the eye at rest; `skin_bgr` [3] is the colour of the cheeks."""
    picture = np.ascontiguousarray(pixels[grid.rows, grid.cols, :3]).astype(np.float32)
    reach = _lash_reach(picture, grid)
    skin = _skin(picture, grid, eye, reach, float(skin_bgr.mean()))
    lashes = _lashes(skin, picture, grid, eye)
    skin = np.dstack([skin, np.full(skin.shape[:2], 255)])  # 4 channels: the fast remap
    return Lid(eye, reach, _bytes(skin), _bytes(lashes), grid.cols.start, grid.rows.start)


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(values + 0.5, 0, 255).astype(np.uint8)


def shut_margin(grid: EyeGrid) -> np.ndarray:
    """y of the closing line: the lower margin, a little lower in its middle."""
    return grid.bottom + MEET * grid.width * grid.ends


def _reach(grid: EyeGrid, eye: Eye) -> tuple[float, float]:
    """How far the lid goes beyond the eye's left and right corner in the picture."""
    left, right = (OUTER, INNER) if eye.letter == "R" else (INNER, OUTER)
    return left * grid.width, right * grid.width


def _sides(grid: EyeGrid, eye: Eye, soft: float) -> np.ndarray:
    """1 between the corners, 0 beyond the lid's reach."""
    left, right = _reach(grid, eye)
    w = grid.width
    start = np.clip((grid.x + left) / min(soft * w, left), 0, 1)
    return start * np.clip((w + right - grid.x) / min(soft * w, right), 0, 1)


def _upper_edge(grid: EyeGrid, eye: Eye, reach: float) -> np.ndarray:
    """y at which the lid begins: `reach` above the open margin, less at the nose and more outside,
    where lashes sweep up."""
    across = np.clip(2 * grid.x / grid.width - 1, -1.4, 1.4)
    outward = -across if eye.letter == "R" else across
    rise = reach * (1 - 0.25 * np.maximum(-outward, 0)) + 0.07 * smooth(outward, 0.2, 0.9)
    return grid.top - grid.width * rise


def _lash_reach(picture: np.ndarray, grid: EyeGrid) -> float:
    """Eye widths above the margin to which dark lashes or make-up reach; the crease of the lid
    above them stays the picture's own."""
    w, bright = grid.width, cv2.GaussianBlur(picture.mean(-1), (0, 0), 0.015 * grid.width + 0.3)
    rise = (grid.top - grid.y) / w
    middle = (grid.x > 0.2 * w) & (grid.x < 0.8 * w)
    steps = np.arange(0.02, COVER_MOST, 0.02)
    rows = [bright[middle & (rise > k - 0.01) & (rise <= k + 0.01)] for k in steps]
    levels = np.array([float(r.mean()) if len(r) else 0.0 for r in rows])
    dark = np.flatnonzero(levels < np.median(levels[len(levels) // 2 :]) - LASH_DARKER)
    reach = (float(steps[dark[-1]]) if len(dark) else 0.0) + 0.04
    return float(np.clip(reach, COVER_LEAST, COVER_MOST))


def _skin(picture: np.ndarray, grid: EyeGrid, eye: Eye, reach: float, cheek: float) -> np.ndarray:
    """The rectangle without its eye: filled from clean skin around, lit like a lid."""
    w = grid.width
    hole = smooth_ramp(grid.y - _upper_edge(grid, eye, reach), -0.04 * w, 0.0)
    hole *= 1 - smooth_ramp(grid.y - shut_margin(grid), 0.05 * w, 0.09 * w)
    hole *= _sides(grid, eye, 0.03)
    trust = (1 - hole) * _trust(picture, grid, cheek)
    skin = fill(picture, trust.astype(np.float32))
    skin = cv2.GaussianBlur(skin, (0, 0), 0.025 * w + 0.3)
    t = np.clip((grid.y - grid.top) / np.maximum(shut_margin(grid) - grid.top, 1e-3), 0, 1)
    light = 1 + LID_LIGHT * np.sin(np.pi * t) * grid.ends
    return skin * light[..., None] + _grain(picture, grid)


def smooth_ramp(x: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.clip((x - low) / (high - low), 0, 1)


def _trust(picture: np.ndarray, grid: EyeGrid, cheek: float) -> np.ndarray:
    """Near 0 on brows, hair and lashes: darker than the skin around the eye, or, where that is
    all brow and shadow, than a shaded cheek."""
    w = grid.width
    bright = picture.mean(-1)
    lid = (grid.y < grid.top - 0.1 * w) & (grid.y > grid.top - 0.45 * w) & (grid.ends > 0.2)
    level = float(np.percentile(bright[lid], 35)) if lid.any() else float(np.median(bright))
    level = max(level, SHADED * cheek)
    # The floor keeps a face that is dark all around (statue, night) fillable.
    return np.maximum(np.exp(-np.maximum(level - 4 - bright, 0) / DARKER), 0.004)


def _grain(picture: np.ndarray, grid: EyeGrid) -> np.ndarray:
    """Fine detail of a band of skin below the eye, folded up: noise, strokes, cracks of paint.
    Without it the lid is smoother than the face."""
    w = grid.width
    band = 0.22 * w
    along = np.abs((grid.bottom - grid.y) % (2 * band) - band)
    detail = _read(picture - cv2.GaussianBlur(picture, (0, 0), 0.05 * w + 0.5), grid,
                   grid.bottom + 0.12 * w + along)  # fmt: skip
    return np.clip(detail, -7, 7) * 0.8


def _lashes(skin: np.ndarray, picture: np.ndarray, grid: EyeGrid, eye: Eye) -> np.ndarray:
    """[h, w, 4]: the picture's upper lash strip flipped below the closing line, a
    thin line at least, and the shade of the lid's rim above it."""
    w, closing = grid.width, shut_margin(grid)
    inside = _lash_sides(grid, eye)
    below = grid.y - closing
    strip = _read(picture, grid, grid.top - below)
    zone = smooth_ramp(below, -0.03 * w, 0.0) * (1 - smooth_ramp(below, 0.4 * LASH * w, LASH * w))
    dark = (skin.mean(-1) - strip.mean(-1)) / np.maximum(skin.mean(-1), 1)
    dark = np.clip(dark * 1.4, 0, 1) * zone * inside
    margin = (np.abs(grid.y - grid.top) < 0.04 * w) & (grid.ends > 0.3)
    ink = np.percentile(picture[margin], 10, axis=0) * 0.9 if margin.any() else np.full(3, 30.0)
    thick = LINE * w * (0.4 + 0.6 * grid.ends) + 0.3
    line = np.exp(-((below / thick) ** 2)) * inside * 0.8
    rim = LID_SHADE * 2 * np.exp(-np.maximum(-below, 0) / (0.10 * w)) * (below < 0) * inside
    colour = strip * dark[..., None] + ink * (1 - dark[..., None])
    alpha = dark
    for cover in (line, rim):
        total = alpha * (1 - cover) + cover
        share = (cover / np.maximum(total, 1e-3))[..., None]
        colour, alpha = colour * (1 - share) + ink * share, total
    return np.dstack([colour, 255 * alpha])


def _lash_sides(grid: EyeGrid, eye: Eye) -> np.ndarray:
    """Lashes start thin at the nose and reach a little beyond the outer corner."""
    t = grid.x / grid.width
    t = 1 - t if eye.letter == "R" else t  # 0 at the nose, 1 outside
    return smooth(t, -0.03, 0.22) * (1 - smooth(t, 0.94, 1.10))


def _read(image: np.ndarray, grid: EyeGrid, y: np.ndarray) -> np.ndarray:
    """The rectangle's picture at the same x and at across-position `y` of each pixel."""
    move = (y - grid.y).astype(np.float32)
    rows, cols = np.mgrid[0 : image.shape[0], 0 : image.shape[1]].astype(np.float32)
    x = cols + move * np.float32(grid.down[0])
    return read_rows(image, x, rows + move * np.float32(grid.down[1]))


def draw_lid(out: np.ndarray, lid: Lid, grid: EyeGrid, blink: float, source: np.ndarray) -> None:
    """Paint one lid over `out` [1088, 704, 4] uint8. `grid` over COVER in the frame; `source`
    [h, w, 2] float32 canvas px is where the warp took each pixel from, without gaze; overwritten.
    """
    slide = ((shut_margin(grid) - grid.top) * (1 - blink)).astype(np.float32)
    margin = shut_margin(grid) - slide
    less(source, lid.left, lid.top, source)
    skin = read(lid.skin, source)
    for axis in (0, 1):  # a loop over the two: numpy is slow on a last axis of 2
        source[..., axis] += slide * np.float32(grid.down[axis])
    lashes = read(lid.lashes, source)
    shown = min(1.0, 4 * blink)
    under = out[grid.rows, grid.cols]
    alpha = _cover(lid, grid, margin, blink) * np.float32(shown)
    cv2.blendLinear(skin, under, alpha, 1 - alpha, dst=under)
    alpha = cv2.extractChannel(lashes, 3).astype(np.float32) * np.float32(shown / 255)
    cv2.blendLinear(lashes, under, alpha, 1 - alpha, dst=under)
    under[..., 3] = 255


def _cover(lid: Lid, grid: EyeGrid, margin: np.ndarray, blink: float) -> np.ndarray:
    """[h, w] float32: where the lid's skin lies, from above the old lashes to its margin."""
    w = grid.width
    edge = _upper_edge(grid, lid.eye, lid.reach * min(1.0, 0.25 + 1.5 * blink))
    alpha = np.clip((grid.y - edge) * (1 / (COVER_SOFT * w)) + 1, 0, 1)
    lower = margin + (0.05 - 0.02 * grid.ends) * (w * blink) - grid.y
    alpha *= np.clip(lower * (1 / (0.03 * w * blink + 1.0)) + 0.7, 0, 1)
    alpha *= _sides(grid, lid.eye, SIDE_SOFT)
    return alpha.astype(np.float32)
