"""From the names in Wan2.1_VAE.pth and Wan2.2_VAE.pth to the public (diffusers) ones and back.

Wan2.1's file numbers blocks and halvings or doublings of all levels in one row, Wan2.2's nests them
by level. Shapes are the same in both. Knows nothing of files.
"""

from __future__ import annotations

import re

from engine.models.vae_config import VaeConfig
from engine.models.vae_weights import Shapes, down_resnet, downsampler, upsampler

_BLOCK = {"norm1": "residual.0", "conv1": "residual.2", "norm2": "residual.3",
          "conv2": "residual.6", "conv_shortcut": "shortcut"}  # fmt: skip
_MIDDLE = {"resnets.0": "0", "attentions.0": "1", "resnets.1": "2"}
_ENDS = {"quant_conv": "conv1", "post_quant_conv": "conv2"}


def _prefixes(config: VaeConfig) -> dict[str, str]:
    """Public prefix -> original prefix of every block that is numbered differently."""
    found: dict[str, str] = {}
    for half in ("encoder", "decoder"):
        for public, number in _MIDDLE.items():
            found[f"{half}.mid_block.{public}"] = f"{half}.middle.{number}"
        found[f"{half}.conv_in"] = f"{half}.conv1"
        found[f"{half}.norm_out"] = f"{half}.head.0"
        found[f"{half}.conv_out"] = f"{half}.head.2"
    for level in range(config.levels):
        for j in range(config.blocks):
            public = f"decoder.up_blocks.{level}.resnets.{j}"
            found[public] = _numbered(config, "decoder.upsamples", level, j, config.blocks + 1)
        for j in range(config.blocks - 1):
            public = down_resnet(config, level, j)
            found[public] = _numbered(config, "encoder.downsamples", level, j, config.blocks)
        if level < config.levels - 1:
            found[upsampler(config, level)] = _numbered(
                config, "decoder.upsamples", level, config.blocks, config.blocks + 1
            )
            found[downsampler(config, level)] = _numbered(
                config, "encoder.downsamples", level, config.blocks - 1, config.blocks
            )
    return found


def _numbered(config: VaeConfig, row: str, level: int, block: int, per_level: int) -> str:
    if config.residual:
        return f"{row}.{level}.{row.split('.')[1]}.{block}"
    return f"{row}.{level * per_level + block}"


def original_names(config: VaeConfig, shapes: Shapes) -> dict[str, str]:
    """Public name -> name in the original file, for every tensor of `shapes`."""
    prefixes = _prefixes(config)
    names: dict[str, str] = {}
    for public in shapes:
        module, leaf = public.rsplit(".", 1)
        if module in _ENDS:
            names[public] = f"{_ENDS[module]}.{leaf}"
            continue
        prefix = _longest(module, prefixes)
        inner = [_BLOCK.get(part, part) for part in _rest(module, prefix)]
        names[public] = ".".join([prefixes[prefix], *inner, leaf])
    return names


def _longest(module: str, prefixes: dict[str, str]) -> str:
    fitting = [p for p in prefixes if re.match(re.escape(p) + r"(\.|$)", module)]
    return max(fitting, key=len)


def _rest(module: str, prefix: str) -> list[str]:
    return [part for part in module[len(prefix) :].split(".") if part]
