"""Sample clock, ring and drift resampling: wrap, overrun, jitter, +-200 ppm for an hour."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.clock import SAMPLE_RATE, ms_to_samples
from studio.audio_ring import AudioRing
from studio.drift import DriftResampler, Follow
from studio.sample_clock import SampleClock

NS = 1_000_000_000


@pytest.mark.parametrize("ppm", [-200, 0, 200])
def test_sample_clock_follows_a_wrong_device_through_jitter(ppm):
    rng = np.random.default_rng(1)
    clock = SampleClock()
    rate = SAMPLE_RATE * (1 + ppm * 1e-6)
    errors = []
    for block in range(50 * 120):
        sample = block * 960
        true_ns = int(sample / rate * NS)
        clock.stamp(sample, true_ns + int(rng.normal(0, 2e6)))  # 2 ms of jitter
        if block > 50 * 30:
            errors.append(clock.sample_at(true_ns) - sample)
    assert abs(np.mean(errors)) < ms_to_samples(0.5)
    assert np.percentile(np.abs(errors), 95) < ms_to_samples(2)
    assert abs(clock.rate_ppm - ppm) < 120


def test_sample_clock_is_right_again_soon_after_a_slip():
    """The device ran dry for 22 ms and went on: within 0.25 s the clock has it, rate kept."""
    rng = np.random.default_rng(2)
    clock = SampleClock()
    for block in range(50 * 20):
        late_ns = 22_000_000 if block >= 500 else 0
        clock.stamp(block * 960, block * 20_000_000 + late_ns + int(rng.normal(0, 1e6)))
        error = clock.sample_at(block * 20_000_000 + late_ns) - block * 960
        if block < 500 or block > 515:
            assert block < 100 or abs(error) < ms_to_samples(4)
    assert abs(clock.rate_ppm) < 200


def test_sample_clock_jumps_over_a_gap_and_inverts():
    clock = SampleClock()
    assert clock.sample_at(5) is None and clock.time_of(5) is None
    for block in range(100):
        clock.stamp(block * 960, block * 20_000_000)
    clock.stamp(100 * 960, 5 * NS)  # 3 s of silence in the stream
    assert clock.sample_at(5 * NS) == 100 * 960
    assert abs(clock.sample_at(clock.time_of(97_000)) - 97_000) <= 1


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_ring_returns_what_was_written_over_wraps(writes, block):
    ring = AudioRing(1_000)
    source = np.arange(sum(writes), dtype=np.float32)
    start = 0
    for count in writes:
        ring.write(source[start : start + count])
        start += count
        while (got := ring.read(block)) is not None:
            position, samples = got
            assert np.array_equal(samples, source[position : position + block])
    assert ring.waiting < block and ring.lost == 0


def test_ring_overrun_is_counted_and_positions_stay_true():
    ring = AudioRing(1_000)
    source = np.arange(2_600, dtype=np.float32)
    for start in range(0, 2_600, 200):
        ring.write(source[start : start + 200])
    position, samples = ring.read(100)
    assert position == 2_600 - 750 and ring.lost == position
    assert np.array_equal(samples, source[position : position + 100])


def test_drift_resampler_keeps_a_tone_and_counts():
    tone = np.sin(2 * np.pi * 440 * np.arange(SAMPLE_RATE * 4) / SAMPLE_RATE).astype(np.float32)
    resampler = DriftResampler()
    out = np.concatenate([resampler.process(block, 1.001) for block in tone.reshape(-1, 960)])
    assert abs(len(out) - len(tone) * 1.001) < 4
    steady = out[100:-100]
    pitch = np.fft.rfftfreq(len(steady), 1 / SAMPLE_RATE)[np.abs(np.fft.rfft(steady)).argmax()]
    assert abs(pitch - 440 / 1.001) < 0.5
    ideal = np.sin(2 * np.pi * 440 / 1.001 * (np.arange(len(out)) - 2.002) / SAMPLE_RATE)
    shift = max(range(-3, 4), key=lambda k: np.dot(np.roll(ideal, k)[500:-500], out[500:-500]))
    assert np.abs(np.roll(ideal, shift)[500:-500] - out[500:-500]).max() < 0.06


@pytest.mark.parametrize("ppm", [-400, 400])
def test_an_hour_of_two_clocks_400_ppm_apart(ppm):
    """Microphone writes, speaker reads: the fill stays at its target, so sound stays in step."""
    follow, target = Follow(), ms_to_samples(150)
    fill, worst = float(target), 0.0
    for second in range(3600):
        ratio = follow.ratio(fill, target, 1.0)
        fill += SAMPLE_RATE * ratio - SAMPLE_RATE * (1 + ppm * 1e-6)
        if second > 120:
            worst = max(worst, abs(fill - target))
    assert worst < ms_to_samples(2)
