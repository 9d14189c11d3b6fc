"""Fill of holes in a picture from what surrounds them, by pyramids of weighted means.

Knows nothing of faces.
"""

from __future__ import annotations

import cv2
import numpy as np

TINY = 1e-4


def fill(picture: np.ndarray, trust: np.ndarray) -> np.ndarray:
    """[h, w, 3] float32: where `trust` [h, w] 0..1 is 0, the mean of trusted surroundings, ever
    wider ones the farther away; where it is 1, the picture."""
    levels = [(picture * trust[..., None], trust)]
    while min(levels[-1][1].shape) > 2:
        colour, weight = levels[-1]
        size = ((weight.shape[1] + 1) // 2, (weight.shape[0] + 1) // 2)
        levels.append(
            (
                cv2.resize(colour, size, interpolation=cv2.INTER_AREA),
                cv2.resize(weight, size, interpolation=cv2.INTER_AREA),
            )
        )
    colour, weight = levels[-1]
    coarse = colour / np.maximum(weight, TINY)[..., None]
    for colour, weight in levels[-2::-1]:
        h, w = weight.shape
        coarse = cv2.resize(coarse, (w, h), interpolation=cv2.INTER_LINEAR)
        sure = np.clip(weight, 0, 1)[..., None]
        coarse = colour / np.maximum(weight, TINY)[..., None] * sure + coarse * (1 - sure)
    return coarse
