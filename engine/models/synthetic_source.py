"""A Wan checkpoint of random numbers: a weight source that draws what files would hold.

Magnitudes keep activations of order one through any depth, so that speed, memory and numerical
error hold; it makes noise, not faces. A tensor depends on its name and the seed alone: ranks agree
whatever their count. Knows nothing of the forward pass.
"""

from __future__ import annotations

import zlib

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.fp8 import Linear, quantised_rows
from engine.models.wan_keys import KeySpec
from engine.models.wan_weights import Cut
from kernels.reference import FP8

QUIET = 0.3  # of what cross-attentions add: many of them add up
_IMAGE_NORMS = ("img_emb.proj.0.weight", "img_emb.proj.4.weight")


def cut_tensor(full: Tensor, cut: Cut | None) -> Tensor:
    """A stretch of an axis, zeros beyond its end."""
    if cut is None:
        return full
    there = max(0, min(cut.length, full.shape[cut.axis] - cut.start))
    kept = full.narrow(cut.axis, min(cut.start, full.shape[cut.axis]), there)
    missing = cut.length - there
    if missing:
        pad = [0, 0] * (full.ndim - 1 - cut.axis) + [0, missing]
        kept = F.pad(kept, pad)
    return kept.contiguous()


class SyntheticSource:
    """Draws every tensor of `keys` when asked; raises KeyError for others."""

    def __init__(
        self, keys: dict[str, KeySpec], device: torch.device, dtype: torch.dtype = torch.bfloat16,
        fp8: bool = False, seed: int = 57,
    ) -> None:  # fmt: skip
        self._keys, self._device, self._dtype = keys, device, dtype
        self._fp8, self._seed = fp8, seed

    def tensor(self, name: str, cut: Cut | None = None, dtype: torch.dtype | None = None) -> Tensor:
        shape, kind = self._keys[name].shape, dtype or self._dtype
        if not sum(shape):
            return torch.zeros(shape, dtype=kind, device=self._device)
        seed = self._seed * 1_000_003 + zlib.crc32(name.encode())
        source = torch.Generator(self._device).manual_seed(seed)
        value = torch.randn(shape, generator=source, device=self._device, dtype=kind)
        return cut_tensor(_scaled(name, value), cut)

    def linear(
        self, names: list[str], cut: Cut | None = None, bias: bool = True, quantise: bool = True
    ) -> Linear:
        rows = cut if cut is not None and cut.axis == 0 else None
        biases = [self.tensor(f"{name}.bias", rows) for name in names] if bias else []
        added = torch.cat(biases) if biases else None
        weights = (self.tensor(f"{name}.weight", cut) for name in names)
        if not (self._fp8 and quantise):
            return Linear(torch.cat(list(weights)), added)
        # one at a time, a scale an output channel, as a checkpoint is quantised
        parts = [quantised_rows(weight) for weight in weights]
        stored = torch.cat([values.view(torch.uint8) for values, _ in parts]).view(FP8)
        scale = torch.cat([row_scale for _, row_scale in parts])[None]
        return Linear(stored, added, scale, scale)


def _scaled(name: str, value: Tensor) -> Tensor:
    """Standard normal -> the magnitude of a trained tensor of that name."""
    if name.endswith("modulation"):
        value = value.mul_(0.1)
        if value.shape[1] == 6:  # gates of attention and feed-forward
            value[:, 2] += 0.5
            value[:, 5] += 0.5
        return value
    if name == "casual_audio_encoder.weights":
        return value.mul_(0.001).add_(0.01)
    if ("norm" in name and name.endswith("weight")) or name.startswith(_IMAGE_NORMS):
        return value.mul_(0.1).add_(1)
    if name.endswith("bias") or value.ndim < 2:
        return value.mul_(0.02)
    if name.endswith("padding_tokens") or name.startswith("trainable"):
        return value.mul_(0.1)
    crosses = name.endswith(".o.weight") and ".self_attn." not in name
    return value.mul_((QUIET if crosses else 1) * value[0].numel() ** -0.5)
