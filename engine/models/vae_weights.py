"""Names and shapes of the video decoder's weights (the public AutoencoderKLWan's), and random ones.

Knows nothing of how they are applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class VaeConfig:
    """Geometry of the decoder; the default is Wan2.2's: 16 x 16 x 4, 555M parameters."""

    latent_grid: tuple[int, int]  # latent pixels down and across
    latent_channels: int = 48
    base: int = 256
    multipliers: tuple[int, ...] = (1, 2, 4, 4)
    blocks: int = 3  # residual blocks a level
    doubles_time: tuple[bool, ...] = (True, True, False)
    patch: int = 2  # pixels a final channel group unfolds to, each way

    @property
    def widths(self) -> list[int]:
        """Channels before level 0, then after each level."""
        return [self.base * m for m in (self.multipliers[-1], *self.multipliers[::-1])]

    @property
    def levels(self) -> int:
        return len(self.multipliers)

    @property
    def picture(self) -> tuple[int, int]:
        factor = self.patch * 2 ** (self.levels - 1)
        return self.latent_grid[0] * factor, self.latent_grid[1] * factor


Shapes = dict[str, tuple[int, ...]]


def _conv(shapes: Shapes, name: str, out: int, into: int, *kernel: int) -> None:
    shapes[f"{name}.weight"] = (out, into, *kernel)
    shapes[f"{name}.bias"] = (out,)


def _residual(shapes: Shapes, name: str, into: int, out: int) -> None:
    shapes[f"{name}.norm1.gamma"] = (into, 1, 1, 1)
    _conv(shapes, f"{name}.conv1", out, into, 3, 3, 3)
    shapes[f"{name}.norm2.gamma"] = (out, 1, 1, 1)
    _conv(shapes, f"{name}.conv2", out, out, 3, 3, 3)
    if into != out:
        _conv(shapes, f"{name}.conv_shortcut", out, into, 1, 1, 1)


def weight_shapes(config: VaeConfig) -> Shapes:
    """Every tensor the decoder reads, by its public name."""
    shapes: Shapes = {}
    z, widths = config.latent_channels, config.widths
    _conv(shapes, "post_quant_conv", z, z, 1, 1, 1)
    _conv(shapes, "decoder.conv_in", widths[0], z, 3, 3, 3)
    for i in range(2):
        _residual(shapes, f"decoder.mid_block.resnets.{i}", widths[0], widths[0])
    attention = "decoder.mid_block.attentions.0"
    shapes[f"{attention}.norm.gamma"] = (widths[0], 1, 1)
    _conv(shapes, f"{attention}.to_qkv", 3 * widths[0], widths[0], 1, 1)
    _conv(shapes, f"{attention}.proj", widths[0], widths[0], 1, 1)
    for level, (into, out) in enumerate(pairwise(widths)):
        name = f"decoder.up_blocks.{level}"
        for j in range(config.blocks):
            _residual(shapes, f"{name}.resnets.{j}", into if j == 0 else out, out)
        if level < config.levels - 1:
            _conv(shapes, f"{name}.upsampler.resample.1", out, out, 3, 3)
            if config.doubles_time[level]:
                _conv(shapes, f"{name}.upsampler.time_conv", 2 * out, out, 3, 1, 1)
    shapes["decoder.norm_out.gamma"] = (widths[-1], 1, 1, 1)
    _conv(shapes, "decoder.conv_out", 3 * config.patch**2, widths[-1], 3, 3, 3)
    return shapes


def synthetic_vae_weights(
    config: VaeConfig, device: torch.device, dtype: torch.dtype, seed: int = 22
) -> dict[str, Tensor]:
    """Random weights of the right shapes, scaled to keep activations of order one."""
    source = torch.Generator(device).manual_seed(seed)
    weights: dict[str, Tensor] = {}
    for name, shape in weight_shapes(config).items():
        if name.endswith("gamma"):
            weights[name] = torch.ones(shape, device=device, dtype=dtype)
            continue
        drawn = torch.randn(shape, generator=source, device=device, dtype=torch.float32)
        fan_in = drawn[0].numel() if name.endswith("weight") else 2500
        weights[name] = (drawn * fan_in**-0.5).to(dtype)
    return weights
