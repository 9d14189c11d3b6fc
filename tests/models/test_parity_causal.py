"""Chunks against a cache, one after the other, equal one forward over all of them with a mask.

The oracle is diffusers' SkyReelsV2Transformer3DModel, the same blocks as Wan with a block-causal
mask and a timestep a frame. It has no window: for the tests of eviction and of the sink its mask is
replaced at the door of each block by the one that the window means. What this proves: that keys
kept from earlier forwards are those of the one forward, at their positions, whatever their slot.
What it does not: a sink nearer than it is, which only a cache can show (test_ringcache.py).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.models.causal_dit import CausalDit
from engine.models.dit_config import DitConfig
from engine.models.latents import to_latent, to_tokens
from tests.models.oracles import (
    PLAIN,
    TEXT_FEATURES,
    official,
    our_model,
    relative_error,
    shaken,
    wan_tiny,
    worst_error,
)

diffusers = pytest.importorskip("diffusers")
CHUNKS = 7
FAR = 10_000  # latent frames: the sink is never turned


def public_model(config: DitConfig, frames_per_block: int) -> torch.nn.Module:
    torch.manual_seed(7)
    return shaken(
        diffusers.SkyReelsV2Transformer3DModel(
            patch_size=(1, config.patch, config.patch), num_attention_heads=config.heads,
            attention_head_dim=config.head_dim, in_channels=config.latent_channels,
            out_channels=config.latent_channels, text_dim=TEXT_FEATURES, freq_dim=256,
            ffn_dim=config.hidden, num_layers=config.layers, cross_attn_norm=True,
            rope_max_seq_len=64, num_frame_per_block=frames_per_block,
        )
    )  # fmt: skip


def set_mask(model: Any, mask: Tensor, tokens: int) -> None:
    """Replace the block-causal mask by `mask` [frames, frames] of single frames."""
    whole = mask.repeat_interleave(tokens, 0).repeat_interleave(tokens, 1)[None, None]

    def replaced(module: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*args[:4], whole)

    for block in model.blocks:
        block.register_forward_pre_hook(replaced)


def window_mask(config: DitConfig, chunks: int) -> Tensor:
    """True where a frame (down) sees a frame (across): sink, own chunk, chunks in the window."""
    sink, frames = config.sink_frames, config.frames
    chunk = torch.cat((torch.full((sink,), -1), torch.arange(chunks).repeat_interleave(frames)))
    age = chunk[:, None] - chunk[None]
    return (chunk[None] == -1) | ((chunk[:, None] >= 0) & (age >= 0) & (age < config.ring_chunks))


def timesteps_of(config: DitConfig) -> list[float]:
    """Another one each chunk; whole numbers, as the oracle's are."""
    return [float(900 - 110 * i) for i in range(CHUNKS)]


def cached(model: CausalDit, config: DitConfig, latent: Tensor, text: Tensor) -> Tensor:
    """Velocities [C, frames, H, W] of the chunks, each made against the cache of those before."""
    sink, frames, cache = config.sink_frames, config.frames, model.cache
    model.set_text(text)
    if sink:
        cache.begin_sink()
        model.set_step(model.modulation_of(0.0))
        model.forward(to_tokens(latent[:, :sink], config))
        cache.commit()
    made = []
    for i, timestep in enumerate(timesteps_of(config)):
        start = sink + i * frames
        tokens = to_tokens(latent[:, start : start + frames], config)
        model.set_step(model.modulation_of(timestep))
        cache.begin()
        model.forward(torch.randn_like(tokens))  # an earlier denoise step: it must leave no trace
        made.append(to_latent(model.forward(tokens), config))
        cache.commit()
    return torch.cat(made, 1)


def one_forward(model: torch.nn.Module, config: DitConfig, latent: Tensor, text: Tensor) -> Tensor:
    chunks = torch.tensor(timesteps_of(config)).repeat_interleave(config.frames)
    timesteps = torch.cat((torch.zeros(config.sink_frames), chunks))
    out = model(
        latent[None], timesteps[None], text[None], enable_diffusion_forcing=True, return_dict=False
    )[0][0]
    return out[:, config.sink_frames :]


def compare(config: DitConfig, own_mask: bool, cache: str = "ring") -> None:
    (down, across), p = config.grid, config.patch
    public = public_model(config, 1 if own_mask else config.frames)
    if own_mask:
        set_mask(public, window_mask(config, CHUNKS), down * across)
    frames = config.sink_frames + CHUNKS * config.frames
    source = torch.Generator().manual_seed(3)
    latent = torch.randn(config.latent_channels, frames, down * p, across * p, generator=source)
    text = torch.randn(config.text_tokens, TEXT_FEATURES, generator=source)
    way = type(PLAIN)(False, cache, False, False)
    with torch.inference_mode():
        want = one_forward(public, config, latent, text)
        got = cached(our_model(config, official(public), way), config, latent, text)
    assert relative_error(got, want) < 1e-5
    assert worst_error(got, want) < 1e-5


@pytest.mark.parametrize("frames", [2, 3])
def test_growing_window_equals_the_oracle_as_it_is(frames: int) -> None:
    compare(wan_tiny(frames=frames, ring_chunks=CHUNKS), own_mask=False)


@pytest.mark.parametrize("sink", [0, 1, 3])
@pytest.mark.parametrize("cache", ["ring", "shift", "rerope"])
def test_rolling_window_and_sink_equal_one_masked_forward(sink: int, cache: str) -> None:
    """Two chunks of window, seven chunks: it wraps three times, and begins partly filled."""
    config = wan_tiny(frames=2, ring_chunks=2, sink_frames=sink, sink_reach=FAR)
    compare(config, own_mask=True, cache=cache)


def test_one_frame_a_chunk() -> None:
    """The product's shape: 4 pictures a chunk, the picture of the character as the sink."""
    compare(wan_tiny(frames=1, ring_chunks=3, sink_frames=1, sink_reach=FAR), own_mask=True)


@pytest.mark.parametrize("start", [1_022, 7_200, 21_600, 400_000])
def test_a_session_never_grows_too_old_for_its_positions(start: int) -> None:
    """The whole model, beyond the 1,024 rows of the public tables, 20 minutes, an hour, 18 hours of
    6 latent frames a second: the numbers are those of a young session.
    """
    config = wan_tiny(frames=2, ring_chunks=2)
    public = public_model(config, config.frames)
    (down, across), p = config.grid, config.patch
    source = torch.Generator().manual_seed(3)
    frames = CHUNKS * config.frames
    latent = torch.randn(config.latent_channels, frames, down * p, across * p, generator=source)
    text = torch.randn(config.text_tokens, TEXT_FEATURES, generator=source)
    young, old = (our_model(config, official(public)) for _ in range(2))
    move = old.cache.phases.move  # type: ignore[attr-defined]
    old.cache.phases.move = lambda at: move(at + start)  # type: ignore[attr-defined]
    with torch.inference_mode():
        want, got = (cached(model, config, latent, text) for model in (young, old))
    assert relative_error(got, want) < 1e-5


def test_the_oracle_sees_a_window_too_long() -> None:
    """The comparison can fail: one chunk more in the mask is another result."""
    config = wan_tiny(frames=2, ring_chunks=2, sink_frames=1, sink_reach=FAR)
    with pytest.raises(AssertionError):
        longer = window_mask(wan_tiny(frames=2, ring_chunks=3, sink_frames=1), CHUNKS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.models.test_parity_causal.window_mask", lambda *_: longer)
            compare(config, own_mask=True)
