"""Both video autoencoders against the public AutoencoderKLWan, through the original files' names.

Tiny random weights in fp32. Proven: names, shapes, arithmetic, streaming = whole. Not proven: that
the published files hold what their names say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.models.causal_vae import CausalVae
from engine.models.vae_config import VaeConfig, wan_2_1, wan_2_2
from engine.models.vae_encoder import VaeEncoder
from engine.models.vae_memory import decoder_bytes
from engine.models.vae_names import original_names
from engine.models.vae_weights import encoder_shapes, weight_shapes

diffusers = pytest.importorskip("diffusers")
CPU = torch.device("cpu")
GRID = (3, 2)
BASES = {"2.1": wan_2_1(GRID, 16), "2.2": wan_2_2(GRID, 16, 16)}
FULL = {"2.1": wan_2_1((136, 88)), "2.2": wan_2_2((68, 44))}
both = pytest.mark.parametrize("config", BASES.values(), ids=BASES.keys())


def library(config: VaeConfig) -> Any:
    """AutoencoderKLWan of the same geometry, every weight (gammas too) random."""
    keywords: dict[str, Any] = {"patch_size": config.patch} if config.residual else {}
    made = diffusers.AutoencoderKLWan(
        base_dim=config.encoder_base, decoder_base_dim=config.base, z_dim=config.latent_channels,
        dim_mult=list(config.multipliers), num_res_blocks=config.blocks - 1, attn_scales=[],
        temperal_downsample=list(config.halves_time), is_residual=config.residual,
        in_channels=3 * config.patch**2, out_channels=3 * config.patch**2,
        latents_mean=list(config.mean), latents_std=list(config.std),
        scale_factor_temporal=4, scale_factor_spatial=config.spatial, **keywords,
    ).eval()  # fmt: skip
    source = torch.Generator().manual_seed(5)
    for name, weight in made.named_parameters():
        fan_in = weight[0].numel() if weight.ndim > 1 and "gamma" not in name else 0
        drawn = torch.randn(weight.shape, generator=source)
        weight.data = drawn * fan_in**-0.5 if fan_in else 1 * ("gamma" in name) + 0.1 * drawn
    return made


def split(config: VaeConfig, state: dict[str, Tensor]) -> tuple[dict[str, Tensor], ...]:
    shapes = (weight_shapes(config), encoder_shapes(config))
    return tuple({name: state[name].clone() for name in half} for half in shapes)


def spread(config: VaeConfig) -> tuple[Tensor, Tensor]:
    return tuple(torch.tensor(v).view(-1, 1, 1, 1) for v in (config.mean, config.std))  # type: ignore


def scaled_clip(config: VaeConfig, count: int) -> Tensor:
    source = torch.Generator().manual_seed(6)
    return torch.randn(config.latent_channels, count, *config.latent_grid, generator=source)


def far(got: Tensor, want: Tensor) -> float:
    """Largest difference over the largest magnitude."""
    return float((got - want).abs().max() / want.abs().max())


@both
def test_parity_of_names_and_shapes(config: VaeConfig) -> None:
    state = library(config).state_dict()
    assert {k: tuple(v.shape) for k, v in state.items()} == weight_shapes(config) | encoder_shapes(
        config
    )


@pytest.mark.parametrize("config", FULL.values(), ids=FULL.keys())
def test_parity_of_full_size_shapes(config: VaeConfig) -> None:
    with torch.device("meta"):
        made: Any = diffusers.AutoencoderKLWan(
            base_dim=config.encoder_base, decoder_base_dim=config.base,
            z_dim=config.latent_channels, is_residual=config.residual,
            in_channels=3 * config.patch**2, out_channels=3 * config.patch**2,
        )  # fmt: skip
    assert {k: tuple(v.shape) for k, v in made.state_dict().items()} == weight_shapes(
        config
    ) | encoder_shapes(config)


def test_parity_of_original_names_with_the_library_map() -> None:
    """The library ships a map for Wan2.1's file; Wan2.2's has none in the package."""
    from diffusers.loaders import single_file_utils

    config = BASES["2.1"]
    shapes = weight_shapes(config) | encoder_shapes(config)
    names = original_names(config, shapes)
    convert: Callable[[dict[str, str]], dict[str, str]] = (
        single_file_utils.convert_wan_vae_to_diffusers
    )
    assert convert({original: public for public, original in names.items()}) == {
        public: public for public in shapes
    }


def test_original_names_of_wan_2_2_follow_its_module_tree() -> None:
    config = BASES["2.2"]
    names = original_names(config, weight_shapes(config) | encoder_shapes(config))
    assert len(set(names.values())) == len(names)
    for public, original in {
        "decoder.up_blocks.1.resnets.2.conv2.bias":
            "decoder.upsamples.1.upsamples.2.residual.6.bias",
        "decoder.up_blocks.0.upsampler.time_conv.weight":
            "decoder.upsamples.0.upsamples.3.time_conv.weight",
        "decoder.up_blocks.2.resnets.0.conv_shortcut.weight":
            "decoder.upsamples.2.upsamples.0.shortcut.weight",
        "encoder.down_blocks.1.downsampler.resample.1.bias":
            "encoder.downsamples.1.downsamples.2.resample.1.bias",
        "encoder.mid_block.attentions.0.to_qkv.weight": "encoder.middle.1.to_qkv.weight",
        "decoder.norm_out.gamma": "decoder.head.0.gamma",
        "post_quant_conv.bias": "conv2.bias",
    }.items():  # fmt: skip
        assert names[public] == original


def test_parity_of_the_latent_scale_with_the_library() -> None:
    defaults = diffusers.AutoencoderKLWan(base_dim=8).config
    assert list(BASES["2.1"].mean) == defaults.latents_mean
    assert list(BASES["2.1"].std) == defaults.latents_std
    assert len(BASES["2.2"].mean) == len(BASES["2.2"].std) == 48


@both
def test_parity_of_streaming_decode_with_the_whole_clip(config: VaeConfig) -> None:
    made, latents = library(config), scaled_clip(config, 6)
    mean, std = spread(config)
    with torch.no_grad():
        want = made._decode((latents * std + mean)[None]).sample[0].permute(1, 2, 3, 0)
    vae = CausalVae(config, split(config, made.state_dict())[0], CPU, torch.float32)
    signals, shown = [], []
    for i in range(latents.shape[1]):
        shown.append(vae.decode(latents[:, i]).clone())
        signals.append(vae.signal.clamp(-1, 1))
    assert [len(s) for s in shown] == [1, 4, 4, 4, 4, 4]
    assert far(torch.cat(signals), want) < 2e-5
    assert want.std() > 0.2 and (want.abs() < 1).float().mean() > 0.3  # not all clamped
    bytes_wanted = ((want + 1) * 127.5).round().flip(-1)
    assert (torch.cat(shown)[..., :3] - bytes_wanted).abs().max() <= 1


@both
@pytest.mark.parametrize("frames", [1, 9])
def test_parity_of_the_encoder(config: VaeConfig, frames: int) -> None:
    made = library(config)
    source = torch.Generator().manual_seed(7)
    pixels = 2 * torch.rand(3, frames, *config.picture, generator=source) - 1
    mean, std = spread(config)
    with torch.no_grad():
        want = (made.encode(pixels[None]).latent_dist.mode()[0] - mean) / std
    got = VaeEncoder(config, split(config, made.state_dict())[1], CPU).encode(pixels)
    assert got.shape == (config.latent_channels, 1 + (frames - 1) // 4, *config.latent_grid)
    assert far(got, want) < 2e-5


def test_the_middle_attention_in_parts_is_the_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    config = BASES["2.1"]
    weights = split(config, library(config).state_dict())[0]
    latent = scaled_clip(config, 1)[:, 0]
    whole = CausalVae(config, dict(weights), CPU, torch.float32)
    whole.decode(latent)
    monkeypatch.setattr("engine.models.causal_vae.QUERIES_AT_ONCE", 4)
    parts = CausalVae(config, dict(weights), CPU, torch.float32)
    parts.decode(latent)
    torch.testing.assert_close(parts.signal, whole.signal)


def test_memory_of_both_decoders_at_704x1088() -> None:
    """Wan2.2's was measured on a GPU: 12.2 GiB. Wan2.1's larger pictures need more, not less."""
    gib = {name: decoder_bytes(made) / 2**30 for name, made in FULL.items()}
    assert 12.0 < gib["2.2"] < 12.6
    assert 15.5 < gib["2.1"] < 16.5


def test_without_a_scale_latents_are_the_decoders_own() -> None:
    config = BASES["2.2"]
    weights = split(config, library(config).state_dict())[0]
    mean, std = spread(config)
    latent = scaled_clip(config, 1)
    scaled = CausalVae(config, dict(weights), CPU, torch.float32)
    plain = CausalVae(replace(config, mean=(), std=()), dict(weights), CPU, torch.float32)
    scaled.decode(latent[:, 0])
    plain.decode((latent * std + mean)[:, 0])
    torch.testing.assert_close(scaled.signal, plain.signal, rtol=1e-4, atol=1e-5)
