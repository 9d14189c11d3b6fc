"""Names, order and ranges of the motion coefficients: the latents of the `portrait` model.

A motion token is one float32 vector of `COUNT` values for one frame. Neutral is all zeros: the
picture as it is. Knows nothing of audio or pixels.
"""

from __future__ import annotations

import numpy as np

# (name, lowest, highest); lips and jaw first because audio drives them.
TABLE: tuple[tuple[str, float, float], ...] = (
    ("jawOpen", 0.0, 0.6),
    ("mouthClose", 0.0, 1.0),  # fraction of the jaw's gap that the lips cancel: 1 shuts the mouth
    ("seal", 0.0, 1.0),  # fraction of the picture's own lip gap that is closed
    ("mouthFunnel", 0.0, 1.0),
    ("mouthPucker", 0.0, 1.0),
    ("mouthSmileL", 0.0, 1.0),
    ("mouthSmileR", 0.0, 1.0),
    ("mouthStretchL", 0.0, 1.0),
    ("mouthStretchR", 0.0, 1.0),
    ("mouthFrownL", 0.0, 1.0),
    ("mouthFrownR", 0.0, 1.0),
    ("upperLipUp", 0.0, 1.0),
    ("lowerLipDown", 0.0, 1.0),
    ("mouthRollUpper", 0.0, 1.0),
    ("mouthRollLower", 0.0, 1.0),
    ("mouthShrug", 0.0, 1.0),
    ("tongue", 0.0, 1.0),
    ("browInnerL", 0.0, 1.0),
    ("browInnerR", 0.0, 1.0),
    ("browOuterL", 0.0, 1.0),
    ("browOuterR", 0.0, 1.0),
    ("browDownL", 0.0, 1.0),
    ("browDownR", 0.0, 1.0),
    ("cheekSquintL", 0.0, 1.0),
    ("cheekSquintR", 0.0, 1.0),
    ("eyeBlinkL", 0.0, 1.0),
    ("eyeBlinkR", 0.0, 1.0),
    ("gazeX", -1.0, 1.0),  # + looks to the picture's right
    ("gazeY", -1.0, 1.0),  # + looks down
    ("headYaw", -15.0, 15.0),  # degrees, + turns to the picture's right
    ("headPitch", -15.0, 15.0),  # degrees, + nods down
    ("headRoll", -15.0, 15.0),  # degrees, + tilts clockwise
    ("headX", -1.0, 1.0),  # in units of S (outer-eye distance), + to the picture's right
    ("headY", -1.0, 1.0),  # in units of S, + down
    ("breath", 0.0, 1.0),  # shoulders up
)
NAMES: tuple[str, ...] = tuple(name for name, _, _ in TABLE)
COUNT = len(NAMES)
INDEX: dict[str, int] = {name: i for i, name in enumerate(NAMES)}
LOWEST = np.array([low for _, low, _ in TABLE], np.float32)  # [COUNT]
HIGHEST = np.array([high for _, _, high in TABLE], np.float32)  # [COUNT]

# L and R are the person's own left and right, as in ARKit:
# L is on the right of the picture as the viewer sees it.


def vector(**values: float) -> np.ndarray:
    """One motion token [COUNT] float32 from names; everything else neutral."""
    token = np.zeros(COUNT, np.float32)
    for name, value in values.items():
        token[INDEX[name]] = value
    return token


def clip(tokens: np.ndarray) -> np.ndarray:
    """Tokens [..., COUNT] limited to their ranges."""
    return np.clip(tokens, LOWEST, HIGHEST)
