"""Latent pixels to the model's tokens and back: patches of p x p, all channels of one together.

Knows nothing of what the channels mean.
"""

from __future__ import annotations

from torch import Tensor

from engine.models.dit_config import DitConfig


def to_latent(tokens: Tensor, config: DitConfig) -> Tensor:
    """[n * h * w, C * p * p] -> [C, n, H, W]."""
    p, (down, across) = config.patch, config.grid
    value = tokens.view(-1, down, across, tokens.shape[1] // p**2, p, p)
    value = value.permute(3, 0, 1, 4, 2, 5)
    return value.reshape(value.shape[0], -1, down * p, across * p)


def to_tokens(latent: Tensor, config: DitConfig) -> Tensor:
    """The inverse of `to_latent`, of any number of channels and frames."""
    p, (down, across) = config.patch, config.grid
    channels = latent.shape[0]
    value = latent.view(channels, -1, down, p, across, p)
    return value.permute(1, 2, 4, 0, 3, 5).reshape(-1, channels * p * p)
