"""The chunk loop: a generator thread and a decoder thread with bounded queues between them.

Chunk n+1 is generated while chunk n is decoded. The same loop runs in the worker process and in
the headless render. Knows nothing of sockets, processes or what the model is.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.decoder import DecodedChunk, DecodeItem, DecoderThread
from engine.framebus import FrameBus, SlotPool
from engine.models.base import Chunk, Decoder, Generator

CHUNKS_QUEUED = 4  # before the generator; the session keeps three in flight
LATENTS_QUEUED = 2  # before the decoder: one waits while one is decoded


@dataclass(frozen=True, slots=True)
class Models:
    """A generator and a decoder that took on the same character."""

    generator: Generator
    decoder: Decoder


@dataclass(frozen=True, slots=True)
class Work:
    """One thing for the generator thread to do, in order: exactly one field is set."""

    chunk: tuple[int, Chunk] | None = None  # run, chunk
    models: Models | None = None


class ChunkLoop:
    """`put` chunks, `deliver` is called on the decoder thread with the pictures of each.

    `failed` is called once, on the thread that failed; the loop does not go on after it.
    """

    def __init__(
        self,
        bus: FrameBus,
        deliver: Callable[[DecodedChunk], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.pool = SlotPool(bus.slots)
        self._work: queue.Queue[Work | None] = queue.Queue(CHUNKS_QUEUED + 4)
        self._failed = failed
        self._generator: Generator | None = None
        self._run = 0  # chunks of an older run are dropped
        self._begun = -1  # the run that the generator is in
        self._reset = True  # the next run begins with reset() rather than interrupt()
        self._settings: dict[str, float] | None = None
        self._step_since = 0.0
        self._ending = False
        self._stopping = threading.Event()
        self._decoder = DecoderThread(
            bus, self.pool, LATENTS_QUEUED, deliver, self._fail, self._is_old, self._stopping
        )
        self._thread = threading.Thread(target=self._body, name="generator", daemon=True)
        self._thread.start()

    def put(self, run: int, chunk: Chunk) -> None:
        """Queue a chunk; waits while the queue is full (the sender keeps count: rarely)."""
        self._run = max(self._run, run)
        self._offer(Work(chunk=(run, chunk)))

    def drop_before(self, run: int, reset: bool = False) -> None:
        """Chunks of runs before `run` are dropped wherever they are; thread-safe, at once."""
        self._run = max(self._run, run)
        self._reset = self._reset or reset

    def set_settings(self, settings: dict[str, float]) -> None:
        """Before the next chunk; of several at once the newest counts. Never waits."""
        self._settings = settings

    def swap(self, models: Models) -> None:
        """From the next chunk on, use these models (already prepared)."""
        self._offer(Work(models=models))

    def busy_s(self, now: float) -> dict[str, float]:
        """Seconds that each thread has spent in its present step; 0 when it waits."""
        since = self._step_since
        return {"generator": now - since if since else 0.0, "decoder": self._decoder.busy_s(now)}

    def finish(self, timeout_s: float) -> bool:
        """Let everything queued run to its end, then stop. False: still busy after the time.

        May be called again until it is True.
        """
        if not self._ending:
            self._ending = True  # a second end mark would find no reader and fill the queue
            self._offer(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and self._decoder.join(timeout_s)

    def close(self) -> None:
        """Stop soon; what is queued is dropped."""
        self._stopping.set()
        self._thread.join(5)
        self._decoder.join(5)

    def _offer(self, work: Work | None) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(queue.Full):
                self._work.put(work, timeout=0.1)
                return

    def _is_old(self, run: int) -> bool:
        return run < self._run

    def _fail(self, error: BaseException) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._failed(error)

    def _body(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    work = self._work.get(timeout=0.1)
                except queue.Empty:
                    continue
                if work is None:
                    break
                self._do(work)
            self._decoder.offer(None)
        except Exception as error:  # the top of the generator thread
            self._fail(error)

    def _do(self, work: Work) -> None:
        if work.chunk is not None:
            self._step(*work.chunk)
        elif work.models is not None:
            self._generator = work.models.generator
            self._begun = -1  # it was just prepared: nothing to reset
            self._decoder.offer(DecodeItem(decoder=work.models.decoder))

    def _step(self, run: int, chunk: Chunk) -> None:
        if self._is_old(run) or self._generator is None:
            return
        self._step_since = time.monotonic()
        settings, self._settings = self._settings, None
        if settings is not None:
            self._generator.set_settings(settings)
            self._decoder.offer(DecodeItem(settings=settings))
        if chunk.index == 0:
            self._begin(run)
        latents = self._generator.step(chunk)
        self._step_since = 0.0
        if not self._is_old(run):
            self._decoder.offer(DecodeItem(run=run, latents=latents))

    def _begin(self, run: int) -> None:
        assert self._generator is not None
        if self._begun >= 0:
            if self._reset:
                self._generator.reset()
                self._decoder.offer(DecodeItem(reset=True))
            else:
                self._generator.interrupt()
        self._reset = False
        self._begun = run
