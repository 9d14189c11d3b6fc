"""Picture, face and framing -> Canvas. The arithmetic is `engine/protocol/framing.py`.

Knows nothing of files or detectors.
"""

from __future__ import annotations

import cv2
import numpy as np

from engine.portrait.canvas import Canvas
from engine.portrait.faces import Face
from engine.portrait.pictures import Picture
from engine.portrait.style import guess_style
from engine.protocol.character import Framing
from engine.protocol.framing import CANVAS_HEIGHT, CANVAS_WIDTH, Box, Window, window

# Softening of what is drawn beyond the picture: (work at 1/n, sigma px, px until it is in full).
# A mirrored border was tried first: shoulders came back as a reflection in water, hair as horns.
SOFTER = ((1, 3.0, 8.0), (4, 18.0, 40.0), (16, 100.0, 120.0))


def box_of(face: Face) -> Box:
    return Box(float(face.low[0]), float(face.low[1]), face.width, face.height)


def to_canvas(picture: Picture, face: Face, framing: Framing | None) -> Canvas:
    """The part of the picture that `framing` (None: automatic) names, with landmarks."""
    part = window(picture.width, picture.height, box_of(face), framing)
    pixels = cut_window(picture, part)
    landmarks = face.landmarks.astype(np.float32) * np.float32(part.scale)
    # Landmarks lie at pixel centres: the half pixel is scaled with the rest.
    half = np.float32(0.5)
    corner = np.array([part.left, part.top], np.float32)
    landmarks[:, :2] = (face.landmarks[:, :2] + half - corner) * np.float32(part.scale) - half
    return Canvas(pixels, landmarks, part.scale, guess_style(pixels, landmarks))


def cut_window(picture: Picture, part: Window) -> np.ndarray:
    """[1088, 704, 4] uint8: the window; beyond the border its edge, softer with distance."""
    source, shrink = _shrunk(picture, part.scale)
    factor = part.scale / (picture.scale * shrink)  # canvas px per px of `source`
    # Canvas px centre c maps to source px: ((c + .5) / scale + corner) * working scale - .5
    own = picture.scale * shrink
    matrix = np.array(
        [
            [1 / factor, 0, (0.5 / part.scale + part.left) * own - 0.5],
            [0, 1 / factor, (0.5 / part.scale + part.top) * own - 0.5],
        ]
    )
    flags = cv2.WARP_INVERSE_MAP | (cv2.INTER_CUBIC if factor > 1 else cv2.INTER_LINEAR)
    size = (CANVAS_WIDTH, CANVAS_HEIGHT)
    pixels = cv2.warpAffine(source, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    if factor > 1.3:
        # What is enlarged looks soft: a little of its edges back, no more than the eye misses.
        blurred = cv2.GaussianBlur(pixels, (0, 0), 0.5 * min(factor, 4.0))
        pixels = cv2.addWeighted(pixels, 1.35, blurred, -0.35, 0)
    outside = _distance_outside(picture, part)
    if outside.max() > 0:
        pixels = _calmed(pixels, outside)
    pixels[:, :, 3] = 255
    return pixels


def _shrunk(picture: Picture, scale: float) -> tuple[np.ndarray, float]:
    """Averaged down to at most twice the canvas' resolution: a plain warp would skip pixels."""
    ratio = scale / picture.scale
    if ratio >= 0.6:
        return picture.pixels, 1.0
    height, width = picture.pixels.shape[:2]
    size = (max(1, round(width * ratio)), max(1, round(height * ratio)))
    return cv2.resize(picture.pixels, size, interpolation=cv2.INTER_AREA), size[0] / width


def _distance_outside(picture: Picture, part: Window) -> np.ndarray:
    """[1088, 704] float32: canvas px from the picture, 0 within it."""
    x = (np.arange(CANVAS_WIDTH, dtype=np.float32) + 0.5) / part.scale + part.left
    y = (np.arange(CANVAS_HEIGHT, dtype=np.float32) + 0.5) / part.scale + part.top
    dx = np.maximum(np.maximum(-x, x - picture.width), 0) * part.scale
    dy = np.maximum(np.maximum(-y, y - picture.height), 0) * part.scale
    return np.hypot(dx[None, :], dy[:, None]).astype(np.float32)


def _calmed(pixels: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """The drawn-on border made ever softer with the distance from the picture [h, w] px."""
    mixed = pixels.astype(np.float32)
    for shrink, sigma, reach in SOFTER:
        size = (CANVAS_WIDTH // shrink, CANVAS_HEIGHT // shrink)
        small = cv2.resize(mixed, size, interpolation=cv2.INTER_AREA)
        small = cv2.GaussianBlur(small, (0, 0), sigma / shrink, borderType=cv2.BORDER_REPLICATE)
        blurred = cv2.resize(small, pixels.shape[1::-1])
        mixed += np.clip(outside / reach, 0, 1)[:, :, None] * (blurred - mixed)
    return np.clip(mixed + 0.5, 0, 255).astype(np.uint8)
