"""The decoder thread: latents -> pictures in slots of the frame bus.

Knows nothing of audio, sockets or what the latents mean.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.framebus import FrameBus, SlotPool
from engine.models.base import Decoder, Latents


@dataclass(frozen=True, slots=True)
class DecodeItem:
    """One thing for the decoder thread to do, in order."""

    run: int = 0
    latents: Latents | None = None
    settings: dict[str, float] | None = None
    decoder: Decoder | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class DecodedChunk:
    """Frame `latents.first_frame + i` lies in `slots[i]`; whoever receives it releases them."""

    run: int
    latents: Latents
    slots: list[int]
    stage_ms: dict[str, float]  # the generator's stages and "decode"


class DecoderThread:
    """`offer` items in order; blocks the caller while `depth` items wait."""

    def __init__(
        self,
        bus: FrameBus,
        pool: SlotPool,
        depth: int,
        deliver: Callable[[DecodedChunk], None],
        failed: Callable[[BaseException], None],
        is_old: Callable[[int], bool],
        stopping: threading.Event,
    ) -> None:
        self._bus, self._pool = bus, pool
        self._deliver, self._failed, self._is_old = deliver, failed, is_old
        self._stopping = stopping
        self._items: queue.Queue[DecodeItem | None] = queue.Queue(depth)
        self._decoder: Decoder | None = None
        self._step_since = 0.0
        self._thread = threading.Thread(target=self._body, name="decoder", daemon=True)
        self._thread.start()

    def offer(self, item: DecodeItem | None) -> None:
        """Queue an item, None ends the thread. Gives up when the loop is stopping."""
        while not self._stopping.is_set():
            with contextlib.suppress(queue.Full):
                self._items.put(item, timeout=0.1)
                return

    def busy_s(self, now: float) -> float:
        since = self._step_since
        return now - since if since else 0.0

    def join(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _body(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    item = self._items.get(timeout=0.1)
                except queue.Empty:
                    continue
                if item is None:
                    return
                self._do(item)
        except Exception as error:  # the top of the decoder thread
            self._failed(error)

    def _do(self, item: DecodeItem) -> None:
        if item.decoder is not None:
            self._decoder = item.decoder
        if item.reset and self._decoder is not None:
            self._decoder.reset()
        if item.settings is not None and self._decoder is not None:
            self._decoder.set_settings(item.settings)
        if item.latents is not None and self._decoder is not None:
            self._decode(self._decoder, item.run, item.latents)

    def _decode(self, decoder: Decoder, run: int, latents: Latents) -> None:
        slots = self._pool.acquire(
            latents.frame_count, lambda: self._stopping.is_set() or self._is_old(run)
        )
        if slots is None:
            return
        self._step_since = begun = time.monotonic()
        decoder.decode(latents, [self._bus.view(slot) for slot in slots])
        self._step_since = 0.0
        stage_ms = {**latents.stage_ms, "decode": (time.monotonic() - begun) * 1000}
        self._deliver(DecodedChunk(run, latents, slots, stage_ms))
