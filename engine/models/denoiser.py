"""One rank of a video model as one thing that makes chunks: model, window, sampler and graphs.

Order of life: build, `prefill` (text and reference picture), `calibrate`, `capture`, then `chunk`
after `chunk`; `reset` and `rollback` in between. The configuration says which variant it is. Knows
nothing of audio signals, pictures or wires.
"""

from __future__ import annotations

from statistics import median

import torch
from torch import Tensor

from engine.graph import Graphs
from engine.marks import NO_MARKS, Marks
from engine.models.audio_tokens import AudioTokens
from engine.models.causal_dit import CausalDit, Way
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import DitWeights
from engine.models.latents import to_latent
from engine.models.s2v import condition_tokens
from engine.parallel import Ranks
from engine.peercache import ReropeCache, ShiftCache
from engine.ringcache import CacheLayout, RingCache, WindowCache
from engine.sampler import FewStepSampler


def build_cache(
    config: DitConfig, part: Shard, way: Way, device: torch.device, dtype: torch.dtype
) -> WindowCache:
    """The window that `way` asks for."""
    layout = CacheLayout.of(config, part)
    if way.cache == "ring":
        return RingCache(layout, device, dtype, fp8=way.attention == "ring8")
    return {"shift": ShiftCache, "rerope": ReropeCache}[way.cache](layout, device, dtype)


