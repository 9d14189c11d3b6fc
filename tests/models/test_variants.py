"""Every variant as a whole denoiser: random weights, FP8 near fp32, reset, its own inputs heard."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.models.causal_dit import Way
from engine.models.conditioning import SyntheticConditioning
from engine.models.denoiser import Denoiser
from engine.models.dit_config import DitConfig, Speech, preset, scheduled, shard
from engine.models.wan_keys import config_of, wan_keys
from tests.models.oracles import CPU, PLAIN, relative_error, wan_tiny

SPEECH = Speech((0, 1), tokens=2, features=16, states=3)
VARIANTS: dict[str, DitConfig] = {
    "text": scheduled(wan_tiny(sink_frames=1), "self-forcing"),
    "eight frames a chunk": scheduled(wan_tiny(latent_channels=48, sink_frames=1), "longlive-2"),
    "picture joined": wan_tiny(
        joined_channels=12, image_tokens=9, image_features=20, sink_frames=1, ring_chunks=2
    ),
    "sound": scheduled(wan_tiny(speech=SPEECH, grid=(5, 4), latent_channels=16), "live-avatar"),
}


def denoiser_of(config: DitConfig, way: Way) -> Denoiser:
    given = SyntheticConditioning(config)
    weights = given.weights(shard(config), CPU, torch.float32, way.fp8, lambda done, what: None)
    made = Denoiser(config, shard(config), weights, way, CPU, torch.float32)
    source = torch.Generator().manual_seed(4)
    cells, patch = config.grid[0] * config.grid[1], config.patch**2

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=source)

    joined = config.joined_channels * patch
    made.prefill(
        normal(config.text_tokens, config.text_features), normal(cells, config.token_channels),
        joined=(normal(cells, joined), normal(config.tokens, joined)) if joined else None,
        image=normal(config.image_tokens, config.image_features) if joined else None,
    )  # fmt: skip
    if way.fp8 and way.fused_quantise:
        made.calibrate()
    return made


def sounds(made: Denoiser, count: int) -> list[Tensor]:
    source = torch.Generator().manual_seed(6)
    return [torch.randn(made.silence().shape, generator=source) for _ in range(count)]


def chunks(made: Denoiser, count: int = 3) -> Tensor:
    return torch.stack([made.chunk(sound).clone() for sound in sounds(made, count)])


@pytest.mark.parametrize("name", VARIANTS)
def test_fp8_stays_near_full_precision(name: str) -> None:
    config = VARIANTS[name]
    want = chunks(denoiser_of(config, PLAIN))
    assert relative_error(chunks(denoiser_of(config, Way(fp8=False))), want) < 1e-4
    assert relative_error(chunks(denoiser_of(config, Way())), want) < 0.1
    for cache in ("shift", "rerope"):
        got = chunks(denoiser_of(config, replace(PLAIN, cache=cache)))
        assert relative_error(got, want) < 1e-4


@pytest.mark.parametrize("name", VARIANTS)
def test_reset_repeats_and_an_interrupted_chunk_leaves_no_trace(name: str) -> None:
    made = denoiser_of(VARIANTS[name], PLAIN)
    first = chunks(made)
    made.reset()
    with torch.inference_mode():
        made.cache.begin()
        made.hear(sounds(made, 2)[1])
        made.forward(0)
    made.rollback()
    assert torch.equal(chunks(made), first)


def test_sound_is_heard_and_the_picture_is_seen() -> None:
    config = VARIANTS["sound"]
    made = denoiser_of(config, PLAIN)
    first = chunks(made)
    made.reset()
    silent = torch.stack([made.chunk(made.silence()).clone() for _ in range(3)])
    assert relative_error(silent, first) > 1e-3
    joined = VARIANTS["picture joined"]
    seen = denoiser_of(joined, PLAIN)
    before = chunks(seen)
    seen.model.context.set_image(torch.zeros(joined.image_tokens, joined.image_features))
    seen.reset()
    assert relative_error(chunks(seen), before) > 1e-3


@pytest.mark.parametrize("name", ["wan-1.3b", "wan-5b", "wan-14b", "s2v-14b"])
def test_geometry_is_read_back_from_the_shapes(name: str) -> None:
    config = preset(name)
    shapes = {key: spec.shape for key, spec in wan_keys(config).items()}
    assert config_of(shapes) == config
    picture = replace(config, joined_channels=20, image_tokens=257)
    shapes = {key: spec.shape for key, spec in wan_keys(picture).items()}
    assert config_of(shapes) == picture
