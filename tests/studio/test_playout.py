"""Playout without a clock: tables, 200 simulated seconds with stalls, hours with wrong devices."""

from __future__ import annotations

import numpy as np
import pytest

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME, ms_to_samples
from engine.protocol.frame import Frame
from studio.arrival import ArrivalDelay
from studio.playout import SHELF_FRAMES, decide, shelve

PIXELS = np.zeros((1, 1, 4), np.uint8)


def frame(index: int, epoch: int = 0) -> Frame:
    return Frame(1, epoch, index, SAMPLES_PER_FRAME * index, 0, 0, PIXELS)


@pytest.mark.parametrize(
    ("at_hand", "position", "shown", "show", "reason", "late", "wait"),
    [
        ([], 0, None, None, "empty", [], None),
        ([0], 0, None, 0, "on_time", [], None),
        ([1], 0, 0, None, "current", [], 2000),
        ([1], 1999, 0, None, "current", [], 1),
        ([1], 2000, 0, 1, "on_time", [], None),
        ([1, 2, 3], 4100, 0, 2, "on_time", [1], 1900),
        ([1], 9000, 0, 1, "late", [], None),
        ([], 9000, 0, None, "empty", [], None),
        ([2], 9000, 3, None, "empty", [2], None),
        ([], 100, 1, None, "early", [], None),
        ([100], 0, 0, None, "current", [], None),  # 100 frames ahead: another timeline
    ],
)
def test_decision(at_hand, position, shown, show, reason, late, wait):
    shown_pts = None if shown is None else SAMPLES_PER_FRAME * shown
    decision = decide([frame(i) for i in at_hand], position, shown_pts)
    assert (decision.show.frame_index if decision.show else None) == show
    assert decision.reason == reason
    assert [f.frame_index for f in decision.late] == late
    assert decision.wait_samples == wait


def test_shelf_is_bounded_and_sorted():
    shelf: tuple[Frame, ...] = ()
    fallen = []
    for index in [3, 1, 2, *range(4, 40)]:
        shelf, out = shelve(shelf, frame(index))
        fallen += [out] if out else []
    assert len(shelf) == SHELF_FRAMES
    assert [f.pts for f in shelf] == sorted(f.pts for f in shelf)
    assert len(fallen) + len(shelf) == 39
    again, out = shelve(shelf, frame(39, epoch=9))
    assert out is None and len(again) == len(shelf) and again[-1].epoch == 9


def simulate(seconds, position_at, arrival_ms, gui_blocked=lambda ms: False):
    """Step a millisecond at a time: -> (ms, offset in ms of the picture up) for each step."""
    shelf, shown, painted, offsets, next_index, late = (), None, None, [], 0, 0
    for ms in range(int(seconds * 1000)):
        while arrival_ms(next_index) <= ms:
            shelf, _ = shelve(shelf, frame(next_index))
            next_index += 1
        position = position_at(ms)
        decision = decide(shelf, position, shown)
        shelf = decision.keep
        late += len(decision.late)
        if decision.show:
            shown = decision.show.pts
        if not gui_blocked(ms):
            painted = shown
        if painted is not None:
            behind = position - painted
            offset = behind - SAMPLES_PER_FRAME if behind >= SAMPLES_PER_FRAME else min(behind, 0)
            offsets.append((ms, offset * 1000 / SAMPLE_RATE))
    return offsets, late


def test_200_seconds_on_time():
    offsets, late = simulate(200, lambda ms: 48 * (ms - 200), lambda n: n * 1000 / 24)
    assert max(abs(o) for _, o in offsets) <= 1.0
    assert late == 0


def test_engine_stall_holds_then_drops_and_is_back_at_once():
    def arrival(n):
        due = n * 1000 / 24
        return 3000 if 2500 <= due < 3000 else due

    offsets, late = simulate(10, lambda ms: 48 * (ms - 100), arrival)
    assert max(o for ms, o in offsets if 2900 < ms < 3000) > 300  # held, visibly late
    assert all(abs(o) <= 1 for ms, o in offsets if ms > 3001)
    assert late >= 8  # passed over, never shown late


def test_gui_stall_of_500_ms_is_made_good_with_the_first_paint():
    offsets, _ = simulate(
        10, lambda ms: 48 * (ms - 200), lambda n: n * 1000 / 24, lambda ms: 4000 <= ms < 4500
    )
    assert max(o for ms, o in offsets if 4000 <= ms < 4500) > 400
    assert all(abs(o) <= 20 for ms, o in offsets if ms >= 4501)


@pytest.mark.parametrize("ppm", [-200, 200])
def test_one_hour_with_a_wrong_speaker_does_not_drift(ppm):
    """File playback: blocks are sent by the speaker's clock, so frames arrive by it too."""
    rate = 1 + ppm * 1e-6

    def position(ms):
        return int(48 * (ms - 200) * rate)

    def arrival(n):
        return n * 1000 / 24 / rate

    start = 3_590_000
    shelf, shown = (), None
    worst = 0.0
    index = int((start - 400) * 24 * rate / 1000)
    for ms in range(start, start + 10_000):
        while arrival(index) <= ms:
            shelf, _ = shelve(shelf, frame(index))
            index += 1
        decision = decide(shelf, position(ms), shown)
        shelf, shown = decision.keep, decision.show.pts if decision.show else shown
        if shown is not None and ms > start + 1000:
            worst = max(worst, position(ms) - shown - SAMPLES_PER_FRAME)
    assert worst <= ms_to_samples(1)


def feed(delay, bursts, latency_ms, frames=4, jitter=lambda i: 0.0):
    """Bursts of `frames` frames, the newest captured `latency_ms` before: -> applied delays."""
    applied = []
    for burst in range(bursts):
        last = (burst + 1) * frames
        captured = SAMPLES_PER_FRAME * last + ms_to_samples(latency_ms + jitter(burst))
        for k in range(frames):
            delay.observe(SAMPLES_PER_FRAME * (last - frames + k), captured + 10 * k)
        applied.append(delay.delay(captured + 50))
    return applied


def test_arrival_delay_covers_the_first_frame_of_a_chunk():
    applied = feed(ArrivalDelay(), 60, latency_ms=80)
    expected = 4 * SAMPLES_PER_FRAME + ms_to_samples(80)
    assert 0 <= applied[-1] - expected <= ms_to_samples(6)


def test_arrival_delay_ignores_one_stall_and_follows_a_slower_engine():
    delay = ArrivalDelay()
    quiet = feed(delay, 48, 80)[-1]
    stalled = feed(delay, 24, 80, jitter=lambda i: 500.0 if i == 3 else 0.0)[-1]
    assert abs(stalled - quiet) < ms_to_samples(2)
    slower = feed(delay, 96, 140)[-1]
    assert abs(slower - quiet - ms_to_samples(60)) < ms_to_samples(4)


def test_arrival_delay_falls_slowly():
    delay = ArrivalDelay()
    high = feed(delay, 48, 160)[-1]
    applied = [high, *feed(delay, 200, 60)]
    steps = np.diff(applied)
    assert steps.min() >= -ms_to_samples(20 * 4 / 24) - 2  # 20 ms a second
    assert abs(applied[-1] - high + ms_to_samples(100)) < ms_to_samples(4)


def test_no_delay_before_the_first_frame():
    assert ArrivalDelay().delay(5) is None
