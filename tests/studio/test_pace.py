"""The pace with injected positions and times: old epochs, tap, coalesced wake-ups, idle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from engine.clock import ms_to_samples
from engine.protocol.frame import Frame
from studio.mailbox import Mailbox
from studio.pace import SCREEN_LEAD_SAMPLES, Following, Pace
from studio.timings import Timings

MS = 1_000_000
PIXELS = np.zeros((1, 1, 4), np.uint8)


def frame(index, epoch=1, session=1, idle=False):
    return Frame(session, epoch, index, 2000 * index, 0, 0, PIXELS, idle=idle)


class Bench:
    def __init__(self):
        self.mailbox, self.timings, self.woken, self.taped = Mailbox(), Timings(), 0, []
        self.pace = Pace(self.mailbox, self.timings, self._wake)
        self.pace.expect(1, 1)
        self.pace.tap = self.taped.append
        self.position = 0

    def _wake(self):
        self.woken += 1

    def dropped(self):
        return self.timings.view(0).dropped

    def hear(self):
        self.pace.follow(Following("heard", lambda now: self.position))


@pytest.fixture
def bench():
    return Bench()


def test_a_heard_position_shows_each_frame_in_its_time(bench):
    bench.hear()
    bench.position = -SCREEN_LEAD_SAMPLES
    for index in range(4):
        bench.pace.arrived(frame(index), 0)
    wait = bench.pace.tick(0)
    assert bench.mailbox.take().frame_index == 0 and wait == 2000 / 48_000
    bench.position += 1999
    bench.pace.tick(0)
    assert bench.mailbox.take() is None
    bench.position += 1
    bench.pace.tick(0)
    assert bench.mailbox.take().frame_index == 1
    bench.position += 4000
    bench.pace.tick(0)
    assert bench.mailbox.take().frame_index == 3 and bench.dropped() == {"late": 1}
    assert [f.frame_index for f in bench.taped] == [0, 1, 2, 3], "the tap misses nothing"


def test_old_epochs_and_other_sessions_never_show(bench):
    bench.hear()
    bench.position = 10_000
    bench.pace.arrived(frame(2), 0)
    bench.pace.expect(1, 2)
    bench.pace.arrived(frame(3), 0)
    bench.pace.arrived(frame(3, session=9), 0)
    bench.pace.tick(0)
    assert bench.mailbox.take() is None and bench.taped == []
    assert bench.dropped()["old_epoch"] == 3
    bench.pace.arrived(frame(1, epoch=2), 0)  # a timeline may begin further back
    bench.pace.tick(0)
    assert bench.mailbox.take().epoch == 2


def test_a_gui_that_does_not_paint_gets_one_wake_up(bench):
    bench.hear()
    for index in range(10):
        bench.position = 2000 * index
        bench.pace.arrived(frame(index), 0)
        bench.pace.tick(0)
    assert bench.woken == 1 and bench.dropped() == {"not_painted": 9}
    assert bench.mailbox.take().frame_index == 9


def test_without_sound_a_chunk_is_spread(bench):
    shown = []
    for index in range(4):
        bench.pace.arrived(frame(index, idle=True), 0)
    for ms in range(0, 200, 5):
        bench.pace.tick(ms * MS)
        taken = bench.mailbox.take()
        if taken:
            shown.append((ms, taken.frame_index))
    assert [index for _, index in shown] == [0, 1, 2, 3]
    assert all(35 <= b - a <= 45 for (a, _), (b, _) in pairwise(shown))


def test_without_sound_a_backlog_is_cut(bench):
    for index in range(12):
        bench.pace.arrived(frame(index, idle=True), 0)
    bench.pace.tick(0)
    assert bench.mailbox.take().frame_index == 8 and bench.dropped() == {"crowded": 8}


def test_a_microphone_is_followed_at_the_delay_of_the_picture(bench):
    captured = {"at": 0}
    position = lambda now: captured["at"]  # noqa: E731
    bench.pace.follow(Following("captured", position, position))
    shown = {}
    arrivals = {(k + 1) * 8000 + ms_to_samples(90): k for k in range(60)}
    for sample in range(0, 400_000, 48):
        captured["at"] = sample
        for due in [d for d in arrivals if d <= sample]:
            chunk = arrivals.pop(due)
            for k in range(4):
                bench.pace.arrived(frame(4 * chunk + k), sample)
        bench.pace.tick(sample)
        taken = bench.mailbox.take()
        if taken:
            shown[taken.frame_index] = sample
    gaps = np.diff([shown[k] for k in sorted(shown)][24:])
    assert len(shown) > 150 and abs(gaps - 2000).max() <= ms_to_samples(3)
    delay = shown[150] - 2000 * 150
    assert ms_to_samples(8000 / 48 + 90) - 96 <= delay <= ms_to_samples(8000 / 48 + 90 + 8)
    assert abs(bench.pace.picture_delay - delay) < 200
