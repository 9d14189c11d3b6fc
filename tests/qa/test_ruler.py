"""The gauge, the tracker and the second opinion against drawn mouths whose truth is known."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from engine.errors import EngineError
from engine.portrait.coefficients import vector
from engine.qa import scorer
from engine.qa.expected import frame_times
from engine.qa.gauge import COLOURS, LANDMARKS, default_gauge, fit_gauge, monotone
from engine.qa.measured import STRIP, Measured
from engine.qa.offset import lag
from engine.qa.real_speakers import clips_of, sentence
from engine.qa.ridge import TAPS_MS, inputs, movements, weights
from engine.qa.sweep import coded, drawn, measure_frames, sweep_tokens, true_gap
from engine.qa.tracker import moved, similarity
from tests.qa.conftest import GRID, ROOT, needs_models


def test_similarity_is_found_exactly():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(12, 2)) * 50
    turn = 0.4
    matrix = 1.3 * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    target = points @ matrix.T + [7, -3]
    assert moved(points, similarity(points, target)) == pytest.approx(target, abs=1e-9)


def test_monotone_fit_never_falls():
    raw = np.array([0.0, 0.1, 0.1, 0.3, 0.2, 0.5])
    gaps = np.array([0.0, 0.2, 0.1, 0.25, 0.3, 0.6])
    readings, levels = monotone(raw, gaps)
    assert (np.diff(readings) > 0).all() and (np.diff(levels) >= 0).all()


def fake(gaps: np.ndarray, follow: bool) -> Measured:
    """Landmarks that follow the gaps or not, over strips whose dark rows always do."""
    n = len(gaps)
    points = np.zeros((n, 478, 2), np.float32)
    points[:, 263, 0] = 100.0
    for low in (14, 87, 317):
        points[:, low, 1] = 100 * (gaps if follow else 0.02)
    strips = np.full((n, *STRIP, 3), (120, 150, 210), np.uint8)
    for strip, gap in zip(strips, gaps, strict=True):
        strip[40 : 40 + round(gap * 128)] = (20, 20, 60)
    ones = np.ones(n)
    return Measured(frame_times(n), points, strips, 99 * ones, ones, ones)


def test_the_better_measure_is_kept():
    gaps = np.tile(np.linspace(0, 0.12, 20), 2)
    blind = fit_gauge(fake(gaps, follow=False), gaps, 0.1)
    assert blind.measure == COLOURS and blind.error < 0.005
    rng = np.random.default_rng(1)
    noisy = fake(rng.permutation(gaps), follow=True)  # strips tell nothing
    points = noisy.landmarks.copy()
    for low in (14, 87, 317):
        points[:, low, 1] = 100 * gaps
    kept = fit_gauge(
        Measured(
            noisy.times_s, points, noisy.strips, noisy.luma, noisy.change, noisy.sharp
        ), gaps, 0.1,
    )  # fmt: skip
    assert kept.measure == LANDMARKS
    assert kept.opening(fake(np.array([0.0, 0.05, 0.1]), True)) == pytest.approx(
        [0, 0.5, 1], abs=0.08
    )


def test_without_a_sweep_the_clip_or_a_default_gives_the_range():
    moving = fake(np.linspace(0, 0.1, 48), True).landmarks
    assert default_gauge(moving).source == "clip"
    assert default_gauge(fake(np.full(48, 0.05), True).landmarks).source == "default"
    assert default_gauge(None).source == "default"


@needs_models
def test_openings_of_new_poses(renderer, gauge):
    """Not in the sweep, through a codec: 15 % of the full opening, worst face measured 15 %."""
    rng = np.random.default_rng(5)
    tokens = np.stack([
        vector(jawOpen=j, seal=1.0, mouthPucker=p, headYaw=y, headRoll=r)
        for j, p, y, r in zip(rng.uniform(0, 0.5, 16), rng.uniform(0, 0.5, 16),
                              rng.uniform(-4, 4, 16), rng.uniform(-4, 4, 16), strict=True)
    ])  # fmt: skip
    truth = np.array([true_gap(renderer, token) for token in tokens]) / gauge.full
    found = gauge.opening(measure_frames(coded(drawn(renderer, tokens), crf=20)))
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.16
    assert np.corrcoef(found, truth)[0, 1] > 0.95


@needs_models
def test_no_lag_with_a_moving_head(renderer, gauge):
    """A filter over time would lag 0.43 frame."""
    n = 60
    phase = np.array([0, 3, 1, 4, 2, 5, 0, 2, 6, 1])[np.arange(n) // 6]
    jaw = 0.22 + 0.2 * np.sin(2 * np.pi * (np.arange(n) / 9 + phase / 7))
    tokens = np.stack([
        vector(jawOpen=j, seal=1.0, headYaw=5 * np.sin(i / 9), headX=0.1 * np.sin(i / 7))
        for i, j in enumerate(jaw)
    ])  # fmt: skip
    truth = np.array([true_gap(renderer, token) for token in tokens])
    found = lag(gauge.opening(measure_frames(drawn(renderer, tokens))), truth)
    assert found is not None and abs(found.late) < 0.1 and found.r0 > 0.95


def test_sweep_opens_and_shuts():
    jaws = sweep_tokens()[:, 0]
    assert jaws.min() == 0 and jaws.max() == 0.5 and len(jaws) == 57


def test_ridge_hears_around_an_instant():
    """A click moves only the inputs whose tap lies on it."""
    pcm = np.random.default_rng(0).normal(0, 1e-3, 96_000).astype(np.float32)
    quiet = inputs(pcm, np.array([1.0]))
    pcm[48_000 + 5_760 - 200 : 48_000 + 5_760 + 200] += 0.5  # 120 ms later
    heard = np.abs(inputs(pcm, np.array([1.0])) - quiet).reshape(len(TAPS_MS), -1).max(1)
    assert heard[4] > 0.5 and heard[:3].max() < 0.1


def test_ridge_weights_say_where_they_come_from():
    learnt = weights()
    assert "GRID" in learnt.source and learnt.within_1 >= 0.8 * learnt.clips
    assert np.array(learnt.matrix).shape == (50, 3)


def test_movements_ignore_roll_and_size():
    points = np.random.default_rng(3).normal(size=(478, 2)) * 40 + 300
    turn = np.array([[0.8, -0.6], [0.6, 0.8]]) * 1.7
    both = movements(np.stack([points, points @ turn.T + 9]))
    assert both[0] == pytest.approx(both[1], rel=1e-6)


@needs_models
@pytest.mark.skipif(not GRID.is_dir(), reason="needs ../shared/data/grid")
def test_real_speakers_are_at_zero():
    """Four speakers, each judged by the three others."""
    from engine.qa.ridge_fit import left_out, read_clip

    paths = [p for p in clips_of(GRID) if "swiz3n" not in p.name][-4:]
    lags = left_out({p.stem: read_clip(p) for p in paths})
    assert len(lags) == 4 and sum(abs(found.late) <= 1 for found in lags.values()) >= 3


def test_names_of_real_clips():
    assert sentence("grid_bbaf2n") == "bin blue at f two now"
    with pytest.raises(EngineError, match="no name of a GRID clip"):
        sentence("holiday")


@needs_models
def test_scorer_hash_follows_code_models_and_set(tmp_path, monkeypatch):
    first = scorer.scorer_hash("set-1")
    assert first == scorer.scorer_hash("set-1") and len(first) == scorer.SHORT
    assert first != scorer.scorer_hash("set-2")
    assert first != scorer.scorer_hash("set-1", syncnet_sha256="abc")
    for name in (scorer.DETECTOR, scorer.MESH):
        (tmp_path / name).write_bytes(b"other model")
    assert first != scorer.scorer_hash("set-1", tmp_path)
    with pytest.raises(EngineError, match="cannot be read"):
        scorer.scorer_hash("set-1", tmp_path / "none")


def test_every_scoring_module_is_hashed():
    """What score_clip imports of this package is in the hash, but for types and plain tables."""
    code = (
        "import sys, engine.qa.score_clip, engine.qa.sweep\n"
        "print(*[n for n in sys.modules if n.startswith('engine.qa.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    used = {name.split(".")[-1] for name in done.stdout.split()} - {"report"}
    hashed = {name.split("/")[-1].removesuffix(".py") for name in scorer.CODE}
    assert used <= hashed, used - hashed


def test_report_types_are_light():
    code = "import sys, engine.qa.report; print([m for m in ('torch', 'cv2') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
