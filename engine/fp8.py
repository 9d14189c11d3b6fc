"""FP8 weights, and the static scales of the activations that meet them.

Scales of activations are one a tensor. That is enough because e4m3 is a floating type: values from
2^-6 to 448 times the scale keep their 3 bits of mantissa, so a scale right to a factor of 100 costs
nothing. Weights that were trained have one an output channel: a channel's scale is a true constant.
What cannot be forgiven is saturation, hence a calibration run with a scale a row, and a margin.
Knows nothing of the model's structure.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import ops
from kernels.reference import FP8, FP8_MAX

MARGIN = 2.0  # headroom over the largest magnitude seen in calibration


@dataclass(frozen=True, slots=True)
class Linear:
    """One layer's weight [N, K], bf16/fp32 or e4m3 with its scale, and an optional bias [N]."""

    weight: Tensor
    bias: Tensor | None = None
    scale: Tensor | None = None  # fp32 [1], or [1, N]: one an output channel
    row_scale: Tensor | None = None  # [1, N]: the same numbers, for activations scaled a row

    @property
    def bytes(self) -> int:
        return self.weight.numel() * self.weight.element_size()


@dataclass(frozen=True, slots=True)
class Activation:
    """What enters a linear layer: values [M, K] and, when e4m3, their scale ([1] or [M, 1])."""

    values: Tensor
    scale: Tensor | None = None


def quantise_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """e4m3 copy of a weight [N, K] with one scale."""
    scale = (weight.abs().amax().float() / FP8_MAX).clamp_min(1e-12).reshape(1)
    stored = (weight.float() / scale).clamp(-FP8_MAX, FP8_MAX).to(FP8)
    return Linear(stored, bias, scale, scale.expand(1, weight.shape[0]).contiguous())


def quantised_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(e4m3 [N, K], fp32 scales [N]) of a weight [N, K], one scale an output channel."""
    scale = (weight.abs().amax(1).float() / FP8_MAX).clamp_min(1e-12)
    stored = (weight.float() / scale[:, None]).clamp(-FP8_MAX, FP8_MAX).to(FP8)
    return stored, scale


class LinearOp:
    """Applies a `Linear` into a given output, on the path chosen for a device."""

    def __init__(self, device: torch.device) -> None:
        self._fp8 = ops.choose("fp8_linear", device)
        self._quantise = ops.reference.quantise

    def __call__(self, x: Activation, layer: Linear, out: Tensor) -> None:
        """out [M, N]. A full-precision activation meeting an fp8 weight is quantised here, unfused,
        as the common libraries do it.
        """
        if layer.scale is None:
            if layer.bias is None:
                torch.mm(x.values, layer.weight.t(), out=out)
            else:
                torch.addmm(layer.bias, x.values, layer.weight.t(), out=out)
            return
        if x.scale is None:
            x = self.quantised(x)
        assert x.scale is not None
        scale = x.scale
        if layer.scale.ndim == 2 and scale.ndim == 1:  # channels need a scale a row beside them
            scale = scale.expand(x.values.shape[0], 1).contiguous()
        w_scale = layer.row_scale if scale.ndim == 2 else layer.scale
        self._fp8(x.values, scale, layer.weight, w_scale, layer.bias, out)

    def quantised(self, x: Activation) -> Activation:
        """A scale a row by plain torch ops, in a tensor of its own."""
        values = x.values
        out = torch.empty_like(values, dtype=FP8)
        scale = torch.empty(values.shape[0], 1, device=values.device)
        self._quantise(values, out, scale)
        return Activation(out, scale)


class StaticScales:
    """One [1] fp32 scale per (layer, site); `observe` widens, `freeze` adds the margin."""

    def __init__(self, layers: int, sites: int, device: torch.device) -> None:
        # cuBLASLt refuses a scale whose address is not a multiple of 16 bytes: 4 floats a cell
        self.values = torch.full((layers, sites, 4), 1e-12, device=device)
        self.frozen = False

    def observe(self, layer: int, site: int, row_scales: Tensor) -> None:
        """Take in the row scales [M, 1] of one calibration forward."""
        cell = self.values[layer, site, :1]
        torch.maximum(cell, row_scales.amax().reshape(1), out=cell)

    def freeze(self) -> None:
        self.values.mul_(MARGIN)
        self.frozen = True

    def at(self, layer: int, site: int) -> Tensor:
        return self.values[layer, site, :1]
