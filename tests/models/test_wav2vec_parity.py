"""Streaming wav2vec2 against transformers' whole-clip model, tiny random configurations, fp32.

Proven: the grid, the convolutions, the window, the running norm, names of files. Not proven: how
far a *trained* model's features depend on what lies beyond the window; the margin measured here is
that of random weights, whose attention is nearly uniform and therefore looks far.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.models.audio_grid import place
from engine.models.audio_level import RunningLevel
from engine.models.audio_resample import Downsampler
from engine.models.wav2vec import AudioFeatures
from engine.models.wav2vec_files import find_wav2vec, load_wav2vec

transformers = pytest.importorskip("transformers")
FPS = Fraction(24)
SECONDS = 6
CHUNKS = 6 * SECONDS - 2


def config(norm: str = "layer") -> Any:
    return transformers.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
        conv_dim=(16,) * 7, feat_extract_norm=norm, do_stable_layer_norm=norm == "layer",
        num_conv_pos_embedding_groups=4, conv_bias=norm == "layer",
    )  # fmt: skip


def model(norm: str = "layer") -> Any:
    torch.manual_seed(4)
    return transformers.Wav2Vec2Model(config(norm)).eval()


def speech() -> np.ndarray:
    """Six seconds of noise whose loudness and colour change, 48 kHz."""
    source = np.random.default_rng(5)
    noise = source.standard_normal(48_000 * SECONDS).astype(np.float32)
    slow = np.repeat(source.uniform(0.02, 0.5, 12 * SECONDS), 4000).astype(np.float32)
    return noise * slow


@dataclass
class Whole:
    states: Tensor  # [layers, features, width] of the whole clip

    def frame(self, n: int) -> Tensor:
        spot = place(n, FPS)
        this, following = self.states[:, spot.index], self.states[:, spot.index + 1]
        return torch.lerp(this, following, float(spot.share))


def whole(made: Any, pcm: np.ndarray) -> Whole:
    heard = torch.from_numpy(Downsampler().push(pcm))
    with torch.inference_mode():
        told = made(heard[None], output_hidden_states=True)
    return Whole(torch.cat(told.hidden_states))


def streamed(features: AudioFeatures, pcm: np.ndarray, chunks: int = CHUNKS) -> Tensor:
    at, parts = 0, []
    for chunk in range(chunks):
        size = 8000 + (features.lookahead_samples if chunk == 0 else 0)
        parts.append(features.features(pcm[at : at + size]))
        at += size
    return torch.cat(parts, 1)


@pytest.fixture(scope="module")
def clip() -> tuple[np.ndarray, Any, Whole]:
    pcm, made = speech(), model()
    return pcm, made, whole(made, pcm)


def margin(clip: tuple[np.ndarray, Any, Whole], past: int, ahead: int) -> tuple[float, float]:
    """RMS difference over RMS spread, whole clip = truth, of the first and the last hidden state.

    Of frames in the middle, where the clip's own edges are far.
    """
    pcm, made, truth = clip
    got = streamed(AudioFeatures(made, False, past=past, ahead=ahead), pcm, 19)
    frames = range(60, 76)
    want = torch.stack([truth.frame(n) for n in frames], 1)
    spread = (want - want.mean(1, keepdim=True)).square().mean((1, 2)).sqrt()
    off = (got[:, frames] - want).square().mean((1, 2)).sqrt() / spread
    return float(off[0]), float(off[-1])


def test_parity_when_the_window_holds_all_that_the_clip_is() -> None:
    """One window = the clip so far: with everything in sight the numbers are the library's."""
    pcm, made = speech(), model()
    features = AudioFeatures(made, False, past=10_000, ahead=5)
    at = 0
    for chunk in range(6):
        size = 8000 + (features.lookahead_samples if chunk == 0 else 0)
        got = features.features(pcm[at : at + size])
        at += size
        end = place(4 * chunk + 3, FPS).last + 5
        seen = Downsampler().push(pcm)[: 320 * end + 400]
        with torch.inference_mode():
            told = made(torch.from_numpy(seen)[None], output_hidden_states=True)
        truth = Whole(torch.cat(told.hidden_states))
        want = torch.stack([truth.frame(4 * chunk + i) for i in range(4)], 1)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert got.shape == (4, 4, 32)


