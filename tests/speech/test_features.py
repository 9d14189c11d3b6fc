"""Resampling and mel features against slow, plain references."""

from __future__ import annotations

import numpy as np

from engine.speech.features import (
    GRID_OFFSET,
    HOP,
    MELS,
    WINDOW,
    InputStream,
    MelStream,
    mel_matrix,
    mel_power,
    step_of_frame,
)
from engine.speech.resample import HALF_TAPS, Halver, lowpass_taps


def test_the_filter_passes_speech_and_stops_aliases() -> None:
    response = np.abs(np.fft.rfft(lowpass_taps(), 4_800))  # 10 Hz bins
    assert abs(20 * np.log10(response[100])) < 0.01
    assert 20 * np.log10(response[760]) > -0.3
    assert 20 * np.log10(response[1_640:].max()) < -60


def test_output_sits_on_every_second_input_sample() -> None:
    """No delay beyond the taps: a slow sine comes out in phase."""
    t = np.arange(9_600) / 48_000
    out = Halver().push(np.sin(2 * np.pi * 300 * t).astype(np.float32))
    assert len(out) == (len(t) - HALF_TAPS + 1) // 2
    ideal = np.sin(2 * np.pi * 300 * np.arange(len(out)) / 24_000)
    assert np.abs(out - ideal)[20:].max() < 1e-3


def test_halving_in_pieces_equals_halving_at_once() -> None:
    x = np.random.default_rng(0).standard_normal(5_003).astype(np.float32)
    whole, halver = Halver().push(x), Halver()
    parts = [halver.push(x[i : i + 7]) for i in range(0, len(x), 7)]
    assert np.allclose(np.concatenate(parts), whole, atol=1e-6)


def test_a_window_hears_what_it_says() -> None:
    """Hop k changes with the last sample before HOP*(k+1) + GRID_OFFSET and not with the next."""
    k = 7
    edge = HOP * (k + 1) + GRID_OFFSET
    quiet = np.zeros(edge + 2_000, np.float32)
    base = mel_power(quiet)
    inside, outside = quiet.copy(), quiet.copy()
    inside[edge - 20] = 1.0
    outside[edge] = 1.0
    assert not np.array_equal(mel_power(inside)[k], base[k])
    assert np.array_equal(mel_power(outside)[k], base[k])
    first_heard = quiet.copy()
    first_heard[edge - WINDOW - 1] = 1.0
    assert np.array_equal(mel_power(first_heard)[k], base[k])


def test_a_tone_lights_its_own_band() -> None:
    t = np.arange(24_000) / 24_000
    for hz in (200.0, 1_000.0, 4_000.0):
        power = mel_power(np.sin(2 * np.pi * hz * t).astype(np.float32))[20]
        bins = mel_matrix()[:, power.argmax()] > 0
        edges = np.flatnonzero(bins)[[0, -1]] * 31.25
        assert edges[0] - 32 <= hz <= edges[1] + 32


def test_streams_equal_batches() -> None:
    x = np.random.default_rng(0).standard_normal(20_000).astype(np.float32)
    mels = MelStream()
    parts = [mels.push(x[i : i + 611]) for i in range(0, len(x), 611)]
    whole = mel_power(x)
    assert np.allclose(np.concatenate(parts), whole, rtol=1e-5)
    mean = np.full(MELS, -3.0, np.float32)
    once, pieces = InputStream(mean), InputStream(mean)
    cut = [pieces.push(whole[i : i + 3]) for i in range(0, len(whole), 3)]
    assert np.allclose(np.concatenate(cut), once.push(whole), atol=1e-5)


def test_the_step_of_a_frame_ends_before_its_look_ahead() -> None:
    """Last 48 kHz sample heard by frame n's step: 2,000n + 4,839, never later than allowed."""
    for n in (0, 1, 17):
        last_hop = 2 * step_of_frame(n)
        last_24k = HOP * (last_hop + 1) + GRID_OFFSET - 1
        assert 2 * last_24k + HALF_TAPS == 2_000 * n + 4_839


def test_only_quiet_sound_is_lifted_and_at_most_12_db() -> None:
    """Energy input: (ln power + 4) / 4, so 12 dB are 0.691; a loud hop ends the lift at once."""
    mean = np.full(MELS, -3.0, np.float32)
    quiet = np.full((3_001, MELS), 1e-4, np.float32)
    loud = np.full((4, MELS), 1.0, np.float32)
    rows = InputStream(mean).push(np.concatenate([quiet, loud, quiet]))
    energies = rows[:, [MELS, -1]].ravel()[1:]
    plain = (np.log([0.004, 40.0]) + 4) / 4
    assert abs(energies[0] - plain[0]) < 0.02  # a stream starts without lift
    assert np.allclose(energies[2_500:3_000], plain[0] + 12 / 10 * np.log(10) / 4, atol=0.01)
    assert np.allclose(energies[3_001:3_005], plain[1], atol=0.01)
    assert np.allclose(energies[3_005:3_010], plain[0], atol=0.02)
