"""The trainable twin of `net.py`: same arithmetic in torch, and how its weights are saved.

Imports torch: used by training alone. Knows nothing of data or losses.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from engine.speech.features import INPUTS
from engine.speech.net import DILATIONS, EPSILON, OUTPUTS, TAPS


class Block(nn.Module):
    """x + relu(W [x_{t-2d}, x_{t-d}, x_t]) on rms-normalised x; zeros before the start."""

    def __init__(self, width: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.dilation = dilation
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(TAPS * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, steps, width] -> same."""
        steps = x.shape[1]
        padded = functional.pad(rms_normalised(x), (0, 0, self.dilation * (TAPS - 1), 0))
        taps = [padded[:, i * self.dilation : i * self.dilation + steps] for i in range(TAPS)]
        return x + self.dropout(functional.relu(self.linear(torch.cat(taps, -1))))


class TrainNet(nn.Module):
    """[batch, steps, INPUTS] -> [batch, steps, OUTPUTS] logits."""

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.inlet = nn.Linear(INPUTS, width)
        self.blocks = nn.ModuleList(Block(width, d, dropout / 2) for d in DILATIONS)
        self.dropout = nn.Dropout(dropout)
        self.outlet = nn.Linear(width, OUTPUTS)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inlet(x)
        for block in self.blocks:
            x = block(x)
        return self.outlet(self.dropout(rms_normalised(x)))


def rms_normalised(x: Tensor) -> Tensor:
    """Unit rms over the last axis; its gain lives in the product that follows."""
    return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + EPSILON).to(x.dtype)


def save_weights(
    path: Path, weights: dict[str, Tensor], mean: Tensor, notes: dict[str, str]
) -> None:
    """float16 safetensors: the state dict, the feature mean, and training notes as metadata."""
    half = {name: value.detach().cpu().half().contiguous() for name, value in weights.items()}
    half["mean"] = mean.detach().cpu().float().contiguous()
    save_file(half, path, metadata=notes)
