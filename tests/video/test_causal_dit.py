"""The Transformer's caches, ranks and fast ways; tests/models holds it against public code."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.errors import EngineError
from engine.models.causal_dit import Way
from engine.models.denoiser import Denoiser
from engine.models.dit_config import DitConfig, preset, shard
from engine.models.dit_weights import DitWeights, synthetic_weights
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