def test_parity_of_the_convolutions_at_every_frame_with_a_short_window() -> None:
    """Below the Transformer nothing looks further than 25 ms: equal everywhere, grid included."""
    pcm, made = speech(), model()
    kept: list[Tensor] = []
    made.feature_projection.register_forward_hook(lambda _m, _i, out: kept.append(out[0]))
    whole(made, pcm)
    truth = kept.pop()[0]
    features = AudioFeatures(made, False, past=7, ahead=2)
    at = 0
    for chunk in range(CHUNKS):
        first = features._first
        size = 8000 + (features.lookahead_samples if chunk == 0 else 0)
        features.features(pcm[at : at + size])
        at += size
        got = kept.pop()[0]
        torch.testing.assert_close(got, truth[first : first + len(got)], rtol=1e-5, atol=1e-5)
        assert first + len(got) == place(4 * chunk + 3, FPS).last + 2 + 1
    assert first > 200


def test_parity_away_from_the_edges_by_64_features_before_and_63_after(
    clip: tuple[np.ndarray, Any, Whole],
) -> None:
    """The positional convolution sees that far: given them, what the Transformer is fed
    is the clip's to rounding, and what leaves it differs by its attention to the rest of the clip.
    """
    fed, leaves = margin(clip, past=128, ahead=63)
    assert fed < 1e-5 and leaves < 0.02
    assert margin(clip, past=128, ahead=62)[0] > 1e-4


def test_parity_margin_as_a_function_of_context(clip: tuple[np.ndarray, Any, Whole]) -> None:
    """Random weights, last hidden state, in hundredths of the features' spread.

    past 10, 50, 100, 150 with 64 ahead: 29, 12, 0.4, 0.4; ahead 0, 5, 32, 64 with 150 past: 26, 26,
    17, 0.4. Nearly all of it is the positional convolution's zeros beyond the window.
    """
    by_past = [margin(clip, past, 64)[1] for past in (10, 50, 150)]
    by_ahead = [margin(clip, 150, ahead)[1] for ahead in (5, 32)] + by_past[-1:]
    told = f"past {by_past}, ahead {by_ahead}"
    assert by_past == sorted(by_past, reverse=True), told
    assert by_ahead == sorted(by_ahead, reverse=True), told
    assert by_past[-1] < 0.01 < 0.1 < by_ahead[0] < 0.5, told


def test_features_arrive_with_the_latency_that_is_told() -> None:
    """One sample less than `lookahead_samples`, and the hungriest chunk finds its window short."""
    pcm, made = speech(), model()
    features = AudioFeatures(made, False)
    assert features.lookahead_samples == 5 * 960 + 334  # 100 ms, filter and grid
    streamed(features, pcm)
    short = AudioFeatures(made, False)
    short.lookahead_samples -= 1
    with pytest.raises(AssertionError, match="short"):
        streamed(short, pcm)


def test_reset_repeats_to_the_bit() -> None:
    features = AudioFeatures(model("group"), True, past=50)
    first = streamed(features, speech(), 8)
    features.reset()
    assert torch.equal(streamed(features, speech(), 8), first)


def test_parity_of_the_running_norm_when_all_was_heard() -> None:
    """Models that norm the first convolution over the clip: at the clip's end both agree.

    Before it they do not: the past's statistics are used, not the clip's (stated, not tested away).
    """
    pcm = speech()
    seen = Downsampler().push(pcm)
    end = place(4 * CHUNKS - 1, FPS).last + 5
    clip = torch.from_numpy(seen[: 320 * end + 400])[None]
    with torch.inference_mode():
        told = model("group")(clip, output_hidden_states=True)
    truth = Whole(torch.cat(told.hidden_states))
    got = streamed(AudioFeatures(model("group"), False, past=10_000), pcm)
    last = 4 * CHUNKS - 1
    torch.testing.assert_close(got[:, last], truth.frame(last), rtol=1e-4, atol=1e-4)
    early = (got[:, 4] - truth.frame(4)).abs().max()
    assert early > 1e-3  # honest: statistics of 0.3 s are not those of 6 s


