"""Golden contact sheets: renderer changes must be looked at, then the golden is replaced by
`python -m tests.portrait_render.test_golden`."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from engine.character import load_character
from engine.errors import EngineError
from engine.portrait.canvas import Canvas
from engine.portrait.sheet import POSES, contact_sheet
from engine.protocol.character_file import read_character
from tests.portrait_render.drawn_face import drawn_canvas, landmarks

HERE = Path(__file__).parent
CHARACTERS = HERE.parents[1] / "assets" / "characters"
MEAN_LEVELS, WORST_TILE_LEVELS = 0.6, 1.5  # grey levels: other CPUs round otherwise, no more
TILE = (110, 140)
SHIPPED = ("mira", "bruno")  # they carry their landmarks: no detector's version matters
FEW = ("neutral", "jaw .5", "m", "o", "smile", "blink 1", "yaw 10", "all")


def drawn() -> Canvas:
    return drawn_canvas(landmarks((352, 430), 28.0, 8.0))


def shipped(name: str) -> Canvas:
    path = CHARACTERS / f"{name}.avatar"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here")
    spec, picture = read_character(path)
    assert spec.landmarks is not None
    try:
        return load_character(picture, spec).canvas
    except EngineError as error:
        if error.code == "missing_asset":
            pytest.skip(str(error))
        raise


def sheet(canvas: Canvas, names: tuple[str, ...] = tuple(POSES)) -> np.ndarray:
    poses = {name: POSES[name] for name in names}
    return contact_sheet(canvas, poses, tile=TILE, columns=8, label=False)


def compare(found: np.ndarray, path: Path) -> None:
    golden = cv2.imread(str(path)).astype(int)
    difference = np.abs(found.astype(int) - golden)
    assert difference.mean() < MEAN_LEVELS
    for y in range(0, golden.shape[0], TILE[1]):
        for x in range(0, golden.shape[1], TILE[0]):
            tile = difference[y : y + TILE[1], x : x + TILE[0]]
            assert tile.mean() < WORST_TILE_LEVELS, (x // TILE[0], y // TILE[1], tile.mean())


def test_contact_sheet_of_a_drawn_face():
    compare(sheet(drawn()), HERE / "golden_drawn_face.png")


@pytest.mark.parametrize("name", SHIPPED)
def test_contact_sheet_of_a_shipped_character(name):
    compare(sheet(shipped(name), FEW), HERE / f"golden_{name}.png")


if __name__ == "__main__":
    best = [cv2.IMWRITE_PNG_COMPRESSION, 9]
    cv2.imwrite(str(HERE / "golden_drawn_face.png"), sheet(drawn()), best)
    for name in SHIPPED:
        cv2.imwrite(str(HERE / f"golden_{name}.png"), sheet(shipped(name), FEW), best)
