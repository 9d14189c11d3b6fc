"""Opening a video autoencoder: Wan2.1_VAE.pth, Wan2.2_VAE.pth, safetensors, diffusers folders.

Which of the two it is, and its sizes, are read from names and shapes; every tensor must then be
there in its shape, and none besides. Knows nothing of how weights are applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.mapping import open_tensors
from engine.models.checkpoint.strict import require_exact
from engine.models.checkpoint.tensor_file import refused
from engine.models.vae_config import WAN_2_1_MEAN, WAN_2_1_STD, WAN_2_2_MEAN, WAN_2_2_STD, VaeConfig
from engine.models.vae_names import original_names
from engine.models.vae_weights import Shapes, encoder_shapes, weight_shapes

SCALES = {(16, False): (WAN_2_1_MEAN, WAN_2_1_STD), (48, True): (WAN_2_2_MEAN, WAN_2_2_STD)}
# original name of what tells the geometry -> the public one
TELLING = {
    "decoder.conv1.weight": "decoder.conv_in.weight",
    "decoder.head.0.gamma": "decoder.norm_out.gamma",
    "decoder.head.2.weight": "decoder.conv_out.weight",
    "encoder.conv1.weight": "encoder.conv_in.weight",
}


@dataclass(frozen=True, slots=True)
class LoadedVae:
    """An autoencoder whose tensors are views of its file, by their public names."""

    config: VaeConfig
    decoder: dict[str, Tensor]  # for CausalVae
    encoder: dict[str, Tensor]  # for VaeEncoder
    layout: str  # one line for people


def load_vae(path: Path, latent_grid: tuple[int, int]) -> LoadedVae:
    """A weights file, or a folder with one and perhaps its config.json, for latents of this grid.

    Raises EngineError("missing_asset") when it is not there, "bad_checkpoint" for anything else.
    """
    tensors = open_tensors(path)
    folder = path if path.is_dir() else path.parent
    original = "decoder.conv1.weight" in tensors.shapes
    config = _told_by_shapes(path, tensors.shapes, latent_grid, original)
    config = _scaled(path, config, {} if original else _config_file(folder))
    halves = weight_shapes(config), encoder_shapes(config)
    names = _names(config, halves[0] | halves[1], original)
    wanted = {names[public]: shape for public, shape in (halves[0] | halves[1]).items()}
    require_exact(f"the video decoder in {path.name}", tensors.shapes, wanted)
    decoder, encoder = ({public: tensors[names[public]] for public in half} for half in halves)
    return LoadedVae(config, decoder, encoder, _layout(config, original))


def _names(config: VaeConfig, shapes: Shapes, original: bool) -> dict[str, str]:
    return original_names(config, shapes) if original else {public: public for public in shapes}


def _told_by_shapes(
    path: Path, shapes: Mapping[str, tuple[int, ...]], latent_grid: tuple[int, int], original: bool
) -> VaeConfig:
    told = {public: shapes.get(name if original else public) for name, public in TELLING.items()}
    entry, norm, last, first = (told[public] for public in TELLING.values())
    if entry is None or norm is None or last is None or first is None:
        lacking = next(public for public, shape in told.items() if shape is None)
        why = f"is no video autoencoder of the Wan family: it lacks {lacking}"
        raise refused(path, why, "name Wan2.1_VAE.pth, Wan2.2_VAE.pth or a diffusers vae folder")
    residual = any(".upsamples.0.upsamples." in n or ".upsampler." in n for n in shapes)
    return VaeConfig(
        latent_grid, entry[1], norm[0], patch=2 if last[0] == 12 else 1, residual=residual,
        encoder_base=first[0],
    )  # fmt: skip


def _scaled(path: Path, config: VaeConfig, told: dict[str, Any]) -> VaeConfig:
    """With the scale of its latents: what its config.json says, else the published constants."""
    mean, std = told.get("latents_mean"), told.get("latents_std")
    if mean is None or std is None:
        mean, std = SCALES.get((config.latent_channels, config.residual), (None, None))
    if mean is None or std is None or not len(mean) == len(std) == config.latent_channels:
        why = f"the scale of its {config.latent_channels} latent channels is not known"
        raise refused(path, why, "keep its config.json beside it")
    return replace(config, mean=tuple(map(float, mean)), std=tuple(map(float, std)))


def _config_file(folder: Path) -> dict[str, Any]:
    """config.json of a diffusers folder; {} when it is absent or another model's."""
    path = folder / "config.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EngineError(
            "bad_checkpoint", f"{path} is not readable JSON", "copy or download it again"
        ) from error
    return told if isinstance(told, dict) and "latents_mean" in told else {}


def _layout(config: VaeConfig, original: bool) -> str:
    family = "Wan2.2" if config.residual else "Wan2.1"
    names = "original" if original else "diffusers"
    s, z = config.spatial, config.latent_channels
    return f"{family} autoencoder, {names} names, {s} x {s} x 4, {z} channels"
