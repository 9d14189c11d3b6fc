"""States, epochs, counters and the filling of silence, with a clock of the test's own."""

from __future__ import annotations

import numpy as np
import pytest

from engine.audio import Chunker
from engine.errors import EngineError
from engine.protocol.audio_block import AudioBlock
from engine.session import CHUNKS_IN_FLIGHT, Session


def make(frames=1, lookahead=0, running=True):
    session = Session(7, Chunker(frames, lookahead), 0.0)
    if running:
        session.character_taken()
        session.start(0.0)
    return session


def block(session, first, count=960, epoch=None, live=True, last=False):
    epoch = session.epoch if epoch is None else epoch
    return AudioBlock(7, epoch, first, int(live), np.ones(count, np.float32), last)


def finish(session, chunk, run=None):
    run = session.run if run is None else run
    stamps = [
        session.frame_stamp(run, chunk.index, chunk.first_frame + i)
        for i in range(chunk.frame_count)
    ]
    session.chunk_done(run, chunk.index)
    return stamps


def test_states_in_their_order():
    session = make(running=False)
    assert session.state == "NOT_READY"
    with pytest.raises(EngineError, match="load a character"):
        session.start(0.0)
    session.character_taken()
    assert session.state == "READY"
    assert session.start(1.0).epoch == 1
    assert session.state == "RUNNING"
    session.take_block(block(session, 0, 2500, last=True, live=False), 1.0)
    chunks = session.due_chunks(1.0)
    assert [c.first_frame for c in chunks] == [0, 1]
    shown = [s for c in chunks for s in finish(session, c)]
    assert [s.frame_index for s in shown] == [0, 1] and session.state == "COMPLETED"
    done = session.start(2.0)  # COMPLETED -> RUNNING, the clock goes on
    assert session.state == "RUNNING" and done.first_sample == 4000
    session.stop(2.1)
    assert session.state == "READY"
    session.fail(EngineError("out_of_memory", "no memory", "buy some"))
    snapshot = session.snapshot(3.0)
    assert (snapshot.state, snapshot.code, snapshot.hint) == ("FAILED", "out_of_memory", "buy some")
    session.close()
    assert session.state == "FAILED"  # closing does not hide why
    other = make()
    other.close()
    assert other.state == "CANCELLED"


def test_old_epochs_are_dropped_and_counted_in_both_directions():
    session = make()
    session.take_block(block(session, 0, 2000), 0.0)
    (chunk,) = session.due_chunks(0.0)
    old_run = session.run
    done = session.interrupt(0.05)
    assert done.epoch == 2 and done.first_sample == 2000
    assert finish(session, chunk, old_run) == [None]
    session.take_block(block(session, 2000, epoch=1), 0.05)
    counters = session.snapshot(0.1).counters
    assert counters.frames_dropped_epoch == 1 and counters.blocks_dropped_epoch == 1
    session.take_block(block(session, 2000, 2000), 0.06)
    (again,) = session.due_chunks(0.06)
    assert (again.epoch, again.index, again.first_frame) == (2, 0, 1)


def test_interrupt_at_the_studios_own_clock():
    session = make()
    assert session.interrupt(0.0, at_sample=4001).first_sample == 6000
    with pytest.raises(EngineError, match="at_sample"):
        session.interrupt(0.0, at_sample=2**60)


def test_no_more_chunks_with_the_worker_than_allowed():
    session = make()
    session.take_block(block(session, 0, 4800), 0.0)
    session.take_block(block(session, 4800, 4800), 0.0)
    first = session.due_chunks(0.0)
    assert len(first) == CHUNKS_IN_FLIGHT and session.due_chunks(0.0) == []
    finish(session, first[0])
    assert [c.index for c in session.due_chunks(0.0)] == [3]


