"""Files of the video autoencoders: each layout loads, and anything that is not whole is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.models.causal_vae import CausalVae
from engine.models.vae_config import VaeConfig, wan_2_1, wan_2_2
from engine.models.vae_encoder import VaeEncoder
from engine.models.vae_files import load_vae
from engine.models.vae_names import original_names
from engine.models.vae_weights import encoder_shapes, synthetic_vae_weights, weight_shapes

CPU = torch.device("cpu")
GRID = (2, 2)
CONFIGS = {"2.1": wan_2_1(GRID, 16), "2.2": wan_2_2(GRID, 16, 16)}
both = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


def weights(config: VaeConfig) -> dict[str, Tensor]:
    shapes = weight_shapes(config) | encoder_shapes(config)
    return synthetic_vae_weights(config, CPU, torch.float32, shapes=shapes)


def original_file(config: VaeConfig, folder: Path) -> Path:
    made = weights(config)
    names = original_names(config, {k: tuple(v.shape) for k, v in made.items()})
    torch.save({names[k]: v for k, v in made.items()}, folder / "vae.pth")
    return folder / "vae.pth"


def diffusers_folder(config: VaeConfig, folder: Path, told: Mapping[str, object]) -> Path:
    save_file(weights(config), folder / "diffusion_pytorch_model.safetensors")
    (folder / "config.json").write_text(json.dumps(told))
    return folder


@both
def test_the_original_file_is_recognised_and_decodes(config: VaeConfig, tmp_path: Path) -> None:
    loaded = load_vae(original_file(config, tmp_path), GRID)
    assert loaded.config == config
    size = "16 x 16 x 4, 48" if config.residual else "8 x 8 x 4, 16"
    assert "original names" in loaded.layout and size in loaded.layout
    latent = torch.randn(config.latent_channels, *GRID, generator=torch.Generator().manual_seed(1))
    pictures = CausalVae(loaded.config, loaded.decoder, CPU, torch.float32).decode(latent)
    same = CausalVae(config, weights(config), CPU, torch.float32).decode(latent)
    assert torch.equal(pictures, same)
    pixels = torch.zeros(3, 1, *config.picture)
    assert VaeEncoder(loaded.config, loaded.encoder, CPU).encode(pixels).isfinite().all()


@both
def test_a_diffusers_folder_brings_its_own_scale(config: VaeConfig, tmp_path: Path) -> None:
    count = config.latent_channels
    told = {"latents_mean": [0.5] * count, "latents_std": [2.0] * count}
    loaded = load_vae(diffusers_folder(config, tmp_path, told), GRID)
    assert loaded.config.mean == (0.5,) * count and loaded.config.std == (2.0,) * count
    assert "diffusers names" in loaded.layout


def test_a_folder_without_a_scale_has_the_published_one(tmp_path: Path) -> None:
    config = CONFIGS["2.1"]
    assert load_vae(diffusers_folder(config, tmp_path, {}), GRID).config == config


def changed(path: Path, change: dict[str, Tensor | None]) -> Path:
    state = torch.load(path, weights_only=True) | change
    torch.save({k: v for k, v in state.items() if v is not None}, path)
    return path


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"decoder.head.2.bias": None}, "1 tensors are missing (decoder.head.2.bias)"),
        ({"decoder.head.2.bias": torch.zeros(5)}, "decoder.head.2.bias [5] instead of [3]"),
        ({"extra": torch.zeros(1)}, "1 tensors are unexpected (extra)"),
        ({"decoder.head.0.gamma": None}, "it lacks decoder.norm_out.gamma"),
    ],
)
def test_what_is_not_whole_is_refused(
    tmp_path: Path, change: dict[str, Tensor | None], told: str
) -> None:
    path = changed(original_file(CONFIGS["2.1"], tmp_path), change)
    with pytest.raises(EngineError) as refusal:
        load_vae(path, GRID)
    assert refusal.value.code == "bad_checkpoint"
    assert told in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = original_file(CONFIGS["2.1"], tmp_path)
    path.write_bytes(path.read_bytes()[:-100_000])
    with pytest.raises(EngineError, match="cut short"):
        load_vae(path, GRID)


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch hostile",)


def test_a_hostile_file_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"decoder.conv1.weight": Hostile()}, tmp_path / "vae.pth")
    with pytest.raises(EngineError, match="never run"):
        load_vae(tmp_path / "vae.pth", GRID)
    assert not (tmp_path / "hostile").exists()


def test_another_models_file_is_refused(tmp_path: Path) -> None:
    save_file({"blocks.0.weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(EngineError, match="no video autoencoder"):
        load_vae(tmp_path / "other.safetensors", GRID)
    with pytest.raises(EngineError, match="does not exist"):
        load_vae(tmp_path / "absent.pth", GRID)
