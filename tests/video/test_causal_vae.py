"""The streaming decoder against the public AutoencoderKLWan."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.models.causal_vae import CausalVae
from engine.models.vae_config import VaeConfig
from engine.models.vae_weights import synthetic_vae_weights, weight_shapes

CPU = torch.device("cpu")
CONFIG = VaeConfig((3, 2), latent_channels=8, base=16)


def clip(count: int) -> Tensor:
    return 1.5 * torch.randn(8, count, 3, 2, generator=torch.Generator().manual_seed(6))


def decoder() -> CausalVae:
    return CausalVae(CONFIG, synthetic_vae_weights(CONFIG, CPU, torch.float32), CPU, torch.float32)


def played(vae: CausalVae, latents: Tensor) -> Tensor:
    return torch.cat([vae.decode(latents[:, i]).clone() for i in range(latents.shape[1])])


def test_parity_with_the_library_over_a_whole_clip() -> None:
    diffusers = pytest.importorskip("diffusers")
    library = diffusers.AutoencoderKLWan(
        base_dim=16, decoder_base_dim=16, z_dim=8, dim_mult=[1, 2, 4, 4], num_res_blocks=2,
        attn_scales=[], temperal_downsample=[False, True, True], is_residual=True, in_channels=12,
        out_channels=12, patch_size=2, latents_mean=[0.0] * 8, latents_std=[1.0] * 8,
        scale_factor_temporal=4, scale_factor_spatial=16,
    ).eval()  # fmt: skip
    state = library.state_dict()
    shapes = {k: tuple(v.shape) for k, v in state.items() if k in weight_shapes(CONFIG)}
    assert shapes == weight_shapes(CONFIG)
    library.load_state_dict(state | synthetic_vae_weights(CONFIG, CPU, torch.float32))
    latents = clip(8)
    with torch.no_grad():
        want = library.decode(latents[None]).sample[0].permute(1, 2, 3, 0)
    want = ((want + 1) * 127.5).round().flip(-1)
    got = played(decoder(), latents)
    assert got.shape == (29, 48, 32, 4)  # 1 picture of the first latent, 4 of each later
    assert (got[..., :3] - want).abs().max() <= 1  # rounding of the last bit
    assert (got[..., 3] == 255).all()
    assert want.std() > 30  # a grey clip would prove nothing


def test_reset_begins_a_new_clip() -> None:
    vae, latents = decoder(), clip(5)
    first = played(vae, latents)
    vae.reset()
    assert torch.equal(played(vae, latents), first)


def test_the_past_is_seen() -> None:
    vae, latents = decoder(), clip(5)
    whole = played(vae, latents)
    changed = latents.clone()
    changed[:, 1] = 0
    other = played(decoder(), changed)
    assert torch.equal(other[:1], whole[:1])  # causal
    assert not torch.equal(other[-4:], whole[-4:])  # and with memory
