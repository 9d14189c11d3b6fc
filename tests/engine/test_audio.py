"""The chunker: every sample in its place, gaps, late blocks, bounds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.audio import CAPACITY, MAX_BACKLOG, MAX_GAP, MAX_JUMP, Chunker
from engine.clock import SAMPLE_RATE


def ramp(first, count):
    """Samples that say where they belong."""
    return ((np.arange(first, first + count) % 1_000_003) / 1_000_003).astype(np.float32)


def drain(chunker):
    chunks = []
    while (chunk := chunker.next_chunk()) is not None:
        chunks.append(chunk)
    return chunks


@settings(max_examples=60, deadline=None)
@given(
    frames=st.integers(1, 8),
    lookahead=st.sampled_from([0, 1, 2840, 3840, 7999]),
    start=st.integers(0, 1000),
    sizes=st.lists(st.integers(1, 4800), min_size=1, max_size=60),
)
def test_chunks_are_the_stream_without_gap_or_overlap(frames, lookahead, start, sizes):
    chunker = Chunker(frames, lookahead)
    chunker.restart(3, start)
    first = 2000 * start
    chunks = []
    for size in sizes:
        assert chunker.append(first, ramp(first, size))
        first += size
        chunks += drain(chunker)
    chunker.finish()
    chunks += drain(chunker)
    total = sum(sizes)
    assert chunker.end_frame == start + -(-total // 2000)
    assert [c.index for c in chunks] == list(range(len(chunks)))
    assert [c.first_frame for c in chunks] == [start + frames * i for i in range(len(chunks))]
    assert len(chunks) == -(-(chunker.end_frame - start) // frames)
    lengths = [2000 * frames + (lookahead if i == 0 else 0) for i in range(len(chunks))]
    assert [len(c.pcm) for c in chunks] == lengths
    everything = np.concatenate([c.pcm for c in chunks])
    expected = np.zeros(len(everything), np.float32)
    kept = min(total, len(everything))
    expected[:kept] = ramp(2000 * start, kept)
    assert np.array_equal(everything, expected)
    assert chunker.counts.gap == chunker.counts.late == chunker.counts.chunks_dropped == 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), live=st.booleans())
def test_any_disorder_is_counted_and_bounded(seed, live):
    """Random holes, repeats and jumps: no sample in a wrong place, memory bounded."""
    random = np.random.default_rng(seed)
    chunker = Chunker(2, 2840)
    where = 0
    for _ in range(200):
        where = max(0, where + int(random.integers(-3000, 6000)))
        if random.random() < 0.05:
            where += int(random.integers(0, 3 * SAMPLE_RATE))
        size = int(random.integers(0, 2000))
        chunker.append(where, ramp(where, size), int(live))
        where += size
        if random.random() < 0.5:
            for chunk in drain(chunker):
                first = 2000 * chunk.first_frame + (2840 if chunk.index else 0)
                told = ramp(first, len(chunk.pcm))
                assert np.all((chunk.pcm == told) | (chunk.pcm == 0))
        assert chunker.backlog <= MAX_BACKLOG + 2840
        assert chunker.head - 2000 * chunker.next_frame <= CAPACITY
    assert chunker.counts.gap >= 0 and chunker.counts.late >= 0


def test_gap_up_to_a_second_is_silence_and_counted():
    chunker = Chunker(1, 0)
    chunker.append(0, np.ones(1000, np.float32))
    chunker.append(1500, np.ones(500, np.float32))
    (chunk,) = drain(chunker)
    assert chunk.pcm[:1000].all() and not chunk.pcm[1000:1500].any() and chunk.pcm[1500:].all()
    assert chunker.counts.gap == 500


def test_longer_gap_restarts_the_stream_behind_it():
    chunker = Chunker(1, 0)
    chunker.append(0, np.ones(1000, np.float32))
    at = 1000 + MAX_GAP + 700  # 49,700: inside frame 24
    chunker.append(at, np.ones(300, np.float32))
    (chunk,) = drain(chunker)
    assert (chunk.index, chunk.first_frame) == (0, 24)
    assert not chunk.pcm[:1700].any() and chunk.pcm[1700:].all()


def test_a_broken_clock_is_refused():
    chunker = Chunker(1, 0)
    assert not chunker.append(MAX_JUMP + 1, np.ones(10, np.float32))
    assert not chunker.append(2**62, np.ones(10, np.float32))
    assert chunker.head == 0


def test_late_and_repeated_samples_are_cut_off():
    chunker = Chunker(1, 0)
    chunker.append(0, ramp(0, 1500))
    chunker.append(0, ramp(0, 1500))
    chunker.append(1000, ramp(1000, 1000))
    (chunk,) = drain(chunker)
    assert np.array_equal(chunk.pcm, ramp(0, 2000))
    assert chunker.counts.late == 2000


def test_filled_frames_are_idle_and_others_carry_their_capture_time():
    chunker = Chunker(1, 0)
    for at in range(0, 4000, 1000):
        chunker.append(at, np.ones(1000, np.float32), 1_000_000_000 + at * 1_000_000 // 48)
    chunker.fill(9000)
    stamps = [chunker.stamp(i) for i in range(5)]
    assert [s.idle for s in stamps] == [False, False, True, True, False]
    # Sample 1,000 under the middle of frame 0 was captured 1,000 / 48,000 s after the first.
    assert abs(stamps[0].capture_time_ns - 1_020_833_333) < 1000
    assert stamps[2].capture_time_ns == 0
    assert chunker.counts.filled == 5000


def test_too_much_waiting_drops_whole_chunks_and_keeps_the_look_ahead():
    chunker = Chunker(2, 2840)
    first = 0
    for _ in range(150):  # 3 s
        chunker.append(first, ramp(first, 960))
        first += 960
    chunks = drain(chunker)
    assert chunker.counts.chunks_dropped > 0
    assert chunks[0].index == 0 and chunks[0].first_frame == 2 * chunker.counts.chunks_dropped
    everything = np.concatenate([c.pcm for c in chunks])
    assert np.array_equal(everything, ramp(2000 * chunks[0].first_frame, len(everything)))


def test_an_hour_costs_no_memory():
    chunker = Chunker(4, 3840)
    ring, block = chunker._ring, np.zeros(4800, np.float32)
    count = 0
    for first in range(0, 3600 * SAMPLE_RATE, 4800):
        chunker.append(first, block, 1)
        count += len(drain(chunker))
    assert count == 3600 * 6 - 1 and chunker._ring is ring and len(ring) == CAPACITY
