"""MediaPipe's face mesh as data: which of the 468 vertices are lips, lids, brows; its edges.

Right and left are the person's own. Edges come from the npm package @mediapipe/face_mesh
(Apache-2.0). Knows nothing of positions.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

EDGES = Path(__file__).resolve().parents[2] / "assets" / "mesh" / "face_edges.npy"
VERTICES = 468  # without the 10 iris points

# Lips: four rings from the outer border to the lip line; 11 points each from right to left corner.
UPPER_RINGS = (
    (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291),
    (76, 184, 74, 73, 72, 11, 302, 303, 304, 408, 306),
    (62, 183, 42, 41, 38, 12, 268, 271, 272, 407, 292),
    (78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308),
)
LOWER_RINGS = (
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291),
    (76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306),
    (62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292),
    (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308),
)
UPPER_OUTER, UPPER_INNER = UPPER_RINGS[0], UPPER_RINGS[3]
LOWER_OUTER, LOWER_INNER = LOWER_RINGS[0], LOWER_RINGS[3]
CORNERS_RIGHT, CORNERS_LEFT = (61, 76, 62, 78), (291, 306, 292, 308)
CORNERS = CORNERS_RIGHT + CORNERS_LEFT
UPPER_LIP = tuple(sorted({i for ring in UPPER_RINGS for i in ring} - set(CORNERS)))
LOWER_LIP = tuple(sorted({i for ring in LOWER_RINGS for i in ring} - set(CORNERS)))

OVAL = (
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
)  # fmt: skip
# Lid margins: 9 points, in picture order from left to right.
RIGHT_EYE_UPPER = (33, 246, 161, 160, 159, 158, 157, 173, 133)
RIGHT_EYE_LOWER = (33, 7, 163, 144, 145, 153, 154, 155, 133)
LEFT_EYE_UPPER = (362, 398, 384, 385, 386, 387, 388, 466, 263)
LEFT_EYE_LOWER = (362, 382, 381, 380, 374, 373, 390, 249, 263)
EYES = RIGHT_EYE_UPPER + RIGHT_EYE_LOWER + LEFT_EYE_UPPER + LEFT_EYE_LOWER
RIGHT_IRIS, LEFT_IRIS = 468, 473  # centre, then four points of its border
RIGHT_BROW = (70, 63, 105, 66, 107, 46, 53, 52, 65, 55)
LEFT_BROW = (300, 293, 334, 296, 336, 276, 283, 282, 295, 285)
NOSE = (
    1, 2, 4, 5, 6, 168, 195, 197, 98, 327, 64, 294, 48, 278, 115, 344, 220, 440, 45, 275, 94, 19,
    97, 326, 129, 358, 49, 279, 102, 331,
)  # fmt: skip
CHIN = (
    152, 148, 377, 176, 400, 175, 199, 200, 18, 83, 313, 182, 406, 201, 421, 208, 428, 171, 396,
)  # fmt: skip
CHIN_TIP, FOREHEAD, NOSE_TIP = 152, 10, 1
EYE_CORNERS = (33, 263)  # outer, right and left: their distance is S
EARS = (234, 454)
RIGHT_CHEEK = (50, 101, 36, 205, 187, 123, 117)
LEFT_CHEEK = (280, 330, 266, 425, 411, 352, 346)


@lru_cache(maxsize=1)
def edges() -> np.ndarray:
    """[1322, 2] int64 pairs of vertices, each once."""
    return np.load(EDGES, allow_pickle=False).astype(np.int64)
