"""Opening the user's taew2_1.pth, taew2_2.pth or a safetensors of them. Sizes come from shapes.

Knows nothing of how weights are applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from engine.models.checkpoint.mapping import open_tensors
from engine.models.checkpoint.strict import require_exact
from engine.models.checkpoint.tensor_file import refused
from engine.models.taehv import (
    BLOCKS,
    FIRST,
    LAST,
    LEVELS,
    ROW,
    TinyConfig,
    TinyDecoder,
    tiny_shapes,
)

Shapes = Mapping[str, tuple[int, ...]]


def load_taehv(
    path: Path, latent_grid: tuple[int, int], device: torch.device, dtype: torch.dtype
) -> TinyDecoder:
    """Raises EngineError("missing_asset") without the file, "bad_checkpoint" for another one."""
    tensors = open_tensors(path)
    config = _told_by_shapes(path, tensors.shapes, latent_grid)
    wanted = tiny_shapes(config)
    found = {k: v for k, v in tensors.shapes.items() if not k.startswith("encoder.")}
    for index in range(LEVELS):  # published files grow time at every level; the newest is kept
        name = f"decoder.{FIRST + index * ROW + BLOCKS + 1}.conv.weight"
        if (
            name in found
            and found[name][0] == 2 * wanted[name][0]
            and not config.doubles_time[index]
        ):
            found[name] = wanted[name]
    require_exact(f"the tiny video decoder in {path.name}", found, wanted)
    return TinyDecoder(config, tensors, device, dtype)


def _told_by_shapes(path: Path, shapes: Shapes, latent_grid: tuple[int, int]) -> TinyConfig:
    ends = [f"decoder.{FIRST + level * ROW + BLOCKS + 2}.weight" for level in range(LEVELS)]
    needed = ["decoder.1.weight", *ends, f"decoder.{LAST}.weight"]
    if lacking := [name for name in needed if len(shapes.get(name, ())) != 4]:
        why = f"is no tiny video decoder: it lacks {lacking[0]}"
        raise refused(path, why, "name taew2_1.pth for 16 latent channels, taew2_2.pth for 48")
    first, last = shapes["decoder.1.weight"], shapes[f"decoder.{LAST}.weight"]
    widths = (first[0], *(shapes[name][0] for name in ends))
    return TinyConfig(latent_grid, first[1], widths, patch=2 if last[0] == 12 else 1)
