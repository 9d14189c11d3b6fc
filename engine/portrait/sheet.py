"""Contact sheet of one picture: the same poses for every face, for eyes and for goldens.

`python -m engine.portrait.sheet IMAGE OUT.jpg [--full]`. Knows nothing of how a frame is drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from engine.portrait.canvas import Canvas
from engine.portrait.coefficients import vector
from engine.portrait.grid import HEIGHT, WIDTH
from engine.portrait.mesh import VERTICES
from engine.portrait.renderer import PortraitRenderer

POSES: dict[str, dict[str, float]] = {
    "neutral": {},
    "jaw .1": {"jawOpen": 0.1, "seal": 1.0},
    "jaw .25": {"jawOpen": 0.25, "seal": 1.0},
    "jaw .5": {"jawOpen": 0.5, "seal": 1.0},
    "m": {"jawOpen": 0.1, "mouthClose": 1.0, "seal": 1.0, "mouthRollUpper": 0.4,
          "mouthRollLower": 0.4},
    "f": {"jawOpen": 0.12, "seal": 1.0, "mouthRollLower": 0.8, "upperLipUp": 0.35,
          "mouthClose": 0.35},
    "o": {"jawOpen": 0.3, "seal": 1.0, "mouthFunnel": 0.5, "mouthPucker": 0.4},
    "u": {"jawOpen": 0.12, "seal": 1.0, "mouthFunnel": 0.3, "mouthPucker": 0.7},
    "i": {"jawOpen": 0.1, "seal": 1.0, "mouthStretchL": 0.6, "mouthStretchR": 0.6,
          "upperLipUp": 0.2, "lowerLipDown": 0.3},
    "a wide": {"jawOpen": 0.4, "seal": 1.0, "upperLipUp": 0.3, "lowerLipDown": 0.3,
               "mouthSmileL": 0.2, "mouthSmileR": 0.2},
    "smile": {"seal": 1.0, "mouthSmileL": 0.7, "mouthSmileR": 0.7, "cheekSquintL": 0.4,
              "cheekSquintR": 0.4},
    "frown": {"seal": 1.0, "mouthFrownL": 0.8, "mouthFrownR": 0.8, "mouthShrug": 0.4,
              "browDownL": 0.8, "browDownR": 0.8},
    "blink .5": {"eyeBlinkL": 0.5, "eyeBlinkR": 0.5},
    "blink 1": {"eyeBlinkL": 1.0, "eyeBlinkR": 1.0},
    "gaze right": {"gazeX": 0.5, "gazeY": 0.1},
    "gaze left up": {"gazeX": -0.5, "gazeY": -0.4},
    "brows up": {"browInnerL": 0.8, "browInnerR": 0.8, "browOuterL": 0.8, "browOuterR": 0.8},
    "yaw -10": {"headYaw": -10.0},
    "yaw 10": {"headYaw": 10.0},
    "pitch -8": {"headPitch": -8.0},
    "pitch 8": {"headPitch": 8.0},
    "roll 8": {"headRoll": 8.0},
    "breath": {"breath": 1.0},
    "all": {"jawOpen": 0.25, "seal": 1.0, "headYaw": 6.0, "headPitch": 3.0, "headRoll": -4.0,
            "gazeX": -0.3, "browInnerL": 0.5, "browInnerR": 0.5, "eyeBlinkL": 0.25,
            "eyeBlinkR": 0.25, "mouthSmileL": 0.3, "mouthSmileR": 0.3},
}  # fmt: skip


def face_window(canvas: Canvas) -> tuple[slice, slice]:
    """Rows and columns of the canvas: the face with a quarter of its size around it."""
    points = canvas.landmarks[:VERTICES, :2]
    low, high = points.min(0), points.max(0)
    margin = 0.25 * (high - low)
    x0, y0 = np.clip(low - margin, 0, [WIDTH - 8, HEIGHT - 8]).astype(int)
    x1, y1 = np.clip(high + margin, [x0 + 8, y0 + 8], [WIDTH, HEIGHT]).astype(int)
    return slice(y0, y1), slice(x0, x1)


def contact_sheet(
    canvas: Canvas,
    poses: dict[str, dict[str, float]] | None = None,
    tile: tuple[int, int] = (300, 380),
    columns: int = 6,
    window: tuple[slice, slice] | None = None,
    label: bool = True,
) -> np.ndarray:
    """[h, w, 3] uint8 BGR: one tile a pose, cut to `window` (the face unless told otherwise)."""
    poses = POSES if poses is None else poses
    renderer = PortraitRenderer(canvas, None, lambda fraction, what: None)
    frame = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    window = window or face_window(canvas)
    rows = -(-len(poses) // columns)
    sheet = np.zeros((rows * tile[1], columns * tile[0], 3), np.uint8)
    for i, (name, values) in enumerate(poses.items()):
        renderer.render(vector(**values), frame)
        picture = _fitted(frame[window][..., :3], tile)
        if label:
            cv2.putText(picture, name, (5, 15), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 3)
            cv2.putText(picture, name, (5, 15), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255,) * 3, 1)
        y, x = divmod(i, columns)
        sheet[y * tile[1] : (y + 1) * tile[1], x * tile[0] : (x + 1) * tile[0]] = picture
    return sheet


def _fitted(picture: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """Scaled to fill the tile's shorter side, centred, the rest grey."""
    h, w = picture.shape[:2]
    k = min(tile[0] / w, tile[1] / h)
    size = (max(1, round(w * k)), max(1, round(h * k)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if k < 1 else cv2.INTER_CUBIC)
    out = np.full((tile[1], tile[0], 3), 40, np.uint8)
    y, x = (tile[1] - size[1]) // 2, (tile[0] - size[0]) // 2
    out[y : y + size[1], x : x + size[0]] = small
    return out


def main(arguments: list[str] | None = None) -> int:
    from engine.character import load_character
    from engine.protocol.character import CharacterSpec

    parser = argparse.ArgumentParser(prog="engine.portrait.sheet", description=__doc__)
    parser.add_argument("image", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--full", action="store_true", help="whole frames instead of the face")
    options = parser.parse_args(arguments)
    canvas = load_character(options.image.read_bytes(), CharacterSpec()).canvas
    window = (slice(0, HEIGHT), slice(0, WIDTH)) if options.full else None
    cv2.imwrite(str(options.out), contact_sheet(canvas, window=window))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