def test_parity_of_the_running_level_with_the_public_extractor() -> None:
    pcm = Downsampler().push(speech())
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=True)
    want = extractor(pcm, sampling_rate=16_000).input_values[0]
    level = RunningLevel(prior_samples=0)
    for part in np.array_split(pcm, 17):
        level.hear(part)
    np.testing.assert_allclose(level.normalised(pcm), want, atol=2e-5)


def test_silence_at_the_start_is_not_made_loud() -> None:
    hiss = 1e-4 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    level = RunningLevel()
    level.hear(hiss)
    assert np.abs(level.normalised(hiss)).std() < 0.01


def test_an_old_loudness_fades() -> None:
    level = RunningLevel()
    loud, quiet = (a * np.random.default_rng(0).standard_normal(16_000) for a in (0.5, 0.05))
    for _ in range(60):
        level.hear(loud.astype(np.float32))
    for _ in range(600):
        level.hear(quiet.astype(np.float32))
    assert 0.9 < level.normalised(quiet.astype(np.float32)).std() < 1.1


def saved(folder: Path, change: dict[str, Tensor | None], prefix: str = "wav2vec2.") -> Path:
    """As jonatasgrosman's recogniser is published: prefix, head, old names of the weight norm."""
    state = {prefix + k: v for k, v in model().state_dict().items()}
    old = "encoder.pos_conv_embed.conv."
    for leaf, name in (("weight_g", "original0"), ("weight_v", "original1")):
        moved = state.pop(f"{prefix}{old}parametrizations.weight.{name}")
        state[f"{prefix}{old}{leaf}"] = moved
    state |= {"lm_head.weight": torch.zeros(33, 32), "lm_head.bias": torch.zeros(33)}
    whole_state = {k: v for k, v in (state | change).items() if v is not None}
    folder.mkdir()
    save_file(whole_state, folder / "model.safetensors")
    (folder / "config.json").write_text(config().to_json_string())
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_normalize": True}))
    return folder


@pytest.mark.parametrize("prefix", ["wav2vec2.", ""])
def test_a_published_folder_loads_strictly(tmp_path: Path, prefix: str) -> None:
    saved(tmp_path / "wav2vec2-large", {}, prefix)
    folder = find_wav2vec(tmp_path)
    assert folder is not None
    loaded, normalise = load_wav2vec(folder, torch.device("cpu"), torch.float32)
    assert normalise
    features = AudioFeatures(loaded, normalise)
    assert (features.layers, features.width) == (4, 32)
    want = streamed(AudioFeatures(model(), normalise), speech(), 2)
    torch.testing.assert_close(streamed(features, speech(), 2), want)


def test_a_pickled_folder_loads(tmp_path: Path) -> None:
    folder = saved(tmp_path / "w", {})
    (folder / "model.safetensors").unlink()
    torch.save(model().state_dict(), folder / "pytorch_model.bin")
    load_wav2vec(folder, torch.device("cpu"), torch.float32)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"wav2vec2.encoder.layer_norm.bias": None}, "missing (encoder.layer_norm.bias)"),
        ({"wav2vec2.encoder.layer_norm.bias": torch.zeros(3)}, "[3] instead of [32]"),
        ({"wav2vec2.adapter.weight": torch.zeros(3)}, "unexpected (adapter.weight)"),
    ],
)
def test_another_shape_is_refused(
    tmp_path: Path, change: dict[str, Tensor | None], told: str
) -> None:
    with pytest.raises(EngineError) as refusal:
        load_wav2vec(saved(tmp_path / "w", change), torch.device("cpu"), torch.float32)
    assert told in str(refusal.value) and refusal.value.code == "bad_checkpoint"


def test_a_folder_without_it_says_so(tmp_path: Path) -> None:
    assert find_wav2vec(tmp_path) is None
    with pytest.raises(EngineError, match="no wav2vec2"):
        load_wav2vec(tmp_path, torch.device("cpu"), torch.float32)
