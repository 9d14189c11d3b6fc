"""A guess whether a face is photographed (or painted like it) or drawn in flat colours.

Decides teeth and the jaw's cap, no more: a wrong guess costs a little beauty. Measured on pixels.
"""

from __future__ import annotations

import cv2
import numpy as np

DRAWN_SHARE = 0.60


def flat_share(pixels: np.ndarray, landmarks: np.ndarray) -> float:
    """Share of the face that the 8 most common of 4,096 colours cover: 1 is a flat drawing."""
    height, width = pixels.shape[:2]
    low = np.clip(landmarks[:468, :2].min(0), 0, [width - 2, height - 2]).astype(int)
    high = np.clip(landmarks[:468, :2].max(0), low + 1, [width, height]).astype(int)
    face = cv2.resize(pixels[low[1] : high[1], low[0] : high[0], :3], (96, 96),
                      interpolation=cv2.INTER_AREA)  # fmt: skip
    codes = np.right_shift(face, 4).astype(np.int32)
    counts = np.bincount((codes[..., 0] * 256 + codes[..., 1] * 16 + codes[..., 2]).ravel())
    return float(np.sort(counts)[-8:].sum() / (96 * 96))


def guess_style(pixels: np.ndarray, landmarks: np.ndarray) -> str:
    """ "photo" or "drawn" from a canvas [h, w, 4] and its landmarks [478, 3]."""
    return "drawn" if flat_share(pixels, landmarks) > DRAWN_SHARE else "photo"
