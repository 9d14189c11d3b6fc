"""What must be true of frames: the picture at rest, sealed lips, no folds, no jumps."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from engine.errors import EngineError
from engine.portrait.coefficients import COUNT, HIGHEST, INDEX, LOWEST, vector
from engine.portrait.head import head_matrix
from engine.portrait.headframe import head_frame
from engine.portrait.mesh import LOWER_INNER, UPPER_INNER
from engine.portrait.renderer import PortraitRenderer
from tests.portrait_render.conftest import quiet
from tests.portrait_render.drawn_face import drawn_canvas, landmarks


def test_neutral_is_the_picture(renderer, canvas, frame):
    renderer.render(vector(), frame)
    assert np.array_equal(frame, canvas.pixels)


def test_almost_neutral_is_almost_the_picture(renderer, canvas, frame):
    renderer.render(vector(headYaw=0.01, breath=0.01), frame)
    difference = np.abs(frame.astype(int) - canvas.pixels).mean()
    assert difference < 0.5, difference
    assert (frame[..., 3] == 255).all()


def test_the_pictures_own_mouth_shows_while_nothing_moves_it(renderer, canvas, frame):
    renderer.render(vector(eyeBlinkL=1), frame)
    x, y = np.round(canvas.landmarks[13, :2]).astype(int)
    mouth = np.s_[y - 30 : y + 40, x - 60 : x + 60]
    assert np.abs(frame[mouth].astype(int) - canvas.pixels[mouth]).max() <= 1


@pytest.mark.parametrize("jaw", [0.0, 0.1, 0.3, 0.6])
def test_sealed_lips_touch_at_all_eleven_pairs(renderer, canvas, jaw):
    for rolled in (0.0, 0.4):
        token = vector(seal=1, jawOpen=jaw, mouthClose=1, mouthRollUpper=rolled)
        pose = renderer.pose(token)
        gap = pose.points[list(LOWER_INNER)] - pose.points[list(UPPER_INNER)]
        assert np.abs(gap).max() < 1.0, gap


def test_jaw_opens_the_lips_by_its_angle(renderer, canvas):
    pose = renderer.pose(vector(seal=1, jawOpen=0.5))
    gap = (pose.points[14] - pose.points[13])[1] / head_frame(canvas.landmarks).mm
    assert 12 < gap < 30, gap  # mm at half of 24 degrees


@pytest.mark.parametrize("turned", [0.0, 30.0])
@pytest.mark.parametrize("sign", [-10.0, 10.0])
@pytest.mark.parametrize("name", ["headYaw", "headPitch", "headRoll"])
def test_no_fold_when_the_head_turns(name, sign, turned):
    assert least_jacobian(turned_renderer(turned), vector(**{name: sign})) > 0.1


@lru_cache(maxsize=2)
def turned_renderer(turned: float) -> PortraitRenderer:
    return PortraitRenderer(drawn_canvas(landmarks((352, 430), 28.0, turned)), None, quiet)


def least_jacobian(renderer: PortraitRenderer, token: np.ndarray) -> float:
    """Smallest determinant of the forward motion over the grid: <= 0 would be a fold."""
    warp = renderer._warp
    warp.solve(token, head_matrix(renderer._head, token), renderer.pose(token).points)
    place = warp.upper.forward + warp.upper.index
    dx, dy = np.diff(place, axis=1)[:-1], np.diff(place, axis=0)[:, :-1]
    return float((dx[..., 0] * dy[..., 1] - dx[..., 1] * dy[..., 0]).min())


@pytest.mark.parametrize("yaw", [10.0, -10.0])
def test_nose_goes_where_the_head_turns(renderer, canvas, yaw):
    moved = renderer.pose(vector(headYaw=yaw)).points[1] - canvas.landmarks[1, :2]
    assert np.sign(moved[0]) == np.sign(yaw) and abs(moved[0]) > 5


@pytest.mark.parametrize("name", ["headYaw", "headX", "headY", "headRoll"])
def test_lips_part_wherever_the_head_goes(renderer, canvas, name):
    """The seam travels with the lips: off it, both fields come from the same place."""
    token = vector(seal=1, jawOpen=0.3, **{name: -0.4 if name in ("headX", "headY") else -12.0})
    pose = renderer.pose(token)
    renderer._warp.solve(token, head_matrix(renderer._head, token), pose.points)
    seam, upper = renderer._warp.seam, renderer._warp.upper
    apart = np.abs(seam.back - upper.backward[seam.box.inside(upper.box)]).max(-1)
    border = np.concatenate([apart[:, 0], apart[:, -1], apart[-1]])
    assert apart.max() > 0.5 and border.max() < 0.05, (apart.max(), border.max())


def test_pitch_down_and_roll_clockwise(renderer, canvas):
    nod = renderer.pose(vector(headPitch=8)).points[1] - canvas.landmarks[1, :2]
    assert nod[1] > 5
    tilt = renderer.pose(vector(headRoll=8)).points[10] - canvas.landmarks[10, :2]
    assert tilt[0] > 5


def test_frames_change_little_when_tokens_change_little(renderer, frame):
    before = np.empty_like(frame)
    renderer.render(speech(0), before)
    for i in range(1, 24):
        renderer.render(speech(i), frame)
        change = np.abs(frame.astype(int) - before)[..., :3].mean()
        assert change < 4.0, (i, change)
        before[:] = frame


def speech(i: int) -> np.ndarray:
    """A second of talking as smooth curves."""
    t = i / 24
    wave = 0.5 + 0.5 * np.sin(2 * np.pi * np.array([3.0, 1.7, 2.3]) * t)
    return vector(jawOpen=0.3 * wave[0], seal=1, mouthFunnel=0.4 * wave[1],
                  mouthSmileL=0.2 * wave[2], headYaw=4 * np.sin(3 * t), breath=wave[1])  # fmt: skip


def test_a_small_step_of_each_coefficient_is_a_small_change(renderer, frame):
    base, other = np.empty_like(frame), np.empty_like(frame)
    middle = (0.3 * LOWEST + 0.7 * HIGHEST) * 0.4
    renderer.render(middle, base)
    for i in range(COUNT):
        token = middle.copy()
        token[i] += 0.004 * (HIGHEST[i] - LOWEST[i])  # 2 px of the head's place
        renderer.render(token, other)
        assert np.abs(other.astype(int) - base)[..., :3].mean() < 1.0, i


def test_same_token_same_frame(renderer, canvas, frame):
    token = speech(7) + vector(eyeBlinkL=0.5, eyeBlinkR=0.7, gazeX=0.3)
    renderer.render(token, frame)
    again = np.full_like(frame, 9)
    renderer.render(speech(3), again)
    renderer.render(token, again)
    assert np.array_equal(frame, again)
    other = np.zeros_like(frame)
    PortraitRenderer(canvas, None, quiet).render(token, other)
    assert np.array_equal(frame, other)


def test_blink_hides_the_iris(renderer, canvas, frame):
    renderer.render(vector(eyeBlinkL=1, eyeBlinkR=1), frame)
    for iris in (468, 473):
        x, y = np.round(canvas.landmarks[iris, :2]).astype(int)
        assert canvas.pixels[y, x, :3].mean() < 80 < frame[y, x, :3].mean()


def test_gaze_moves_the_iris_its_way(renderer, canvas, frame):
    renderer.render(vector(gazeX=0.6), frame)
    x, y = np.round(canvas.landmarks[468, :2]).astype(int)
    row = slice(x - 25, x + 26)
    weight = np.maximum(120.0 - frame[y, row, :3].mean(-1), 0)
    center = (np.arange(-25, 26) * weight).sum() / weight.sum()
    assert 2 < center < 12, center


@pytest.mark.parametrize(
    ("center", "scale", "turned"),
    [
        ((352, 430), 3.0, 0.0),  # tiny
        ((352, 544), 60.0, 0.0),  # larger than the canvas
        ((20, 30), 20.0, 0.0),  # over the corner
        ((690, 1070), 25.0, 20.0),
        ((352, 430), 25.0, 44.0),
    ],
)
def test_any_landmarks_are_drawn(center, scale, turned, frame):
    canvas = drawn_canvas(landmarks(center, scale, turned))
    renderer = PortraitRenderer(canvas, None, quiet)
    for token in (LOWEST, HIGHEST, 0.5 * HIGHEST, speech(5)):
        renderer.render(token, frame)
        assert (frame[..., 3] == 255).all()


@pytest.mark.parametrize("value", [300.0, np.nan])
def test_landmarks_in_a_heap_are_refused(canvas, value):
    heap = replace(canvas, landmarks=np.full((478, 3), value, np.float32))
    with pytest.raises(EngineError, match="landmarks span"):
        PortraitRenderer(heap, None, quiet)


def test_broken_tokens_are_limited(renderer, frame):
    token = np.full(COUNT, np.nan, np.float32)
    token[INDEX["jawOpen"]] = 1e9
    renderer.render(token, frame)
    limited = np.empty_like(frame)
    renderer.render(vector(jawOpen=0.6), limited)
    assert np.array_equal(frame, limited)


def test_stage_times_are_kept(renderer, frame):
    renderer.render(speech(3), frame)
    assert set(renderer.stage_ms) == {"warp", "gaze", "remap", "shade", "lids", "mouth"}
    assert all(ms >= 0 for ms in renderer.stage_ms.values())
