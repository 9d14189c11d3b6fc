"""One rank of a video model as one thing that makes chunks: model, window, sampler and graphs.

Order of life: build, `prefill` (text and reference picture), `calibrate`, `capture`, then `chunk`
after `chunk`; `reset` and `rollback` in between. Knows nothing of audio signals, pictures or wires.
"""

from __future__ import annotations

from statistics import median

import torch
from torch import Tensor

from engine.graph import Graphs
from engine.marks import NO_MARKS, Marks
from engine.models.causal_dit import CausalDit, Way
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import DitWeights
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
        self.latent = torch.zeros(config.tokens, config.token_channels, dtype=dtype, device=device)
        self.sampler = FewStepSampler(
            self.latent, config.steps, config.shift, config.clean_pass, seed
        )
        self.graphs = Graphs()
        with torch.inference_mode():
            self._steps = [self.model.modulation_of(t) for t in self.sampler.timesteps]
        self._reference = torch.zeros_like(self.latent[: config.sink_tokens])

    @torch.inference_mode()
    def prefill(self, text: Tensor, reference: Tensor) -> None:
        """Text [text_tokens, width]; reference picture's latent [sink_tokens, token_channels]."""
        self.model.set_text(text)
        self._reference = reference.to(self.latent.dtype)
        self._write_sink()

    def _write_sink(self) -> None:
        if not self.config.sink_tokens:
            return
        self.cache.begin_sink()
        config = self.config  # no sound yet: what the last chunk heard must not colour the sink
        silence = torch.zeros(config.audio_tokens, config.audio_features, device=self.device)
        self.model.set_audio(silence)
        self.model.set_step(self._steps[-1])
        self.model.forward(self._reference)
        self.cache.commit()

    @torch.inference_mode()
    def calibrate(self) -> None:
        """Two chunks of dynamic scales, kept with a margin as static ones; then as new."""
        silence = torch.zeros(self.config.audio_tokens, self.config.audio_features)
        for _ in range(2):
            self.chunk(silence.to(self.device))
        self.model.freeze_scales()
        self.reset()

    @torch.inference_mode()
    def capture(self) -> None:
        """Record the forward for every window length, or once when the kernel reads the length."""
        slots = self.config.ring_chunks if self.model.way.attention == "cudnn" else 1
        for filled in range(slots):
            self.cache.committed = filled  # type: ignore[attr-defined]
            self.cache.begin()
            self.graphs.capture(self._key(), lambda: self.model.forward(self.latent))
        self.reset()

    @torch.inference_mode()
    def forward_parts(self, warm: int = 40) -> dict[str, float]:
        """Milliseconds by kind of one forward at the present window, launches not counted: events
        inside a graph captured for this alone, after `warm` forwards back to back, because a GPU
        at its power limit runs a lone forward at a higher clock. Outside sessions only.
        """
        graphs = Graphs()
        graphs.capture("plain", lambda: self.model.forward(self.latent))
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
        self.model.forward(self.latent)
        marks("end")

    def _key(self) -> int:
        return self.cache.length if self.model.way.attention == "cudnn" else 0

    def forward(self, step: int) -> Tensor:
        """One denoise forward of the open chunk at step `step`."""
        self.model.set_step(self._steps[step])
        if self.graphs.replay(self._key()):
            return self.model.buffers.whole[: self.config.tokens]
        return self.model.forward(self.latent)

    @torch.inference_mode()
    def chunk(self, audio: Tensor) -> Tensor:
        """Audio features [audio_tokens, audio_features] -> clean latent (a buffer), committed."""
        self.cache.begin()
        self.model.set_audio(audio)
        clean = self.sampler.run(self.forward)
        self.cache.commit()
        return clean

    def rollback(self) -> None:
        """Drop the open chunk, if any."""
        self.cache.rollback()

    @torch.inference_mode()
    def reset(self) -> None:
        """As right after `prefill`, bit for bit."""
        self.cache.reset()
        self.sampler.reset()
        self._write_sink()
