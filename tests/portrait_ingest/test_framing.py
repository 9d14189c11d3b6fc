"""Framing: the face's place and size, landmarks that stay on their pixels, the filled border."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.portrait.faces import face_of_points
from engine.portrait.framing import cut_window, to_canvas
from engine.portrait.pictures import Picture
from engine.protocol.character import Framing
from engine.protocol.framing import (
    CANVAS_HEIGHT,
    CANVAS_WIDTH,
    MOST_SHARE,
    Box,
    automatic_framing,
    automatic_scale,
    window,
)

SIZES = st.floats(64, 8000)
SHARES = st.floats(0.02, 0.9)


@given(SIZES, SIZES, SHARES, SHARES, SHARES, st.floats(0.6, 1.2))
@settings(max_examples=300, deadline=None)
def test_automatic_framing_for_any_face(
    width: float, height: float, x: float, y: float, size: float, ratio: float
) -> None:
    tall = size * min(width, height)
    face = Box(x * width - tall * ratio / 2, y * height - tall / 2, tall * ratio, tall)
    part = window(width, height, face, None)
    share = face.height * part.scale / CANVAS_HEIGHT
    assert 0 < share <= MOST_SHARE + 1e-6
    middle_x = (face.x + face.width / 2 - part.left) / part.width
    middle_y = (face.y + face.height / 2 - part.top) / part.height
    assert 0.39 < middle_x < 0.61 and 0.32 < middle_y < 0.54
    assert part.width * part.scale == pytest.approx(CANVAS_WIDTH)
    framing = automatic_framing(width, height, face)
    assert framing.zoom == 1.0
    same = window(width, height, face, framing)
    assert (same.left, same.top, same.scale) == pytest.approx((part.left, part.top, part.scale))


def test_a_large_picture_with_room_is_covered() -> None:
    part = window(1000, 1500, Box(400, 500, 200, 260), None)
    assert part.left >= 0 and part.top >= 0
    assert part.left + part.width <= 1000 and part.top + part.height <= 1500


def test_what_is_missing_is_filled_below() -> None:
    part = window(500, 500, Box(130, 100, 240, 300), None)
    assert part.top == pytest.approx(0, abs=1e-6) and part.top + part.height > 500


def test_zoom_and_centre_by_hand() -> None:
    face = Box(400, 500, 200, 260)
    part = window(1000, 1500, face, Framing(center_x=0.46, center_y=0.42, zoom=2.0))
    assert part.scale == pytest.approx(2 * automatic_scale(1000, 1500, face))
    assert part.left + part.width / 2 == pytest.approx(460)
    assert part.top + part.height / 2 == pytest.approx(630)
    for zoom, share in ((1e9, 0.75), (0.0, 0.12)):
        part = window(1000, 1500, face, Framing(center_x=9, center_y=-9, zoom=zoom))
        assert face.height * part.scale / CANVAS_HEIGHT == pytest.approx(share)
        assert (500 - part.left) / part.width == pytest.approx(0.2)
        assert (630 - part.top) / part.height == pytest.approx(0.8)


def marked(width: int, height: int, spots: np.ndarray) -> Picture:
    """Dark, with soft bright spots at the places [n, 2] in px."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    light = sum(np.exp(-((x - sx) ** 2 + (y - sy) ** 2) / 50) for sx, sy in spots)
    grey = np.clip(light * 250, 0, 255).astype(np.uint8)
    return Picture(np.dstack([grey, grey, grey, np.full_like(grey, 255)]), width, height)


def brightest_near(pixels: np.ndarray, at: np.ndarray, reach: int = 24) -> np.ndarray:
    x, y = at.round().astype(int)
    part = pixels[y - reach : y + reach + 1, x - reach : x + reach + 1, 0].astype(float)
    yy, xx = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    return np.array([x + (part * xx).sum() / part.sum(), y + (part * yy).sum() / part.sum()])


@pytest.mark.parametrize("zoom", [0.7, 1.0, 2.3])
@pytest.mark.parametrize("working_scale", [1, 2])
def test_landmarks_move_with_the_pixels(zoom: float, working_scale: int) -> None:
    spots = np.array([[300.0, 420.0], [400.0, 420.0], [350.0, 520.0]])
    picture = marked(700, 1100, spots)
    points = np.zeros((478, 3), np.float32)
    points[:, :2] = np.random.default_rng(0).uniform([250, 350], [450, 600], (478, 2))
    points[:3, :2] = spots
    points *= working_scale
    # The picture's own px may be more than the working ones.
    picture = Picture(picture.pixels, 700 * working_scale, 1100 * working_scale, 1 / working_scale)
    if working_scale == 2:
        points[:, :2] += 0.5  # the middle of a working px lies half an own px further
    canvas = to_canvas(picture, face_of_points(points), Framing(0.5, 0.43, zoom))
    for i in range(3):
        found = brightest_near(canvas.pixels, canvas.landmarks[i, :2])
        assert np.linalg.norm(found - canvas.landmarks[i, :2]) < 0.35
    assert canvas.landmarks[:, 2] == pytest.approx(points[:, 2] * canvas.scale)


def test_beyond_the_picture_there_is_its_own_colour_without_a_seam() -> None:
    pixels = np.full((400, 300, 4), (60, 120, 200, 255), np.uint8)
    part = window(300, 400, Box(40, 40, 220, 300), None)
    out = cut_window(Picture(pixels, 300, 400), part)
    assert out.shape == (1088, 704, 4) and out.dtype == np.uint8
    assert np.abs(out[..., :3].astype(int) - [60, 120, 200]).max() <= 1
    assert (out[..., 3] == 255).all()
    stripes = pixels.copy()
    stripes[:, ::2, :3] = 0
    calm = cut_window(Picture(stripes, 300, 400), part)[-40:, 100:600, 0].astype(float)
    assert np.abs(np.diff(calm, axis=1)).max() <= 2  # 24 px wide stripes of 0 and 60 before
