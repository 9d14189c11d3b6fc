"""Names and shapes of the video autoencoder's weights (the public AutoencoderKLWan's), random ones.

Knows nothing of how they are applied.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.models.vae_config import VaeConfig, encoder_pairs

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


def _middle(shapes: Shapes, name: str, width: int) -> None:
    for i in range(2):
        _residual(shapes, f"{name}.resnets.{i}", width, width)
    attention = f"{name}.attentions.0"
    shapes[f"{attention}.norm.gamma"] = (width, 1, 1)
    _conv(shapes, f"{attention}.to_qkv", 3 * width, width, 1, 1)
    _conv(shapes, f"{attention}.proj", width, width, 1, 1)


def upsampler(config: VaeConfig, level: int) -> str:
    """Public name of a decoder level's doubling."""
    return f"decoder.up_blocks.{level}.{'upsampler' if config.residual else 'upsamplers.0'}"


def down_resnet(config: VaeConfig, level: int, block: int) -> str:
    """Public name of an encoder block; the plain form numbers blocks and halvings in one row."""
    if config.residual:
        return f"encoder.down_blocks.{level}.resnets.{block}"
    return f"encoder.down_blocks.{level * config.blocks + block}"


def downsampler(config: VaeConfig, level: int) -> str:
    """Public name of an encoder level's halving."""
    if config.residual:
        return f"encoder.down_blocks.{level}.downsampler"
    return f"encoder.down_blocks.{level * config.blocks + config.blocks - 1}"


def weight_shapes(config: VaeConfig) -> Shapes:
    """Every tensor the decoder reads, by its public name."""
    shapes: Shapes = {}
    z, widths = config.latent_channels, config.widths
    _conv(shapes, "post_quant_conv", z, z, 1, 1, 1)
    _conv(shapes, "decoder.conv_in", widths[0], z, 3, 3, 3)
    _middle(shapes, "decoder.mid_block", widths[0])
    for index, level in enumerate(config.decoder_levels):
        for j in range(config.blocks):
            into = level.into if j == 0 else level.out
            _residual(shapes, f"decoder.up_blocks.{index}.resnets.{j}", into, level.out)
        if index < config.levels - 1:
            name = upsampler(config, index)
            _conv(shapes, f"{name}.resample.1", level.onward, level.out, 3, 3)
            if config.doubles_time[index]:
                _conv(shapes, f"{name}.time_conv", 2 * level.out, level.out, 3, 1, 1)
    shapes["decoder.norm_out.gamma"] = (widths[-1], 1, 1, 1)
    _conv(shapes, "decoder.conv_out", 3 * config.patch**2, widths[-1], 3, 3, 3)
    return shapes


def encoder_shapes(config: VaeConfig) -> Shapes:
    """Every tensor the encoder reads, by its public name."""
    shapes: Shapes = {}
    widths, twice = config.encoder_widths, 2 * config.latent_channels
    _conv(shapes, "encoder.conv_in", widths[0], 3 * config.patch**2, 3, 3, 3)
    for level, (into, out) in enumerate(encoder_pairs(config)):
        for j in range(config.blocks - 1):
            _residual(shapes, down_resnet(config, level, j), into if j == 0 else out, out)
        if level < config.levels - 1:
            name = downsampler(config, level)
            _conv(shapes, f"{name}.resample.1", out, out, 3, 3)
            if config.halves_time[level]:
                _conv(shapes, f"{name}.time_conv", out, out, 3, 1, 1)
    _middle(shapes, "encoder.mid_block", widths[-1])
    shapes["encoder.norm_out.gamma"] = (widths[-1], 1, 1, 1)
    _conv(shapes, "encoder.conv_out", twice, widths[-1], 3, 3, 3)
    _conv(shapes, "quant_conv", twice, twice, 1, 1, 1)
    return shapes


def synthetic_vae_weights(
    config: VaeConfig, device: torch.device, dtype: torch.dtype, seed: int = 22,
    shapes: Shapes | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """Random weights of the right shapes (the decoder's by default), activations of order one."""
    source = torch.Generator(device).manual_seed(seed)
    weights: dict[str, Tensor] = {}
    for name, shape in (shapes or weight_shapes(config)).items():
        if name.endswith("gamma"):
            weights[name] = torch.ones(shape, device=device, dtype=dtype)
            continue
        drawn = torch.randn(shape, generator=source, device=device, dtype=torch.float32)
        fan_in = drawn[0].numel() if name.endswith("weight") else 2500
        weights[name] = (drawn * fan_in**-0.5).to(dtype)
    return weights
