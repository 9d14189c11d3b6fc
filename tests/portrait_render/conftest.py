from __future__ import annotations

import cv2
import numpy as np
import pytest

from engine.portrait.canvas import Canvas
from engine.portrait.grid import HEIGHT, WIDTH
from engine.portrait.renderer import PortraitRenderer
from tests.portrait_render.drawn_face import drawn_canvas, landmarks


def quiet(fraction: float, what: str) -> None:
    pass


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    cv2.setNumThreads(1)


@pytest.fixture(scope="session")
def canvas() -> Canvas:
    return drawn_canvas(landmarks((352, 430), 28.0))


@pytest.fixture(scope="session")
def renderer(canvas: Canvas) -> PortraitRenderer:
    return PortraitRenderer(canvas, None, quiet)


@pytest.fixture
def frame() -> np.ndarray:
    return np.zeros((HEIGHT, WIDTH, 4), np.uint8)
