"""Sound injection and condition tokens against a plain reading of the published definition.

No package holds Wan2.2-S2V, so there is no oracle. What is proven: our streaming implementation
(cache, sink, fused order of operations, sound tokens chunk by chunk, weights through the key map)
gives the numbers of `s2v_reading.Reading`, which was written from the published source on its own,
shares no code with the engine and makes all chunks in one forward; and the published checkpoint has
as many tensors as the key map (1,260). What is not proven: that the reading itself is right where a
passage can be read in two ways; and nothing can be said of the original's bidirectional clips,
where condition tokens also see the noisy ones: the causal rule here is LiveAvatar's. LiveAvatar's
one cache for each denoise step is not made: our keys are of one level (see schedules.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.models.audio_tokens import AudioTokens
from engine.models.causal_dit import CausalDit
from engine.models.dit_config import DitConfig, Speech, preset
from engine.models.latents import to_latent, to_tokens
from engine.models.s2v import condition_tokens
from engine.models.synthetic_source import SyntheticSource
from engine.models.wan_keys import wan_keys
from tests.models.oracles import CPU, our_model, relative_error, wan_tiny, worst_error
from tests.models.s2v_reading import Clip, Reading

CHUNKS = 5
SPEECH = Speech((0, 2), tokens=2, features=16, states=3, pose_channels=6)


def config_of(**changes: Any) -> DitConfig:
    base = wan_tiny(
        speech=SPEECH, layers=4, frames=2, ring_chunks=2, sink_reach=3, grid=(5, 4), text_tokens=6,
        latent_channels=16,
    )  # fmt: skip
    return replace(base, pixel_frames=4 * base.frames, **changes)


def tensors_of(config: DitConfig) -> dict[str, Tensor]:
    """Random, and no norm or table at the value it is born with."""
    source = SyntheticSource(wan_keys(config), CPU, torch.float32, seed=3)
    return {name: source.tensor(name) for name in wan_keys(config)}


def clip_of(config: DitConfig, pose: bool) -> Clip:
    source = torch.Generator().manual_seed(9)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=source)

    assert config.speech is not None
    channels, frames = config.latent_channels, CHUNKS * config.frames
    size = config.grid[0] * 2, config.grid[1] * 2
    return Clip(
        latent=normal(channels, frames, *size), picture=normal(channels, 1, *size),
        past=normal(channels, 19, *size), text=normal(config.text_tokens, config.text_features),
        sound=normal(config.speech.states, config.speech.features, 4 * frames),
        timesteps=[900.0, 730.0, 550.0, 410.0, 120.0], frames=config.frames,
        window=config.ring_chunks, reach=config.sink_reach,
        pose=normal(config.speech.pose_channels, frames, *size) if pose else None,
    )  # fmt: skip


def streamed(model: CausalDit, config: DitConfig, clip: Clip) -> Tensor:
    assert config.speech is not None and model.sound is not None
    assert model.weights.speech is not None
    ear, cache, n = (
        AudioTokens(config.speech, model.weights.speech.encoder),
        model.cache,
        clip.frames,
    )
    model.set_text(clip.text)
    cache.begin_sink()
    model.set_step(model.modulation_of(0.0))
    picture = to_tokens(clip.picture, config)
    model.condition(condition_tokens(config, model.weights, picture, clip.past))
    cache.commit()
    made = []
    for i, timestep in enumerate(clip.timesteps):
        part = slice(i * n, (i + 1) * n)
        model.set_step(model.modulation_of(timestep))
        heard = clip.sound[..., 4 * n * i : 4 * n * (i + 1)].transpose(1, 2)
        model.sound.hear(*ear.tokens(heard))
        if clip.pose is not None:
            model.sound.set_pose(to_tokens(clip.pose[:, part], config))
        cache.begin()
        made.append(to_latent(model.forward(to_tokens(clip.latent[:, part], config)), config))
        cache.commit()
    return torch.cat(made, 1)


def reading_of(config: DitConfig, tensors: dict[str, Tensor]) -> Reading:
    assert config.speech is not None
    speech = config.speech
    return Reading(tensors, config.heads, config.layers, speech.layers, speech.sound_restarts)


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("pose", [True, False])
def test_streaming_equals_the_plain_reading(restarts: bool, pose: bool) -> None:
    """Five chunks in a window of two, the past following from the third on."""
    config = config_of()
    config = replace(config, speech=replace(SPEECH, sound_restarts=restarts))
    tensors, clip = tensors_of(config), clip_of(config, pose)
    with torch.inference_mode():
        want = reading_of(config, tensors).velocities(clip)
        got = streamed(our_model(config, tensors), config, clip)
    assert relative_error(got, want) < 1e-5
    assert worst_error(got, want) < 2e-5


def test_every_input_moves_the_result() -> None:
    """A comparison in which something is ignored on both sides would be empty."""
    config = config_of()
    tensors, clip = tensors_of(config), clip_of(config, pose=True)
    assert clip.pose is not None
    with torch.inference_mode():
        plain = reading_of(config, tensors).velocities(clip)
        for changed in (
            replace(clip, picture=-clip.picture), replace(clip, past=-clip.past),
            replace(clip, sound=clip.sound.flip(-1)), replace(clip, pose=-clip.pose),
            replace(clip, text=-clip.text), replace(clip, reach=10_000), replace(clip, window=3),
        ):  # fmt: skip
            other = reading_of(config, tensors).velocities(changed)
            assert relative_error(other, plain) > 1e-4


def test_sound_tokens_do_not_depend_on_where_chunks_are_cut() -> None:
    """When the past is what was heard (not LiveAvatar's way)."""
    config = config_of()
    model = our_model(config, tensors_of(config))
    assert model.weights.speech is not None
    speech = replace(SPEECH, sound_restarts=False)
    sound = torch.randn(speech.states, 24, speech.features)
    whole = AudioTokens(speech, model.weights.speech.encoder).tokens(sound)
    ear = AudioTokens(speech, model.weights.speech.encoder)
    parts = [ear.tokens(part) for part in sound.split(4, 1)]
    for kind in (0, 1):
        cut = torch.cat([part[kind] for part in parts])
        torch.testing.assert_close(cut, whole[kind], rtol=1e-5, atol=1e-6)


def test_sound_norm_is_the_library_s() -> None:
    """Upstream takes it from diffusers."""
    normalization = pytest.importorskip("diffusers.models.normalization")
    torch.manual_seed(1)
    public = normalization.AdaLayerNorm(embedding_dim=8, output_dim=16, chunk_dim=1)
    x, summary = torch.randn(1, 5, 8), torch.randn(1, 8)
    shift, scale = public.linear(torch.nn.functional.silu(summary)).chunk(2, 1)
    ours = torch.nn.functional.layer_norm(x, (8,), eps=1e-5) * (1 + scale) + shift
    torch.testing.assert_close(ours, public(x, temb=summary))


def test_the_published_checkpoint_has_as_many_tensors() -> None:
    """1,260 are counted in Wan2.2-S2V-14B (hao-ai-lab/FastVideo, pull request 1683)."""
    assert len(wan_keys(preset("s2v-14b"))) == 1260
