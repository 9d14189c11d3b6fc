"""The video models behind the contracts, the memory plan, and their benchmarks' plumbing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine import bench_video
from engine.errors import EngineError
from engine.memoryplan import plan
from engine.models import MODELS
from engine.models.audio_mel import AudioMel
from engine.models.base import Chunk
from engine.models.causal_dit import Way
from engine.models.dit_config import preset, shard
from engine.models.latents import to_latent, to_tokens
from engine.models.video import (
    VideoDecoder,
    VideoGenerator,
    preset_decoder,
    preset_generator,
)
from kernels import ops


@pytest.fixture(scope="module")
def pair() -> tuple[VideoGenerator, VideoDecoder]:
    generator, decoder = preset_generator("tiny", synthetic=1), preset_decoder("tiny")
    pixels = np.random.default_rng(1).integers(0, 255, (1088, 704, 4), np.uint8)
    character = SimpleNamespace(canvas=SimpleNamespace(pixels=pixels))
    for part in (generator, decoder):
        part.prepare(character, {}, lambda done, what: None)
    return generator, decoder


def chunk(index: int) -> Chunk:
    pcm = np.random.default_rng(index).standard_normal(8000).astype(np.float32)
    return Chunk(0, index, 4 * index, 4, pcm)


def test_sound_becomes_pictures_and_reset_repeats_them(
    pair: tuple[VideoGenerator, VideoDecoder],
) -> None:
    generator, decoder = pair
    runs = []
    for _ in range(2):
        generator.reset()
        decoder.reset()
        shown = []
        for i in range(3):
            out = [np.zeros((1088, 704, 4), np.uint8) for _ in range(4)]
            decoder.decode(generator.step(chunk(i)), out)
            shown += out
        runs.append(np.stack(shown))
    assert np.array_equal(*runs)
    assert (runs[0][..., 3] == 255).all() and runs[0][..., :3].std() > 10
    assert not np.array_equal(runs[0][0], runs[0][4])


def test_latents_outlive_the_next_steps(pair: tuple[VideoGenerator, VideoDecoder]) -> None:
    generator, _ = pair
    generator.reset()
    first = generator.step(chunk(0))
    kept = first.values.clone()
    generator.step(chunk(1))
    generator.step(chunk(2))
    assert torch.equal(first.values, kept)
    assert set(first.stage_ms) == {"encode", "denoise"}


def test_telemetry_says_which_kernels_run(pair: tuple[VideoGenerator, VideoDecoder]) -> None:
    assert pair[0].synthetic
    if pair[0].device.type == "cpu":
        assert f"0 of {len(ops.FAST)} kernels fast, truth: CPU" in pair[0].kernel_path


def test_an_interruption_leaves_the_pose_and_goes_on(
    pair: tuple[VideoGenerator, VideoDecoder],
) -> None:
    """Half a chunk denoised, then cut: the window is as before, and the next chunk is made."""
    generator, _ = pair
    generator.reset()
    for i in range(5):
        generator.step(chunk(i))
    cache = generator.denoiser.cache
    committed = cache.committed
    with torch.inference_mode():
        cache.begin()
        generator.denoiser.forward(0)
    generator.interrupt()
    assert cache.committed == committed
    assert generator.step(chunk(5)).values.isfinite().all()
    assert cache.committed == committed + 1


def test_without_weights_it_says_what_to_do() -> None:
    with pytest.raises(EngineError, match="--synthetic"):
        preset_generator("avatar-5b")


def test_models_are_listed_with_both_halves() -> None:
    for name in ("avatar-57b", "avatar-5b", "tiny"):
        assert len(MODELS[name]) == 2


def test_tokens_and_latent_are_inverses() -> None:
    config = preset("avatar-5b")
    tokens = torch.randn(config.tokens, config.token_channels)
    latent = to_latent(tokens, config)
    assert latent.shape == (48, 1, 68, 44)
    assert torch.equal(to_tokens(latent, config), tokens)


def test_features_do_not_depend_on_where_chunks_are_cut() -> None:
    pcm = np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    whole, halves = AudioMel(32, 80), AudioMel(16, 80)
    joined = np.concatenate([halves.features(pcm[:8000]), halves.features(pcm[8000:])])
    np.testing.assert_allclose(whole.features(pcm), joined, atol=1e-5)


def test_a_tone_lands_in_its_band() -> None:
    mel = AudioMel(16, 80)
    tone = np.sin(2 * np.pi * 1000 * np.arange(8000) / 48_000).astype(np.float32)
    loudest = mel.features(tone)[-1].argmax()
    assert 26 <= loudest <= 29  # 1 kHz is 1000 mel of 2840: band 27.5 of 80


def test_plan_of_the_large_model_and_its_refusal() -> None:
    config = preset("avatar-57b")
    needed = plan(config, shard(config, 0, 3), Way())
    assert 19e9 < needed.parts["weights"] < 23e9
    assert "on each of 3 GPUs" in needed.sentence()
    needed.require(80 << 30)
    with pytest.raises(EngineError, match=r"10\.0 GiB are free") as refusal:
        needed.require(10 << 30)
    assert refusal.value.code == "out_of_memory"


def test_ladder_runs_on_a_cpu_and_refuses_what_cannot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    rows = ["peers: bf16, rerope", "graph"]
    assert bench_video.main(["--model", "tiny", "--steps", "1", "--json", "--rows", *rows]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["configuration"] for row in report["rows"]] == rows
    assert all(row["step_ms"] > 0 and row["weights"] == "synthetic" for row in report["rows"])
    assert bench_video.main(["--model", "avatar-57b", "--of", "3"]) == 2
    assert bench_video.main(["--model", "tiny", "--rows", "warp drive"]) == 2
    assert "no CUDA GPU" in capsys.readouterr().err
