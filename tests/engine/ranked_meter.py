"""The loudness meter as a model that takes ranks: every step meets at a barrier.

Register it with `--model-module tests.engine.ranked_meter`. Options make one rank fail at a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from engine.model_factory import CHARACTER_LOADERS
from engine.models import MODELS
from engine.protocol.character import Framing
from engine.protocol.messages import FaceFound
from tests.engine.meter_model import MeterDecoder, MeterGenerator

MODELS["ranked"] = (f"{__name__}:RankedMeter", f"{__name__}:RankedMeterDecoder")
CHARACTER_LOADERS["ranked"] = f"{__name__}:load_character"


@dataclass
class Painted:
    canvas: SimpleNamespace
    face: FaceFound = field(
        default_factory=lambda: FaceFound(x=1, y=2, width=3, height=4, score=1, yaw_deg=0)
    )
    automatic: Framing = field(default_factory=Framing)
    warnings: list = field(default_factory=list)
    cached: bool = False


def load_character(picture, spec, cache_dir, progress, cancelled, models):
    pixels = np.full((4, 4, 4), 40 + len(picture), np.uint8)
    return Painted(SimpleNamespace(pixels=pixels))


class RankedMeter(MeterGenerator):
    def __init__(self, frames_per_chunk=2, fail_rank=-1, fail_at=3, join_fails=0):
        super().__init__(frames_per_chunk)
        self.device = SimpleNamespace(type="cpu")
        self._fail_rank, self._fail_index, self._join_fails = fail_rank, fail_at, join_fails
        self.prepared = 0

    def join(self, ranks, decodes_here):
        if self._join_fails and ranks.rank == 1:
            raise RuntimeError("no memory between the ranks\nsecond line")
        self._ranks = ranks

    def prepare(self, character, settings, progress):
        super().prepare(character, settings, progress)
        self._ranks.barrier()
        self._held = np.zeros(0, np.float32)

    def step(self, chunk):
        if self._ranks.rank == self._fail_rank and chunk.index == self._fail_index:
            raise ValueError("this rank's own fault")
        self._ranks.barrier()
        return super().step(chunk)


class RankedMeterDecoder(MeterDecoder):
    def prepare(self, character, settings, progress):
        self.colour = int(character.canvas.pixels[0, 0, 0])
