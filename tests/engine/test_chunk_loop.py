"""Generator and decoder overlap, runs are dropped, resets and settings arrive in order."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest

from engine.chunk_loop import ChunkLoop, Models
from engine.framebus import FrameBus, SlotPool
from engine.models.base import Chunk, Latents


class Recorder:
    """Both halves of a model; writes down what happens to it, waits where it is told to."""

    def __init__(self, hold_decode=None, hold_step=None):
        self.calls = queue.SimpleQueue()
        self.hold_decode, self.hold_step = hold_decode, hold_step

    def step(self, chunk):
        self.calls.put(f"step {chunk.index}")
        if self.hold_step:
            assert self.hold_step.wait(10)
        return Latents(chunk.epoch, chunk.index, chunk.first_frame, chunk.frame_count, None)

    def decode(self, latents, out):
        self.calls.put(f"decode {latents.chunk_index}")
        if self.hold_decode:
            assert self.hold_decode.wait(10)
        for picture in out:
            picture[:] = 7

    def interrupt(self):
        self.calls.put("interrupt")

    def reset(self):
        self.calls.put("reset")

    def set_settings(self, settings):
        self.calls.put(f"settings {settings['mouth']}")


def chunk(index, epoch=1):
    return Chunk(epoch, index, index, 1, np.zeros(2000, np.float32))


@pytest.fixture
def make():
    loops = []

    def build(model, slots=4):
        delivered, failures = queue.SimpleQueue(), queue.SimpleQueue()
        loop = ChunkLoop(FrameBus.create(slots), delivered.put, failures.put)
        loop.swap(Models(model, model))
        loops.append(loop)
        return loop, delivered, failures

    yield build
    for loop in loops:
        loop.close()


def told(model, count):
    return [model.calls.get(timeout=10) for _ in range(count)]


def test_the_next_chunk_is_generated_while_one_is_decoded(make):
    release = threading.Event()
    model = Recorder(hold_decode=release)
    loop, delivered, _ = make(model)
    loop.put(1, chunk(0))
    loop.put(1, chunk(1))
    assert sorted(told(model, 3)) == ["decode 0", "step 0", "step 1"]  # 0 is still being decoded
    release.set()
    assert [delivered.get(timeout=10).latents.chunk_index for _ in range(2)] == [0, 1]


def test_old_runs_are_dropped_wherever_they_are(make):
    release = threading.Event()
    model = Recorder(hold_step=release)
    loop, delivered, _ = make(model)
    loop.put(1, chunk(0))
    loop.put(1, chunk(1))
    assert told(model, 1) == ["step 0"]
    loop.drop_before(2)
    release.set()
    loop.put(2, chunk(0, epoch=2))
    assert delivered.get(timeout=10).latents.epoch == 2
    assert told(model, 3) == ["interrupt", "step 0", "decode 0"]  # chunk 1 was never begun


def test_start_resets_and_interrupt_does_not(make):
    model = Recorder()
    loop, delivered, _ = make(model)
    loop.put(1, chunk(0))
    delivered.get(timeout=10)
    assert told(model, 2) == ["step 0", "decode 0"]  # freshly prepared: neither
    loop.drop_before(2, reset=True)
    loop.put(3, chunk(0))
    delivered.get(timeout=10)
    assert told(model, 4) in (
        ["reset", "reset", "step 0", "decode 0"],
        ["reset", "step 0", "reset", "decode 0"],
    )


def test_settings_arrive_before_the_next_step_and_the_newest_counts(make):
    release = threading.Event()
    model = Recorder(hold_step=release)
    loop, delivered, _ = make(model)
    loop.put(1, chunk(0))
    told(model, 1)
    for mouth in range(100):  # a slider: nobody waits
        loop.set_settings({"mouth": mouth})
    release.set()
    loop.put(1, chunk(1))
    delivered.get(timeout=10), delivered.get(timeout=10)
    rest = told(model, 5)
    assert rest.index("settings 99") < rest.index("step 1")
    assert [c for c in rest if c.startswith("settings")] == ["settings 99"] * 2


def test_without_free_slots_the_decoder_waits_and_gives_up_on_a_new_run(make):
    model = Recorder()
    loop, delivered, _ = make(model, slots=1)
    loop.put(1, chunk(0))
    held = delivered.get(timeout=10)
    loop.put(1, chunk(1))
    loop.drop_before(2)
    loop.pool.release(held.slots)
    loop.put(2, chunk(0))
    assert delivered.get(timeout=10).run == 2


def test_an_error_is_told_once_and_nothing_hangs(make):
    class Broken(Recorder):
        def decode(self, latents, out):
            raise ValueError("broken")

    loop, delivered, failures = make(Broken())
    for i in range(20):
        loop.put(1, chunk(i))
    assert "broken" in str(failures.get(timeout=10))
    assert failures.empty() and delivered.empty()
    assert loop.finish(5)


def test_finish_may_be_asked_again_and_again_while_the_decoder_is_slow(make):
    hold = threading.Event()
    loop, delivered, _ = make(Recorder(hold_decode=hold))
    loop.put(1, chunk(0))
    # More often than the queue is deep: a second end mark would find nobody to read it.
    asked = threading.Thread(target=lambda: [loop.finish(0.001) for _ in range(20)], daemon=True)
    asked.start()
    asked.join(10)
    assert not asked.is_alive()
    hold.set()
    assert loop.finish(10)
    assert delivered.get(timeout=10).latents.chunk_index == 0


def test_busy_says_for_how_long(make):
    release = threading.Event()
    model = Recorder(hold_step=release)
    loop, _, _ = make(model)
    assert loop.busy_s(1e12) == {"generator": 0.0, "decoder": 0.0}
    loop.put(1, chunk(0))
    told(model, 1)
    assert loop.busy_s(1e12)["generator"] > 0
    release.set()


def test_slots_freed_last_are_used_first():
    pool = SlotPool(5)
    first = pool.acquire(2, lambda: False)
    pool.release(first)
    assert set(pool.acquire(2, lambda: False)) == set(first)  # so that few are ever touched
    assert pool.acquire(4, lambda: True) is None


def test_both_ends_see_the_same_memory():
    bus = FrameBus.create(3)
    import os

    other = FrameBus(os.dup(bus.descriptor), 3)
    other.view(1)[5, 6, 2] = 99
    assert bus.view(1)[5, 6, 2] == 99 and bus.view(0)[5, 6, 2] == 0
    other.close()
    bus.close()
