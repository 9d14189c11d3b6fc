"""Bilinear reads of pictures and fields, by OpenCV. Knows nothing of what is read.

One place for two of its habits: the empty second map, and scalars for 2-channel arrays.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

ZERO, EDGE = cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE
_cv2: Any = cv2  # its stubs know neither habit


def read(
    image: np.ndarray, where: np.ndarray, out: np.ndarray | None = None, beyond: int = EDGE
) -> np.ndarray:
    """`image` [h, w, ...] at x, y of `where` [H, W, 2] float32 -> [H, W, ...]."""
    return _cv2.remap(image, where, None, cv2.INTER_LINEAR, dst=out, borderMode=beyond)


def read_rows(image: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same with x and y [H, W] float32 apart."""
    return _cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=EDGE)


def less(where: np.ndarray, x: float, y: float, out: np.ndarray | None = None) -> np.ndarray:
    """`where` [H, W, 2] minus (x, y): numpy is slow on a last axis of 2."""
    return _cv2.subtract(where, (float(x), float(y), 0.0, 0.0), dst=out)


def times(values: np.ndarray, factor: float, out: np.ndarray) -> np.ndarray:
    """`values` of any type times a number into `out` float32, all channels."""
    return _cv2.multiply(values, (factor,) * 4, dst=out, dtype=cv2.CV_32F)
