"""A session's models when it has several ranks: the two contracts, carried out by a `RankGroup`.

The weights are built once a group; a further character only refills the window, from its first
chunk on, so that the one on stage is not disturbed while the next is loaded. Knows nothing of
processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import rank_messages as rm
from engine.models.base import Chunk, Latents, Progress
from engine.protocol.messages import RankTime
from engine.rank_group import RankGroup


def _prepare(character: Any, settings: dict[str, float]) -> rm.Prepare:
    pixels = np.ascontiguousarray(character.canvas.pixels)
    height, width = pixels.shape[:2]
    return rm.Prepare(pixels.tobytes(), height, width, settings)


class RankedGenerator:
    """One character's `Generator` on all denoise ranks."""

    def __init__(self, group: RankGroup) -> None:
        self._group = group
        own = group.own  # rank 0's, which says what all of them are
        self.frames_per_chunk: int = own.frames_per_chunk
        self.lookahead_samples: int = own.lookahead_samples
        self.synthetic = bool(getattr(own, "synthetic", False))
        self.kernel_path = str(getattr(own, "kernel_path", "cpu"))
        self._character: rm.Prepare | None = None

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        """Builds on all ranks for the first character; for others it is put off to their first
        chunk: one forward. Raises EngineError.
        """
        self._character = _prepare(character, settings)
        progress(0.0, f"starting {self._group.plan.gpus.total} ranks")
        self._group.meet()
        if self._group.on_stage["denoise"] is None:
            self._take_stage(progress)

    def _take_stage(self, progress: Progress | None = None) -> None:
        if self._character is not None and self._group.on_stage["denoise"] is not self:
            self._group.denoise(self._character, progress)
            self._group.on_stage["denoise"] = self

    def step(self, chunk: Chunk) -> Latents:
        self._take_stage()
        body = rm.Step(
            chunk.epoch, chunk.index, chunk.first_frame, chunk.frame_count, chunk.pcm.tobytes()
        )
        latents, others = self._group.denoise(body)
        first = self._group.seats[0]
        ours = latents.stage_ms | {"comm": latents.comm_ms}
        for seat, ms in {first: ours, **others}.items():
            latents.rank_times.append(
                RankTime(seat.number, "denoise", seat.device, ms["denoise"], ms["comm"])
            )
        return latents

    def set_settings(self, settings: dict[str, float]) -> None:
        self._take_stage()
        self._group.denoise(rm.SetSettings(settings))

    def interrupt(self) -> None:
        self._take_stage()
        self._group.denoise(rm.Interrupt())

    def reset(self) -> None:
        self._take_stage()
        self._group.denoise(rm.Reset())


class RankedDecoder:
    """One character's `Decoder` on the decode rank."""

    def __init__(self, group: RankGroup) -> None:
        self._group = group
        self._seat = group.seats[-1]
        self._character: rm.Prepare | None = None

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        self._character = _prepare(character, settings)
        self._group.meet()
        if self._group.on_stage["decode"] is None:
            self._take_stage(progress)

    def _take_stage(self, progress: Progress | None = None) -> None:
        if self._character is not None and self._group.on_stage["decode"] is not self:
            self._group.decode(self._character, progress)
            self._group.on_stage["decode"] = self

    def decode(self, latents: Latents, out: list[np.ndarray]) -> None:
        """`out` are slots of the frame bus, which the decode rank has too."""
        self._take_stage()
        place, there = self._group.latents.put(latents.values)
        body = rm.Decode(
            latents.epoch, latents.chunk_index, latents.first_frame, latents.frame_count, place,
            list(there.shape), there.dtype.name, not isinstance(latents.values, np.ndarray),
            [self._group.bus.slot_of(picture) for picture in out],
        )  # fmt: skip
        ms = self._group.decode(body)
        seat = self._seat
        latents.rank_times.append(RankTime(seat.number, "decode", seat.device, ms["decode"]))

    def set_settings(self, settings: dict[str, float]) -> None:
        self._take_stage()
        self._group.decode(rm.SetSettings(settings))

    def reset(self) -> None:
        self._take_stage()
        self._group.decode(rm.Reset())
