"""The few denoise steps of a chunk: flow matching, four forwards, with or without a clean pass.

At noise level s the model's velocity v gives the clean estimate x - s * v; fresh noise brings it
down to the next level (the schedule of distilled few-step causal models). Knows nothing of the
model: it calls `forward(step)` and reads the velocity.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def noise_levels(steps: int, shift: float) -> list[float]:
    """Levels in (0, 1], first 1: evenly spaced, then shifted towards noise (Wan's flow shift)."""
    even = [1 - i / steps for i in range(steps)]
    return [shift * s / (1 + (shift - 1) * s) for s in even]


class FewStepSampler:
    """Runs one chunk in fixed buffers: `latent` [M, C], which the model reads, and one noise."""

    def __init__(
        self, latent: Tensor, steps: int, shift: float, clean_pass: bool, seed: int
    ) -> None:
        self.latent = latent
        self.levels = noise_levels(steps, shift)
        self.clean_pass = clean_pass
        self.seed = seed
        self._noisy = torch.empty(latent.shape, device=latent.device)  # fp32, as the rest
        self._clean = torch.empty_like(self._noisy)
        self._noise = torch.empty_like(self._noisy)
        self._source = torch.Generator(latent.device)
        self.reset()

    @property
    def timesteps(self) -> list[float]:
        """Of the forwards, 0..1000; the last entry, 0, is the clean pass and the sink's."""
        return [1000 * level for level in self.levels] + [0.0]

    def reset(self) -> None:
        """Back to the first chunk's noise."""
        self._source.manual_seed(self.seed)

    def run(self, forward: Callable[[int], Tensor]) -> Tensor:
        """Denoise one chunk; returns the clean latent [M, C] fp32 (a buffer, valid until next)."""
        self._noisy.normal_(generator=self._source)
        last = len(self.levels) - 1
        for step, level in enumerate(self.levels):
            self.latent.copy_(self._noisy)
            self._clean.copy_(forward(step)).mul_(-level).add_(self._noisy)
            if step < last:
                self._noise.normal_(generator=self._source)
                torch.lerp(self._clean, self._noise, self.levels[step + 1], out=self._noisy)
        if self.clean_pass:
            self.latent.copy_(self._clean)
            forward(last + 1)
        return self._clean
