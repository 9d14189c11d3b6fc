"""The `portrait` model: sound -> motion tokens -> the reference picture, warped.

Generator = speech encoder + motion map; decoder = portrait renderer. Runs on any laptop.
Knows nothing of processes, sockets or epochs' rules beyond carrying the numbers on.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from engine.clock import SAMPLES_PER_FRAME, ms_to_samples
from engine.errors import EngineError
from engine.models.base import Chunk, Latents, Progress
from engine.motion.mapping import SpeechToMotion
from engine.portrait.coefficients import COUNT
from engine.portrait.renderer import PortraitRenderer
from engine.speech.encoded import LOOKAHEAD_MS
from engine.speech.encoder import SpeechEncoder

# The answer for a frame hears 80 ms beyond its centre, which is half a frame before its end:
# 1,000 + 3,840 - 2,000 samples.
LOOKAHEAD_SAMPLES = SAMPLES_PER_FRAME // 2 + ms_to_samples(LOOKAHEAD_MS) - SAMPLES_PER_FRAME
MOST_FRAMES_PER_CHUNK = 24  # a second: more only adds latency


class PortraitGenerator:
    """Audio -> motion tokens [frames, COUNT]. One frame a chunk unless told otherwise."""

    def __init__(self, frames_per_chunk: int = 1) -> None:
        if not 1 <= frames_per_chunk <= MOST_FRAMES_PER_CHUNK:
            raise EngineError(
                "bad_config",
                f"frames_per_chunk is {frames_per_chunk}, allowed 1 to {MOST_FRAMES_PER_CHUNK}",
                "1 gives the lowest latency",
            )
        self.frames_per_chunk = frames_per_chunk
        self._encoder = SpeechEncoder()
        # The encoder's resampler hears a few samples more than the model does.
        latency = getattr(self._encoder, "latency_samples", 0)
        self.lookahead_samples = LOOKAHEAD_SAMPLES + latency
        self._motion = SpeechToMotion({})

    def hear_with(self, encoder: Any) -> None:
        """Let another ear listen, before the first step: `push(pcm)` -> EncodedSpeech, `reset()`.

        It must give as many frames for as many samples as the one it replaces.
        """
        self._encoder = encoder

    @property
    def encoder(self) -> Any:
        """What listens now."""
        return self._encoder

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        """The motion is the same for every picture; only the settings and their seed matter."""
        self._motion.set_settings(settings)
        self.reset()
        progress(1.0, "voice ready")

    def step(self, chunk: Chunk) -> Latents:
        start = time.perf_counter()
        speech = self._encoder.push(chunk.pcm)
        heard = time.perf_counter()
        if len(speech) != chunk.frame_count:
            raise EngineError(
                "internal",
                f"chunk {chunk.index} of {len(chunk.pcm)} samples gave {len(speech)} frames, "
                f"not {chunk.frame_count}",
            )
        tokens = self._motion.step(speech)
        done = time.perf_counter()
        return Latents(
            epoch=chunk.epoch,
            chunk_index=chunk.index,
            first_frame=chunk.first_frame,
            frame_count=chunk.frame_count,
            values=tokens,
            stage_ms={"encode": 1e3 * (heard - start), "denoise": 1e3 * (done - heard)},
        )

    def set_settings(self, settings: dict[str, float]) -> None:
        self._motion.set_settings(settings)

    def interrupt(self) -> None:
        self._encoder.reset()
        self._motion.interrupt()

    def reset(self) -> None:
        self._encoder.reset()
        self._motion.reset()


class PortraitDecoder:
    """Motion tokens -> frames. `cache_dir` keeps what is worked out once a picture."""

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._cache_dir = cache_dir
        self._renderer: PortraitRenderer | None = None

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        cache_file = self._cache_dir / "portrait" / character.key if self._cache_dir else None
        self._renderer = PortraitRenderer(character.canvas, cache_file, progress)

    def decode(self, latents: Latents, out: list[np.ndarray]) -> None:
        if self._renderer is None:
            raise EngineError("not_ready", "no character is loaded", "load a character first")
        assert latents.values.shape == (latents.frame_count, COUNT), latents.values.shape
        for token, frame in zip(latents.values, out, strict=True):
            self._renderer.render(token, frame)

    def set_settings(self, settings: dict[str, float]) -> None:
        """Intensities act on the tokens, in the generator."""

    def reset(self) -> None:
        """A frame depends on its token alone."""
