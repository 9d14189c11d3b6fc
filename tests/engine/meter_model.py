"""A tiny real model for tests: the picture is a loudness meter, its latents are RMS values.

Register it with `--model-module tests.engine.meter_model`. A picture is text: `meter`, or one of
the misbehaviours `refuse`, `crash`, `slow`; options make it slow, hang or die while it speaks.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

import numpy as np

from engine.errors import EngineError
from engine.model_factory import CHARACTER_LOADERS
from engine.models import MODELS
from engine.models.base import Chunk, Latents
from engine.protocol.character import Framing
from engine.protocol.messages import FaceFound

MODELS["meter"] = (f"{__name__}:MeterGenerator", f"{__name__}:MeterDecoder")
CHARACTER_LOADERS["meter"] = f"{__name__}:load_character"


@dataclass
class MeterCharacter:
    colour: int
    face: FaceFound
    automatic: Framing
    warnings: list = field(default_factory=list)
    cached: bool = False


def load_character(picture, spec, cache_dir, progress, cancelled, models):
    word = picture.decode(errors="replace")
    progress(0.0, "reading")
    if word == "refuse":
        raise EngineError("no_face", "no face in the picture", "use another")
    if word == "crash":
        os.abort()
    while word == "slow":
        progress(0.5, "being slow")
        if cancelled():
            raise EngineError("cancelled", "loading was cancelled")
        time.sleep(0.01)
    face = FaceFound(x=1, y=2, width=3, height=4, score=1, yaw_deg=0)
    return MeterCharacter(40 + len(word), face, Framing())


class MeterGenerator:
    def __init__(self, frames_per_chunk=2, lookahead=3840, hang_at=-1, fail_at=-1):
        self.frames_per_chunk = frames_per_chunk
        self.lookahead_samples = lookahead
        self._hang_at, self._fail_at = hang_at, fail_at
        self._held = np.zeros(0, np.float32)

    def prepare(self, character, settings, progress):
        self.settings = settings
        progress(1.0, "generator")

    def step(self, chunk: Chunk) -> Latents:
        begun = time.monotonic()
        if chunk.index == self._hang_at:
            time.sleep(3600)
        if chunk.index == self._fail_at:
            raise ValueError("the model's own fault")
        if chunk.index == 0:
            assert len(self._held) == 0, "a run began without reset or interrupt"
        self._held = np.concatenate([self._held, chunk.pcm])
        count = chunk.frame_count * 2000
        now, self._held = self._held[:count], self._held[count:]
        assert len(self._held) == self.lookahead_samples
        rms = np.sqrt((now.reshape(chunk.frame_count, 2000) ** 2).mean(1))
        ms = (time.monotonic() - begun) * 1000
        return Latents(
            chunk.epoch,
            chunk.index,
            chunk.first_frame,
            chunk.frame_count,
            rms * self.settings["mouth"],
            {"encode": ms, "denoise": ms},
        )

    def set_settings(self, settings):
        self.settings = settings

    def interrupt(self):
        self._held = np.zeros(0, np.float32)

    def reset(self):
        self._held = np.zeros(0, np.float32)


class MeterDecoder:
    """Rows below the level are bright; the top left pixel holds round(100 * rms)."""

    def prepare(self, character, settings, progress):
        self.colour = character.colour

    def decode(self, latents, out):
        for level, picture in zip(latents.values, out, strict=True):
            time.sleep(0.003)  # faster than any real decoder, slower than the subscriber's socket
            picture[:] = self.colour
            height = picture.shape[0]
            picture[height - int(height * min(level, 1.0)) :] = 220
            picture[0, 0] = round(100 * min(float(level), 1.0))

    def set_settings(self, settings):
        pass

    def reset(self):
        pass
