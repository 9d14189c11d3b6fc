"""The fast fields against the slow truth, and the cache file."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from engine.portrait.coefficients import COUNT, vector
from engine.portrait.fields import dense_fields
from engine.portrait.fields_file import KEEP, named, read_fields, write_fields
from engine.portrait.headframe import head_frame
from engine.portrait.mesh import LOWER_LIP, VERTICES
from engine.portrait.renderer import PortraitRenderer
from engine.portrait.rig_face import vertex_bases
from engine.portrait.spline import evaluate, kernel, weights
from engine.portrait.truth import Truth
from engine.portrait.warp import sample_back


def test_float32_splines_hold_to_a_thousandth():
    rng = np.random.default_rng(3)
    knots = rng.uniform(-1.5, 1.5, (300, 2))
    values = np.sin(knots @ rng.normal(size=(2, 4)) * 3)  # as smooth as a face's motion
    points = rng.uniform(-1.5, 1.5, (500, 2))
    weight = weights(knots, values, 0.5e-3)
    radial = kernel(((points[:, None] - knots[None]) ** 2).sum(-1))
    exact = np.concatenate([radial, np.ones((500, 1)), points], 1) @ weight
    assert np.abs(evaluate(points, knots, weight) - exact).max() < 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize(
    "token",
    [vector(mouthSmileL=0.8, browInnerR=0.7), vector(jawOpen=0.3), vector(mouthPucker=0.8)],
    ids=["smile", "jaw", "pucker"],
)
def test_fast_warp_agrees_with_the_slow_truth(renderer, canvas, token):
    frame = head_frame(canvas.landmarks)
    tokens, bases = vertex_bases(frame)
    truth = Truth(frame, canvas.landmarks, bases, token[tokens].astype(np.float64))
    renderer._warp.solve(token, None, renderer.pose(token).points)
    rng = np.random.default_rng(1)
    # The face above the lip line and the cheeks: where field U is what the frame shows.
    px = rng.uniform(-1.0, 1.0, (200, 2)) * frame.s * 0.6 + frame.center[:2]
    fast = (sample_back(renderer._warp.upper, px) - 1 + 0.5) * 4 - 0.5
    error = np.abs(fast - truth.source(px)).max(1)
    assert np.quantile(error, 0.95) < 0.35 and error.max() < 1.0, error.max()


def test_fields_carry_the_vertices_along(canvas):
    """At the mesh's own vertices the splines give the bases back, to the jitter they iron out."""
    frame = head_frame(canvas.landmarks)
    _, bases = vertex_bases(frame)
    from engine.portrait.fields import fit

    moves = fit(frame, canvas.landmarks, bases).at(frame, canvas.landmarks[:VERTICES, :2])
    upper = moves[:, : 2 * len(bases)].reshape(VERTICES, -1, 2).transpose(1, 0, 2)
    kept = np.setdiff1d(np.arange(VERTICES), LOWER_LIP)
    error = np.abs(upper[:, kept] - bases[:, kept, :2]).max((1, 2)) / np.abs(bases).max((1, 2))
    assert error.max() < 0.25, error


def test_cache_gives_the_same_fields(canvas, tmp_path):
    frame = head_frame(canvas.landmarks)
    tokens, bases = vertex_bases(frame)
    fields = dense_fields(frame, canvas.landmarks, tokens, bases)
    path = tmp_path / "deep" / "entry"
    write_fields(path, canvas.landmarks, fields)
    back = read_fields(path, canvas.landmarks)
    assert back is not None and back.mouth == fields.mouth
    # In the same order too: they are summed in it.
    for a, b in zip([*back.upper, *back.lower], [*fields.upper, *fields.lower], strict=True):
        assert a.token == b.token and a.box == b.box and np.array_equal(a.values, b.values)
    assert read_fields(path, canvas.landmarks + 1) is None


def test_a_face_out_of_the_cache_is_moved_to_the_same_bit(canvas, tmp_path):
    """Without it, with it being written, with it being read: a run must not tell which it was."""
    token = np.random.default_rng(2).uniform(0.1, 0.5, COUNT).astype(np.float32)
    maps = []
    for path in (None, tmp_path / "entry", tmp_path / "entry"):
        renderer = PortraitRenderer(canvas, path, lambda done, what: None)
        renderer.render(token, np.zeros(canvas.pixels.shape, np.uint8))
        maps.append(renderer._warp.map.copy())
    assert named(tmp_path / "entry").is_file()
    assert np.array_equal(maps[0], maps[1]) and np.array_equal(maps[0], maps[2])


def test_damaged_cache_is_a_miss(canvas, tmp_path):
    frame = head_frame(canvas.landmarks)
    tokens, bases = vertex_bases(frame)
    path = tmp_path / "entry"
    write_fields(path, canvas.landmarks, dense_fields(frame, canvas.landmarks, tokens, bases))
    whole = named(path).read_bytes()
    for damaged in (b"", b"nonsense", whole[: len(whole) // 2], whole[8:]):
        named(path).write_bytes(damaged)
        assert read_fields(path, canvas.landmarks) is None
    assert read_fields(tmp_path, canvas.landmarks) is None


def test_only_the_newest_files_are_kept(canvas, tmp_path):
    frame = head_frame(canvas.landmarks)
    tokens, bases = vertex_bases(frame)
    fields = replace(dense_fields(frame, canvas.landmarks, tokens, bases), upper=[], lower=[])
    (tmp_path / "not ours").write_text("stays")
    for i in range(KEEP + 3):
        write_fields(tmp_path / f"{i:03}", canvas.landmarks, fields)
        os.utime(named(tmp_path / f"{i:03}"), (i, i))
    write_fields(tmp_path / "last", canvas.landmarks, fields)
    left = {path.stem for path in tmp_path.glob("*.fields")}
    assert len(left) == KEEP and "last" in left and "000" not in left
    assert (tmp_path / "not ours").exists()
