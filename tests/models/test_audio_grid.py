"""The rates of speech features against frames of video, in integers: no drift, enough audio."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from engine.models.audio_grid import bucket, features_in, lookahead, place, samples_for
from engine.models.audio_resample import REACH, Downsampler

HOUR = 3600
RATES = [Fraction(24), Fraction(16), Fraction(25), Fraction(30), Fraction(24_000, 1001)]


@pytest.mark.parametrize("fps", RATES, ids=str)
def test_an_hour_does_not_drift(fps: Fraction) -> None:
    """Every 30 Hz point is the nearest one, every pair of features encloses its point."""
    before = -1
    for frame in range(0, int(HOUR * fps), 7):
        at = bucket(frame, fps)
        assert abs(Fraction(at, 30) - frame / fps) <= Fraction(1, 60)
        spot = place(frame, fps)
        assert Fraction(spot.index, 50) + spot.share / 50 == Fraction(at, 30)
        assert 0 <= spot.share < 1 and spot.index >= before
        before = spot.index


def test_the_pattern_at_24_frames() -> None:
    """By hand: n * 30 / 24 = 0, 1.25, 2.5, 3.75, 5, 6.25, 7.5; halves go to the even."""
    assert [bucket(n, Fraction(24)) for n in range(7)] == [0, 1, 2, 4, 5, 6, 8]
    assert place(3, Fraction(24)).index == 6  # bucket 4 is at feature 6 2/3
    assert place(3, Fraction(24)).share == Fraction(2, 3)
    assert place(24 * HOUR, Fraction(24)).index == 50 * HOUR


@pytest.mark.parametrize("fps", RATES[:4], ids=str)
@pytest.mark.parametrize("ahead", [0, 5])
def test_a_chunk_always_has_the_audio_it_needs(fps: Fraction, ahead: int) -> None:
    """For an hour of chunks of four; and not a whole feature more than the worst one needs."""
    extra = lookahead(fps, 4, ahead, REACH)
    spare = []
    for chunk in range(int(HOUR * fps) // 4):
        brought = int(48_000 / fps * 4 * (chunk + 1)) + extra
        # a 16 kHz sample n can be told once sample 3n + REACH at 48 kHz is there
        told = features_in((brought - 1 - REACH) // 3 + 1)
        spare.append(told - 1 - place(4 * chunk + 3, fps).last - ahead)
    assert min(spare) == 0 or (min(spare) > 0 and extra == 0)
    assert samples_for(features_in(123_456) - 1) <= 123_456 < samples_for(features_in(123_456))


def test_the_resampler_does_not_see_where_chunks_are_cut() -> None:
    pcm = np.random.default_rng(3).standard_normal(30_000).astype(np.float32)
    whole = Downsampler().push(pcm)
    for sizes in ([1] * 50, [7, 1000, 8000, 3], [12_345]):
        cut, at = Downsampler(), 0
        parts = []
        for size in (*sizes, len(pcm)):
            parts.append(cut.push(pcm[at : at + size]))
            at += size
        assert np.array_equal(np.concatenate(parts), whole)


def test_the_resampler_keeps_time_and_speech_and_stops_the_rest() -> None:
    at = np.arange(24_000)
    for hertz, passed in ((100, True), (3000, True), (7000, True), (8600, False), (15_000, False)):
        tone = np.sin(2 * np.pi * hertz * at / 48_000).astype(np.float32)
        got = Downsampler().push(tone)[200:-200]
        want = np.sin(2 * np.pi * hertz * 3 * np.arange(200, 200 + len(got)) / 48_000)
        if passed:
            assert np.abs(got - want).max() < 2e-3  # in place: no delay
        else:
            assert np.abs(got).max() < 1e-3
