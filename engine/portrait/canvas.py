"""Canvas: the picture fitted to 704x1088 with its landmarks; all that the renderer needs to know.

Knows nothing of files or detectors: landmarks are data, wherever they come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Canvas:
    """`pixels` [1088, 704, 4] uint8 BGRA, alpha 255; `landmarks` [478, 3] float32 in canvas px
    (x right, y down, z away from the viewer, same scale), in MediaPipe's face mesh order."""

    pixels: np.ndarray
    landmarks: np.ndarray
    scale: float  # canvas px per px of the upright picture
    style: str = "photo"  # "photo" or "drawn": flat teeth band, smaller jaw cap
