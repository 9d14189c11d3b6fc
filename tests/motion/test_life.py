from __future__ import annotations

import itertools

import numpy as np

from engine.motion.blinks import LONGEST_S, SHAPE, Blinks
from engine.motion.life import Life
from engine.motion.prosody import Prosody, ProsodyTracker
from engine.motion.spring import Spring
from engine.portrait.coefficients import INDEX

ALL = {"mouth": 1.0, "head": 1.0, "blink": 1.0, "gaze": 1.0, "expression": 1.0}
IDLE = Prosody(False, False, False, 0.0, 0.0, 100)


def idle(frames: int, seed: int = 1) -> np.ndarray:
    life = Life(seed)
    return np.stack([life.step(IDLE, 0.0, ALL) for _ in range(frames)])


def test_blinks_keep_their_shape_and_interval() -> None:
    lids = idle(24 * 120)[:, INDEX["eyeBlinkL"]]
    starts = np.flatnonzero((lids[1:] > 0) & (lids[:-1] == 0)) + 1
    assert len(starts) > 24
    for start in starts:
        assert tuple(lids[start : start + len(SHAPE)]) == SHAPE
    gaps = np.diff(starts) / 24
    assert gaps.min() >= 1.0
    assert gaps.max() <= LONGEST_S + 0.1


def test_blinks_like_phrase_ends() -> None:
    count = 0
    for seed in range(200):
        blinks = Blinks(np.random.default_rng(seed))
        for frame in range(32):
            lid = blinks.step(1.0, phrase_end=frame == 30, glance=False)
            count += frame == 30 and lid == SHAPE[0]
    assert 80 < count < 160


def test_a_still_face_is_never_dead() -> None:
    tokens = idle(24 * 30)
    for name in ("headYaw", "headPitch", "headRoll"):
        seconds = tokens[:, INDEX[name]].reshape(-1, 24)
        assert (np.ptp(seconds, axis=1) > 0.004).all(), name
    assert np.ptp(tokens[:, INDEX["breath"]]) > 0.4
    assert np.abs(tokens[:, INDEX["headYaw"]]).max() < 6


def test_gaze_mostly_meets_the_viewer_and_undoes_the_head() -> None:
    tokens = idle(24 * 120)
    looks = tokens[:, INDEX["gazeX"]] + tokens[:, INDEX["headYaw"]] / 32
    assert (np.abs(looks) < 0.12).mean() > 0.75
    assert np.abs(looks).max() <= 0.31
    assert np.corrcoef(tokens[:, INDEX["gazeX"]], tokens[:, INDEX["headYaw"]])[0, 1] < -0.2


def test_accents_nod_and_raise_brows() -> None:
    accent = Prosody(True, False, False, 1.0, 0.0, 0)
    quiet = Prosody(True, False, False, 0.0, 0.0, 0)
    nods, brows = [], []
    for seed in range(20):
        with_accent, without = Life(seed), Life(seed)
        difference = [
            with_accent.step(accent if f == 10 else quiet, 0, ALL) - without.step(quiet, 0, ALL)
            for f in range(24)
        ]
        nods.append(max(d[INDEX["headPitch"]] for d in difference))
        brows.append(max(d[INDEX["browInnerL"]] for d in difference))
    assert np.median(nods) > 1.0
    assert sum(b > 0.1 for b in brows) >= 6


def test_prosody_finds_phrases_and_accents() -> None:
    tracker = ProsodyTracker()
    levels = [-70.0] * 10 + [-30.0] * 30 + [-18.0] * 4 + [-30.0] * 20 + [-70.0] * 10
    told = [tracker.step(float(db > -50), db, 120.0 if db > -50 else 0.0) for db in levels]
    assert [f for f, p in enumerate(told) if p.phrase_start] == [10]
    assert [f for f, p in enumerate(told) if p.phrase_end] == [68]
    accents = [f for f, p in enumerate(told) if p.accent > 0]
    assert accents
    assert all(40 <= f <= 46 for f in accents)


def test_a_spring_arrives_without_overshoot() -> None:
    spring = Spring(8.0)
    path = [spring.step(1.0) for _ in range(48)]
    assert max(path) <= 1
    assert abs(path[-1] - 1) < 1e-3
    assert all(b >= a for a, b in itertools.pairwise(path))
