"""The Transformer: against a public implementation, across ranks, and its fast ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.errors import EngineError
from engine.fp8 import Linear
from engine.models.causal_dit import CausalDit, Way
from engine.models.denoiser import Denoiser, build_cache
from engine.models.dit_config import DitConfig, preset, shard
from engine.models.dit_weights import BlockWeights, DitWeights, synthetic_weights
from engine.models.schedules import even
from engine.sampler import FewStepSampler

CPU = torch.device("cpu")
PLAIN = Way(fp8=False, fused_quantise=False, fused_elementwise=False)


def inputs(config: DitConfig) -> tuple[Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(3)
    text = torch.randn(config.text_tokens, config.width, generator=source)
    reference = torch.randn(config.sink_tokens, config.token_channels, generator=source)
    audio = torch.randn(12, config.audio_tokens, config.audio_features, generator=source)
    return text, reference, audio


def latents(way: Way, weights: DitWeights | None = None, config: DitConfig | None = None) -> Tensor:
    config = config or preset("tiny")
    weights = weights or synthetic_weights(config, shard(config), CPU, torch.float32, way.fp8)
    denoiser = Denoiser(config, shard(config), weights, way, CPU, torch.float32)
    text, reference, audio = inputs(config)
    denoiser.prefill(text, reference)
    if way.fp8 and way.fused_quantise:
        denoiser.calibrate()
    return torch.stack([denoiser.chunk(a).clone() for a in audio])


def linear(layer: torch.nn.Linear) -> Linear:
    return Linear(layer.weight.data, layer.bias.data)


def weights_of(wan: torch.nn.Module, config: DitConfig) -> DitWeights:
    """A diffusers WanTransformer3DModel's parameters under our names."""
    joined = lambda *ls: Linear(  # noqa: E731
        torch.cat([m.weight.data for m in ls]), torch.cat([m.bias.data for m in ls])
    )
    blocks = [
        BlockWeights(
            qkv=joined(b.attn1.to_q, b.attn1.to_k, b.attn1.to_v), o=linear(b.attn1.to_out[0]),
            q_norm=b.attn1.norm_q.weight.data, k_norm=b.attn1.norm_k.weight.data,
            cross_q=linear(b.attn2.to_q), cross_o=linear(b.attn2.to_out[0]),
            cross_q_norm=b.attn2.norm_q.weight.data,
            cross_norm_scale=b.norm2.weight.data - 1, cross_norm_shift=b.norm2.bias.data,
            ff1=linear(b.ffn.net[0].proj), ff2=linear(b.ffn.net[2]),
            modulation=b.scale_shift_table.data[0],
        )
        for b in wan.blocks
    ]  # fmt: skip
    time, width = wan.condition_embedder, config.width
    head = wan.proj_out.weight.data.view(config.patch, config.patch, -1, width)
    head_bias = wan.proj_out.bias.data.view(config.patch, config.patch, -1)
    return DitWeights(
        blocks=blocks,
        patch_in=Linear(wan.patch_embedding.weight.data.flatten(1), wan.patch_embedding.bias.data),
        text_in=Linear(torch.eye(width)),
        audio_in=Linear(torch.zeros(width, config.audio_features)),
        time_1=linear(time.time_embedder.linear_1), time_2=linear(time.time_embedder.linear_2),
        time_out=linear(time.time_proj),
        cross_kv=joined(*(m for b in wan.blocks for m in (b.attn2.to_k, b.attn2.to_v))),
        cross_k_norm=torch.stack([b.attn2.norm_k.weight.data for b in wan.blocks]),
        head_modulation=wan.scale_shift_table.data[0],
        head=Linear(head.permute(2, 0, 1, 3).flatten(0, 2), head_bias.permute(2, 0, 1).flatten()),
    )  # fmt: skip


@pytest.mark.parametrize("frames", [1, 3])
def test_parity_with_the_public_wan_transformer(frames: int) -> None:
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(5)
    config = preset("tiny", frames=frames, sink_frames=0, audio_tokens=0)
    wan = diffusers.WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=config.heads, attention_head_dim=config.head_dim,
        in_channels=config.latent_channels, out_channels=config.latent_channels, text_dim=24,
        freq_dim=256, ffn_dim=config.hidden, num_layers=config.layers, cross_attn_norm=True,
        qk_norm="rms_norm_across_heads", rope_max_seq_len=64,
    ).eval()  # fmt: skip
    for parameter in wan.parameters():  # norms and tables too: ones and zeros hide mistakes
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    (down, across), p = config.grid, config.patch
    latent = torch.randn(1, config.latent_channels, frames, down * p, across * p)
    text, timestep = torch.randn(1, config.text_tokens, 24), torch.tensor([640.0])
    with torch.no_grad():
        want = wan(latent, timestep, text, return_dict=False)[0]
        projected = wan.condition_embedder.text_embedder(text)[0]
    cache = build_cache(config, shard(config), PLAIN, CPU, torch.float32)
    model = CausalDit(
        config, shard(config), weights_of(wan, config), cache, PLAIN, CPU, torch.float32
    )
    with torch.inference_mode():
        model.set_text(projected)
        model.set_step(model.modulation_of(640.0))
        cache.begin()
        tokens = latent[0].view(config.latent_channels, frames, down, p, across, p)
        tokens = tokens.permute(1, 2, 4, 0, 3, 5).reshape(config.tokens, -1)
        got = model.forward(tokens).view(frames, down, across, config.latent_channels, p, p)
    got = got.permute(3, 0, 1, 4, 2, 5).reshape(want[0].shape)
    torch.testing.assert_close(got, want[0], rtol=1e-4, atol=2e-5)


