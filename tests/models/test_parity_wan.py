"""Our Transformer against diffusers' WanTransformer3DModel: one chunk, no cache, fp32.

The public weights come in through the official key map. What this proves: embeddings, modulation,
rotary phases, both attentions, feed-forward, head, and every name of the map, for each variant that
the public class has. What it does not: caches (test_parity_causal.py), sound, other precisions.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.models.dit_config import DitConfig
from engine.models.latents import to_latent, to_tokens
from tests.models.oracles import (
    TEXT_FEATURES,
    official,
    our_model,
    relative_error,
    shaken,
    wan_tiny,
    worst_error,
)

diffusers = pytest.importorskip("diffusers")
TIMESTEP = 640.0


def public_wan(config: DitConfig, **extra: Any) -> torch.nn.Module:
    torch.manual_seed(5)
    return shaken(
        diffusers.WanTransformer3DModel(
            patch_size=(1, config.patch, config.patch), num_attention_heads=config.heads,
            attention_head_dim=config.head_dim, text_dim=TEXT_FEATURES, freq_dim=256,
            in_channels=config.latent_channels + config.joined_channels,
            out_channels=config.latent_channels, ffn_dim=config.hidden, num_layers=config.layers,
            cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=64, **extra,
        )
    )  # fmt: skip


def noise(config: DitConfig, channels: int) -> torch.Tensor:
    (down, across), p = config.grid, config.patch
    return torch.randn(1, channels, config.frames, down * p, across * p)


def agree(got: torch.Tensor, want: torch.Tensor) -> None:
    assert relative_error(got, want) < 1e-5
    assert worst_error(got, want) < 1e-5


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"frames": 3},
        {"frames": 3, "latent_channels": 16},  # Wan2.1's latents
        {"latent_channels": 48, "grid": (2, 5)},  # Wan2.2 TI2V's
        {"frames": 2, "heads": 4, "head_dim": 24, "layers": 5},
    ],
)
def test_text_to_video(changes: dict[str, Any]) -> None:
    config = wan_tiny(**changes)
    wan = public_wan(config)
    latent = noise(config, config.latent_channels)
    text = torch.randn(1, config.text_tokens, TEXT_FEATURES)
    model = our_model(config, official(wan))
    with torch.inference_mode():
        want = wan(latent, torch.tensor([TIMESTEP]), text, return_dict=False)[0][0]
        model.set_text(text[0])
        model.set_step(model.modulation_of(TIMESTEP))
        model.cache.begin()
        got = to_latent(model.forward(to_tokens(latent[0], config)), config)
    agree(got, want)


def test_image_to_video_joins_channels_and_reads_the_picture() -> None:
    """Wan2.1 I2V: mask and picture latents joined to the noise, CLIP's tokens with keys of their
    own. (The public class takes the text to be the last 512 tokens.)
    """
    config = wan_tiny(
        frames=2, joined_channels=12, image_tokens=257, image_features=20, text_tokens=512
    )
    wan = public_wan(config, image_dim=config.image_features, added_kv_proj_dim=config.inner)
    latent, joined = noise(config, config.latent_channels), noise(config, config.joined_channels)
    text = torch.randn(1, 512, TEXT_FEATURES)
    picture = torch.randn(1, config.image_tokens, config.image_features)
    model = our_model(config, official(wan))
    both = torch.cat((latent, joined), 1)
    with torch.inference_mode():
        want = wan(both, torch.tensor([TIMESTEP]), text, picture, return_dict=False)[0][0]
        model.set_text(text[0])
        model.context.set_image(picture[0])
        model.set_step(model.modulation_of(TIMESTEP))
        model.cache.begin()
        tokens = torch.cat([to_tokens(x[0], config) for x in (latent, joined)], 1)
        got = to_latent(model.forward(tokens), config)
    agree(got, want)


def test_a_swapped_name_is_seen() -> None:
    """The map's trap: the affine norm is the third in one naming and the second in the other. A
    tensor of the right shape under a wrong name must show in the numbers.
    """
    config = wan_tiny()
    wan = public_wan(config)
    tensors = official(wan)
    model = our_model(config, tensors)
    swapped = dict(tensors)
    for leaf in ("weight", "bias"):
        first, second = (f"blocks.0.{part}.{leaf}" for part in ("self_attn.q", "cross_attn.q"))
        swapped[first], swapped[second] = tensors[second], tensors[first]
    results = []
    for kept in (model, our_model(config, swapped)):
        with torch.inference_mode():
            kept.set_text(torch.ones(config.text_tokens, TEXT_FEATURES))
            kept.set_step(kept.modulation_of(TIMESTEP))
            kept.cache.begin()
            source = torch.Generator().manual_seed(1)
            tokens = torch.randn(config.tokens, config.input_channels, generator=source)
            results.append(kept.forward(tokens).clone())
    assert relative_error(results[1], results[0]) > 1e-3
