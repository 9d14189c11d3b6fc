"""The few denoise steps of a chunk: flow matching, with or without a pass on the finished chunk.

At noise level s the model's velocity v gives the clean estimate x - s * v; a solver brings it down
to the next level. Knows nothing of the model: it calls `forward(step)` and reads the velocity.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.solvers import SOLVERS


class FewStepSampler:
    """Runs one chunk in fixed buffers: `latent` [M, C], which the model reads, and one noise."""

    def __init__(
        self, latent: Tensor, levels: tuple[float, ...], solver: str, clean_pass: bool, seed: int
    ) -> None:
        """`levels` in (0, 1], falling; `solver` of SOLVERS."""
        self.latent = latent
        self.levels = levels
        self.clean_pass = clean_pass
        self.seed = seed
        self._noisy = torch.empty(latent.shape, device=latent.device)  # fp32, as the rest
        self._clean = torch.empty_like(self._noisy)
        self._source = torch.Generator(latent.device)
        self._solver = SOLVERS[solver](levels, self._noisy, self._source)
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
                self._solver.advance(step, self._noisy, self._clean)
        if self.clean_pass:
            self.latent.copy_(self._clean)
            forward(last + 1)
        return self._clean
