"""Statistics that a whole-clip encoder takes over the clip, taken over what was heard so far.

Two places of wav2vec2 look at a whole utterance: the normalisation of the waveform and, in models
with `feat_extract_norm = "group"`, the norm of the first convolution. A stream has no utterance, so
both use running sums instead. What is thereby not equal: everything before the end of the clip is
scaled by the statistics of its past rather than of the clip. Knows nothing of the model around.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

PRIOR_SAMPLES = 2 * 16_000  # what the stream is taken to have heard before it began: 2 s of speech
PRIOR_POWER = 0.05**2  # at -26 dBFS, so that silence at the start is not blown up to loudness
MEMORY_SAMPLES = 60 * 16_000  # older sound fades: a quiet hour does not weigh on a loud minute


class RunningLevel:
    """Zero mean and unit variance of a waveform, by what was heard so far."""

    def __init__(self, prior_samples: int = PRIOR_SAMPLES, memory: int = MEMORY_SAMPLES) -> None:
        self._prior, self._memory = prior_samples, memory
        self.reset()

    def reset(self) -> None:
        self._count = float(self._prior)
        self._sum, self._squares = 0.0, PRIOR_POWER * self._prior

    def hear(self, pcm: np.ndarray) -> None:
        """Add [n] float32 samples."""
        value = pcm.astype(np.float64)
        self._count += len(value)
        self._sum += float(value.sum())
        self._squares += float(np.square(value).sum())
        fade = min(1.0, self._memory / self._count) if self._count else 1.0
        self._count, self._sum, self._squares = (
            fade * v for v in (self._count, self._sum, self._squares)
        )

    def normalised(self, pcm: np.ndarray) -> np.ndarray:
        """(pcm - mean) / deviation; 1e-7 of variance is added, as the public extractor does."""
        mean = self._sum / self._count
        variance = max(0.0, self._squares / self._count - mean * mean)
        return ((pcm - mean) / np.sqrt(variance + 1e-7)).astype(np.float32)


class RunningNorm(nn.Module):
    """Stands for a GroupNorm of one channel a group: statistics over time so far, fp64 sums.

    `fresh` says how many of the newest steps of the next input were not in any before.
    """

    def __init__(self, norm: nn.GroupNorm) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        self.fresh = 0
        self.reset()

    def reset(self) -> None:
        self._count = 0
        self._sums: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """x [1, channels, steps]."""
        new = x[0, :, x.shape[2] - self.fresh :].double()
        sums = torch.stack((new.sum(1), new.square().sum(1)))
        self._sums = sums if self._sums is None else self._sums + sums
        self._count += self.fresh
        mean, squares = (self._sums / max(1, self._count)).unbind(0)
        scale = self.weight.double() / (squares - mean.square() + self.eps).clamp_min(1e-12).sqrt()
        return x * scale[:, None].to(x.dtype) + (self.bias - mean * scale)[:, None].to(x.dtype)