class Denoiser:
    """Makes clean latents [M, token_channels], one chunk a call."""

    def __init__(
        self, config: DitConfig, part: Shard, weights: DitWeights, way: Way, device: torch.device,
        dtype: torch.dtype = torch.bfloat16, seed: int = 1, ranks: Ranks | None = None,
    ) -> None:  # fmt: skip
        """On ranks, every rank makes the same calls with the same arguments and gets the same
        latents; `seed` draws the same noise on each.
        """
        self.config, self.device = config, device
        self.cache = build_cache(config, part, way, device, dtype)
        self.model = CausalDit(config, part, weights, self.cache, way, device, dtype, ranks)
        # the noisy chunk, and beside it what is joined to it (I2V): the model reads both as one
        self.input = torch.zeros(config.tokens, config.input_channels, dtype=dtype, device=device)
        self.latent = self.input[:, : config.token_channels]
        self.sampler = FewStepSampler(
            self.latent, config.noise_levels, config.solver, config.clean_pass, seed
        )
        self._tokens = None
        if config.speech is not None and weights.speech is not None:
            self._tokens = AudioTokens(config.speech, weights.speech.encoder)
        self.graphs = Graphs()
        with torch.inference_mode():
            self._steps = [self.model.modulation_of(t) for t in self.sampler.timesteps]
        self._sink = torch.zeros(0, config.input_channels, dtype=dtype, device=device)

    @torch.inference_mode()
    def prefill(
        self, text: Tensor, reference: Tensor, past: Tensor | None = None,
        joined: tuple[Tensor, Tensor] | None = None, image: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Text [text_tokens, text_features or width]; latent tokens [n, token_channels] of the
        reference picture. `past`: latent frames [C, n, H, W] before the clip, of models with sound
        injected; without it the picture has been still for ever. `joined`: what I2V joins to the
        picture's tokens and to every chunk's, [n, joined channels * p * p]; `image`: CLIP's tokens.
        """
        self.model.set_text(text)
        if image is not None:
            self.model.context.set_image(image)
        if joined is not None:
            self.input[:, self.config.token_channels :].copy_(joined[1])
            reference = torch.cat((reference, joined[0]), 1)
        if self.config.speech is not None:
            reference = self._conditions(reference, past)
        self._sink = reference.to(self.input.dtype)
        self._write_sink()

    def _conditions(self, reference: Tensor, past: Tensor | None) -> Tensor:
        config = self.config
        assert config.speech is not None
        if past is None:
            past = to_latent(reference, config).expand(-1, config.speech.past_frames, -1, -1)
        return condition_tokens(config, self.model.weights, reference, past)

    def _write_sink(self) -> None:
        if not self.config.sink_tokens:
            return
        self.cache.begin_sink()
        config = self.config  # no sound yet: what the last chunk heard must not colour the sink
        silence = torch.zeros(config.audio_tokens, config.audio_features, device=self.device)
        self.model.set_audio(silence)
        self.model.set_step(self._steps[-1])
        if config.speech is not None:
            self.model.condition(self._sink)
        else:
            self.model.forward(self._sink)
        self.cache.commit()

    def hear(self, audio: Tensor) -> None:
        """One chunk's sound, to wherever the model listens."""
        if self._tokens is None or self.model.sound is None:
            self.model.set_audio(audio)
        else:
            self.model.sound.hear(*self._tokens.tokens(audio))

    def silence(self) -> Tensor:
        """A chunk's sound features, all zero."""
        config, speech = self.config, self.config.speech
        shape = (config.audio_tokens, config.audio_features)
        if speech is not None:
            shape = (speech.states, config.pixel_frames, speech.features)
        return torch.zeros(shape, device=self.device)

    @torch.inference_mode()
    def calibrate(self) -> None:
        """Two chunks of dynamic scales, kept with a margin as static ones; then as new."""
        for _ in range(2):
            self.chunk(self.silence())
        self.model.freeze_scales()
        self.reset()

    @torch.inference_mode()
    def capture(self) -> None:
        """Record the forward for every window length, or once when the kernel reads the length."""
        slots = self.config.ring_chunks if self.model.way.attention == "cudnn" else 1
        for filled in range(slots):
            self.cache.committed = filled  # type: ignore[attr-defined]
            self.cache.begin()
            self.graphs.capture(self._key(), lambda: self.model.forward(self.input))
        self.reset()

    @torch.inference_mode()
    def forward_parts(self, warm: int = 40) -> dict[str, float]:
        """Milliseconds by kind of one forward at the present window, launches not counted: events
        inside a graph captured for this alone, after `warm` forwards back to back, because a GPU
        at its power limit runs a lone forward at a higher clock. Outside sessions only.
        """
        graphs = Graphs()
        graphs.capture("plain", lambda: self.model.forward(self.input))
        marks = self.model.mark = Marks(external=True)
        graphs.capture("marked", lambda: self._marked(marks))
        self.model.mark = NO_MARKS
        whole = []
        for _ in range(warm):
            graphs.replay("plain")
        for key in ("plain", "plain", "plain", "marked", "marked"):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs.replay(key)
            end.record()
            whole.append((start, end))
        torch.cuda.synchronize()
        return marks.sums(whole_ms=median(a.elapsed_time(b) for a, b in whole[:3]))

    def _marked(self, marks: Marks) -> None:
        marks.clear()
        self.model.forward(self.input)
        marks("end")

    def _key(self) -> int:
        return self.cache.length if self.model.way.attention == "cudnn" else 0

    def forward(self, step: int) -> Tensor:
        """One denoise forward of the open chunk at step `step`."""
        self.model.set_step(self._steps[step])
        if self.graphs.replay(self._key()):
            return self.model.buffers.whole[: self.config.tokens]
        return self.model.forward(self.input)

    @torch.inference_mode()
    def chunk(self, audio: Tensor) -> Tensor:
        """Sound features of the chunk -> clean latent [M, token_channels] (a buffer), committed.

        Sound is [audio_tokens, audio_features], or [states, pictures, features] where it is
        injected; anything where the model has no ear.
        """
        self.cache.begin()
        self.hear(audio)
        clean = self.sampler.run(self.forward)
        self.cache.commit()
        return clean

    def rollback(self) -> None:
        """Drop the open chunk, if any; what it heard is forgotten."""
        self.cache.rollback()
        self._forget()

    def _forget(self) -> None:
        if self._tokens is not None:
            self._tokens.reset()

    @torch.inference_mode()
    def reset(self) -> None:
        """As right after `prefill`, bit for bit."""
        self.cache.reset()
        self.sampler.reset()
        self._forget()
        self._write_sink()
