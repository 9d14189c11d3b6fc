"""Lags against closed forms and an independent correlation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.motion.phone_track import Phone
from engine.qa.expected import OPENING, expected_opening, frame_times, of_phones
from engine.qa.offset import curve, lag
from engine.speech.encoded import PHONES


def bumps(times: np.ndarray) -> np.ndarray:
    """Gaussian openings at uneven places: smooth, so that parts of a frame are defined."""
    places = np.array([6.0, 14.5, 20.0, 33.0, 41.2, 52.0, 60.7, 77.0, 84.0, 95.0])
    return np.exp(-0.5 * ((times[:, None] - places) / 2.0) ** 2).sum(1)


@settings(deadline=None, max_examples=40)
@given(late=st.floats(-9, 9))
def test_finds_parts_of_a_frame(late: float):
    frames = np.arange(108.0)
    found = lag(bumps(frames - late), bumps(frames))
    assert found is not None
    assert found.late == pytest.approx(late, abs=0.06)
    assert found.best > 0.95


def test_curve_is_pearson_of_the_overlap():
    rng = np.random.default_rng(2)
    seen, wanted = rng.normal(size=(2, 60))
    values = curve(seen, wanted)
    for k in range(-12, 13):
        a = seen[max(0, k) : 60 + min(0, k)]
        b = wanted[max(0, -k) : 60 - max(0, k)]
        assert values[12 + k] == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)


def test_a_still_mouth_and_a_short_clip_have_no_offset():
    wanted = bumps(np.arange(60.0))
    assert lag(np.full(60, 0.3), wanted) is None
    assert lag(wanted[:30], wanted[:30]) is None


def test_chance_is_far_below_a_fit():
    rng = np.random.default_rng(3)
    wanted = bumps(np.arange(108.0))
    found = [lag(rng.permutation(wanted), wanted) for _ in range(50)]
    assert max(f.confidence for f in found if f) < 0.5
    fit = lag(wanted, wanted)
    assert fit is not None and fit.confidence > 0.8


def test_table_covers_every_phone_and_edges_belong_to_the_next():
    assert set(OPENING) == set(PHONES)
    phones = [Phone("SIL", 0, 0.1), Phone("AA", 0.1, 0.2), Phone("B", 0.2, 0.3)]
    at = np.array([-0.1, 0.0, 0.1, 0.1999, 0.2, 0.3, 5.0])
    assert of_phones(phones, OPENING, at).tolist() == [0, 0, 1, 1, 0, 0, 0]


def test_expected_opening_is_symmetric_in_time():
    phones = [Phone("SIL", 0, 1.0), Phone("AA", 1.0, 1.25), Phone("SIL", 1.25, 2.25)]
    wanted = expected_opening(phones, frame_times(54))
    assert wanted == pytest.approx(wanted[::-1], abs=1e-9)
    assert wanted.max() == pytest.approx(1.0) and wanted.min() == 0