def test_caches_give_the_same_latents_over_three_wraps() -> None:
    ring = latents(PLAIN)
    for cache in ("shift", "rerope"):
        torch.testing.assert_close(latents(replace(PLAIN, cache=cache)), ring, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("way", "limit"),
    [
        (Way(fp8=False), 1e-5),
        (Way(), 0.06),
        (Way(scale="row"), 0.06),
        (Way(fused_elementwise=False), 0.06),
        (Way(fused_quantise=False, fused_elementwise=False), 0.06),
        (Way(attention="ring"), 0.06),
        (Way(attention="ring8"), 0.07),
    ],
)
def test_fast_ways_stay_near_full_precision(way: Way, limit: float) -> None:
    """e4m3 has 3 bits of mantissa: 1.8 % a value, 3 % after two layers and four steps."""
    want, got = latents(PLAIN), latents(way)
    error = ((got - want).norm() / want.norm()).item()
    assert error < limit
    assert way.fp8 == (error > 1e-3)  # fp8 that costs nothing was not used


def test_ranks_hold_parts_that_sum_to_the_whole() -> None:
    """Column-cut and row-cut layers of two ranks (3 heads: padded) add up to one rank's."""
    config = preset("tiny", hidden=200)
    whole = synthetic_weights(config, shard(config), CPU, torch.float32)
    parts = [synthetic_weights(config, shard(config, r, 2), CPU, torch.float32) for r in range(2)]
    x = torch.randn(7, config.width)

    def feed_forward(weights: DitWeights) -> Tensor:
        block = weights.blocks[1]
        hidden = torch.addmm(block.ff1.bias, x, block.ff1.weight.t()).relu()
        bias = 0 if block.ff2.bias is None else block.ff2.bias
        return hidden @ block.ff2.weight.t() + bias

    def values(weights: DitWeights) -> Tensor:
        block, third = weights.blocks[0], weights.blocks[0].qkv.weight.shape[0] // 3
        v = torch.addmm(block.qkv.bias[2 * third :], x, block.qkv.weight[2 * third :].t())
        return v @ block.o.weight.t() + (0 if block.o.bias is None else block.o.bias)

    for layer in (feed_forward, values):
        together = layer(parts[0]) + layer(parts[1])
        torch.testing.assert_close(together, layer(whole), rtol=1e-4, atol=1e-5)


def test_reset_gives_the_same_latents_bit_for_bit() -> None:
    config = preset("tiny")
    weights = synthetic_weights(config, shard(config), CPU, torch.float32)
    denoiser = Denoiser(config, shard(config), weights, Way(fp8=False), CPU, torch.float32)
    text, reference, audio = inputs(config)
    denoiser.prefill(text, reference)
    first = [denoiser.chunk(a).clone() for a in audio]
    denoiser.reset()
    assert all(torch.equal(a, denoiser.chunk(b)) for a, b in zip(first, audio, strict=True))


def test_clean_pass_stores_the_keys_of_the_clean_chunk() -> None:
    config = preset("tiny", clean_pass=True)
    with_pass = latents(PLAIN, config=config)
    without = latents(PLAIN)
    torch.testing.assert_close(with_pass[0], without[0])  # it changes what the next chunk sees
    assert not torch.allclose(with_pass[1], without[1])


def test_sound_is_heard() -> None:
    config = preset("tiny")
    text, reference, audio = inputs(config)
    heard = []
    for sound in (audio[0], audio[1]):
        weights = synthetic_weights(config, shard(config), CPU, torch.float32)
        denoiser = Denoiser(config, shard(config), weights, PLAIN, CPU, torch.float32)
        denoiser.prefill(text, reference)
        heard.append(denoiser.chunk(sound).clone())
    assert not torch.allclose(heard[0], heard[1], atol=1e-3)


def test_noise_levels_are_shifted_towards_noise() -> None:
    assert even(4, 1.0) == (1.0, 0.75, 0.5, 0.25)
    levels = even(4, 5.0)
    assert levels[0] == 1.0 and levels[2] == pytest.approx(5 * 0.5 / 3)


@pytest.mark.parametrize("solver", ["renoise", "euler", "unipc"])
def test_sampler_follows_a_known_velocity_to_its_end(solver: str) -> None:
    """A model that always points at the same picture must arrive there, whatever the noise."""
    latent, goal = torch.zeros(6, 4), torch.randn(6, 4)
    sampler = FewStepSampler(latent, even(4, 5.0), solver, False, seed=1)
    clean = sampler.run(lambda step: (sampler.latent - goal) / sampler.levels[step])
    torch.testing.assert_close(clean, goal, rtol=1e-4, atol=1e-5)


def test_presets_are_what_they_say() -> None:
    big = preset("avatar-57b")
    assert 56e9 < big.parameters < 58e9 and big.tokens == 748
    assert 4.5e9 < preset("avatar-5b").parameters < 5.2e9
    assert shard(big, 2, 3).heads == 20 and shard(preset("avatar-5b"), 0, 3).hidden == 4784
    with pytest.raises(EngineError, match="rank 3 of 3"):
        shard(big, 3, 3)
    with pytest.raises(EngineError, match="avatar-58b"):
        preset("avatar-58b")
