"""Golden contact sheets: renderer changes must be looked at, then the golden is replaced by
`python -m tests.portrait_render.test_golden`."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from engine.portrait.sheet import contact_sheet
from tests.portrait_render.drawn_face import drawn_canvas, landmarks

GOLDEN = Path(__file__).with_name("golden_drawn_face.png")
MEAN_LEVELS, WORST_TILE_LEVELS = 0.6, 1.5  # grey levels: other CPUs round otherwise, no more
TILE = (110, 140)


def sheet() -> np.ndarray:
    canvas = drawn_canvas(landmarks((352, 430), 28.0, 8.0))
    return contact_sheet(canvas, tile=TILE, columns=8, label=False)


def test_contact_sheet_of_a_drawn_face():
    golden = cv2.imread(str(GOLDEN)).astype(int)
    difference = np.abs(sheet().astype(int) - golden)
    assert difference.mean() < MEAN_LEVELS
    for y in range(0, golden.shape[0], TILE[1]):
        for x in range(0, golden.shape[1], TILE[0]):
            tile = difference[y : y + TILE[1], x : x + TILE[0]]
            assert tile.mean() < WORST_TILE_LEVELS, (x // TILE[0], y // TILE[1], tile.mean())


if __name__ == "__main__":
    cv2.imwrite(str(GOLDEN), sheet(), [cv2.IMWRITE_PNG_COMPRESSION, 9])