def test_a_starved_microphone_is_filled_with_idle_frames_at_24_fps():
    session = make()
    for i in range(50):  # a second of sound
        session.take_block(block(session, 960 * i), 0.02 * i)
        for chunk in session.due_chunks(0.02 * i):
            finish(session, chunk)
    now, stamps = 1.0, []
    while now < 3.0:
        now += 0.01
        for chunk in session.due_chunks(now):
            stamps += finish(session, chunk)
    idle = [s for s in stamps if s.idle]
    assert 44 <= len(idle) <= 48  # 2 s, of which 100 ms pass before it is noticed
    assert [s.frame_index for s in stamps] == list(range(24, 24 + len(stamps)))
    # It returns with a counter that stood still: late, until it is back at the clock.
    before = session.chunker.head
    session.take_block(block(session, 48_000), now)
    assert session.chunker.head == before
    session.take_block(block(session, 144_000), now)
    assert session.chunker.head >= 144_960


def test_a_muted_microphone_that_sends_zeros_is_never_filled():
    session = make()
    for i in range(500):
        session.take_block(block(session, 960 * i), 0.02 * i + 0.015 * (i % 3))
        for chunk in session.due_chunks(0.02 * i + 0.019):
            finish(session, chunk)
    assert session.chunker.counts.filled == 0


def test_a_slow_microphone_clock_is_not_taken_for_starvation():
    """A device 200 ppm slow is 0.7 s behind after an hour."""
    session = make()
    for i in range(0, 180_000, 30):
        session.take_block(block(session, 960 * i), 0.02 * i * 1.0002)
        for chunk in session.due_chunks(0.02 * i * 1.0002 + 0.01):
            finish(session, chunk)
    assert session.chunker.counts.filled == 0


def test_a_file_keeps_its_lead_and_may_begin_late():
    session = make()
    now, sent = 0.4, 0  # it needs 400 ms to begin
    session.due_chunks(0.39)
    while sent < 48_000:  # a second at once
        session.take_block(block(session, sent, live=False), now)
        sent += 960
        for chunk in session.due_chunks(now):
            finish(session, chunk)
    while now < 1.35:  # then nothing, while its lead lasts
        now += 0.01
        for chunk in session.due_chunks(now):
            finish(session, chunk)
    assert session.chunker.counts.filled == 0
    while now < 2.0:
        now += 0.01
        for chunk in session.due_chunks(now):
            finish(session, chunk)
    assert session.chunker.counts.filled > 0


def test_idle_frames_come_soon_after_an_interrupt():
    session = make()
    session.interrupt(1.0)
    assert session.due_chunks(1.05) == []
    (chunk, *_) = session.due_chunks(1.15)
    assert chunk.first_frame == 0 and chunk.index == 0 and not chunk.pcm.any()
    assert finish(session, chunk)[0].idle


def test_speech_goes_on_after_a_worker_was_lost():
    session = make()
    session.take_block(block(session, 0, 4800), 0.0)
    lost = session.due_chunks(0.0)
    old_run = session.run
    session.worker_lost("killed")
    assert session.due_chunks(0.1) == []
    snapshot = session.snapshot(0.1)
    assert (snapshot.state, snapshot.code) == ("RUNNING", "worker_died")
    assert "killed" in snapshot.message and snapshot.counters.worker_restarts == 1
    for i in range(40):
        session.take_block(block(session, 4800 + 960 * i), 0.1 + 0.02 * i)
    session.worker_back()
    (chunk,) = session.due_chunks(0.9)
    assert chunk.index == 0 and chunk.epoch == session.epoch
    assert 2000 * chunk.first_frame + 2000 > session.chunker.head - 4000  # the newest sound
    assert session.run != old_run and finish(session, lost[0], old_run) == [None]
    assert session.snapshot(1.0).code == ""


def test_a_new_character_while_running_restarts_the_stream_in_place():
    session = make(lookahead=2840)
    session.take_block(block(session, 0, 4800), 0.0)
    session.take_block(block(session, 4800, 4800), 0.0)
    old = session.due_chunks(0.0)
    session.character_taken()
    assert session.due_chunks(0.0) == []  # first the old model's chunks
    run = session.run
    for chunk in old:
        assert all(finish(session, chunk, run))
    session.take_block(block(session, 9600, 4800), 0.0)
    new = session.due_chunks(0.0)
    assert new[0].index == 0 and new[0].first_frame == old[-1].first_frame + 1
    assert len(new[0].pcm) == 2000 + 2840 and session.epoch == 1
