"""From a folder of a public model's layout to an MP4: the whole command, on a CPU, tiny."""

from __future__ import annotations

import io
import json
import os
import shutil
import wave
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from engine import cli
from engine.errors import EngineError
from engine.folders import Folders
from engine.model_factory import ModelFactory
from engine.models.checkpoint_video import CheckpointVideo
from engine.models.dit_config import PRESETS, S2V_LAYERS, Speech, shard
from engine.models.dit_weights import DitWeights
from engine.models.loaded import LoadedWeights
from engine.models.vae_config import wan_2_1
from engine.protocol.character import CharacterSpec
from tests.models import checkpoint_layouts as layouts
from tests.models.test_text_encoder_parity import WIDTH as TEXT_WIDTH
from tests.models.test_text_encoder_parity import original_folder
from tests.models.test_vae_files import original_file
from tests.models.test_wav2vec_parity import saved

pytest.importorskip("transformers")
SAMPLES = 40_000  # 20 frames: two chunks of 18, the last of them cut


def complete_model(folder: Path) -> Path:
    """Everything that a Self-Forcing user has: model, decoder, text encoder; and a recipe of it."""
    config = replace(layouts.small("wan-1.3b"), text_features=TEXT_WIDTH)
    model = layouts.self_forcing(folder / "wan", layouts.random_state(config))
    original_folder(model)
    original_file(wan_2_1((12, 8), 16), model).rename(model / "Wan2.1_VAE.pth")
    small = folder / "small"
    small.mkdir()
    (small / "avatar-model.toml").write_text('base = "../wan"\npicture = "32x48"\n')
    (small / "README.md").write_text("---\nlicense: cc-by-nc-sa-4.0\n---\n")
    return small


@pytest.fixture(scope="module")
def wan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_model(tmp_path_factory.mktemp("models"))


@dataclass(frozen=True)
class Ended:
    """A command that ran in this process: what it would have left behind as one of its own."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """`avatar-engine render --model MODEL` of a random picture and voice into tmp_path."""
    source = np.random.default_rng(1)
    with wave.open(str(tmp_path / "voice.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(source.integers(-3000, 3000, SAMPLES).astype("<i2").tobytes())
    Image.fromarray(source.integers(0, 255, (300, 200, 3), np.uint8)).save(tmp_path / "face.png")

    def run(model: Path, *more: str) -> Ended:
        command = [
            "render", "--model", str(model), "--image", str(tmp_path / "face.png"),
            "--audio", str(tmp_path / "voice.wav"), "--out", str(tmp_path / "out.mp4"), "--json",
            "--cache-dir", str(tmp_path / "cache"), *more,
        ]  # fmt: skip
        status = cli.run(command, {})
        told = capsys.readouterr()
        return Ended(status, told.out, told.err)

    return run


def test_a_folder_becomes_a_film(wan: Path, tmp_path: Path, render: Callable[..., Ended]) -> None:
    done = render(wan)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["frames"] == 20 and told["synthetic"] is False
    assert told["licence"] == "CC BY-NC-SA 4.0 (README.md): not for commercial use"
    assert "CC BY-NC-SA 4.0 (README.md): not for commercial use" in done.stderr
    with av.open(str(tmp_path / "out.mp4")) as film:
        frames = [frame.to_ndarray(format="bgr24") for frame in film.decode(video=0)]
        assert "synthetic" not in film.metadata.get("comment", "")
    assert len(frames) == 20 and frames[0].shape == (1088, 704, 3)
    # trained at 16 pictures a second: every second one is shown twice
    changes = [float(np.abs(a.astype(int) - b).mean()) for a, b in pairwise(frames)]
    assert min(changes[:17]) < 0.25 * max(changes[:17])
    assert frames[19].std() > 2


def test_a_voice_drives_a_model_with_a_lora_beside_it(
    tmp_path: Path, render: Callable[..., Ended]
) -> None:
    """LiveAvatar's way: Wan2.2-S2V, its wav2vec2, and a LoRA in another folder."""
    base = replace(PRESETS["s2v-14b"], width=128, heads=1, hidden=256, text_features=TEXT_WIDTH)
    config = replace(base, speech=Speech(S2V_LAYERS, features=32, states=4))
    state = layouts.random_state(config)
    model = layouts.original(tmp_path / "s2v", state)
    original_folder(model)
    original_file(wan_2_1((12, 8), 16), model).rename(model / "Wan2.1_VAE.pth")
    saved(model / "wav2vec2-large-xlsr-53-english", {})
    live = tmp_path / "live"
    live.mkdir()
    save_file(layouts.lora_of(state), live / "liveavatar.safetensors")
    text = 'base = "../s2v"\nlora = "liveavatar.safetensors"\npicture = "64x96"\n'
    (live / "avatar-model.toml").write_text(text)
    done = render(live)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["frames"] == 20 and told["checkpoint"].startswith("LiveAvatar (base and LoRA)")
    shutil.rmtree(model / "wav2vec2-large-xlsr-53-english")
    done = render(live)
    assert done.returncode == 1
    assert "the sound encoder is missing: put wav2vec2-large-xlsr-53-english/" in done.stderr


def test_what_is_missing_is_said_in_one_line(
    wan: Path, tmp_path: Path, render: Callable[..., Ended]
) -> None:
    whole = wan.parent / "wan"
    for gone, said in (
        ("Wan2.1_VAE.pth", "the video decoder is missing: put Wan2.1_VAE.pth into "),
        ("models_t5_umt5-xxl-enc-bf16.pth", "the text encoder is missing: put models_t5_umt5"),
    ):
        folder = tmp_path / gone[:4]
        shutil.copytree(whole, folder, ignore=shutil.ignore_patterns(gone))
        done = render(folder)
        assert done.returncode == 1 and said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_model_that_is_not_whole_is_refused_in_one_line(
    wan: Path, tmp_path: Path, render: Callable[..., Ended]
) -> None:
    save_file({"blocks.0.self_attn.q.weight": torch.zeros(4, 4)}, tmp_path / "m.safetensors")
    done = render(tmp_path / "m.safetensors")
    assert done.returncode == 2
    assert done.stderr.strip().startswith("avatar-engine: m.safetensors: it lacks 'patch_emb")
    done = render(wan, "--synthetic")
    assert done.returncode == 2 and "has no option 'synthetic'" in done.stderr


def test_bench_measures_an_installed_model(wan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "--model", str(wan), "--json", "--seconds", "1"], {}) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["fps"] > 0 and told["layout"].startswith("Self-Forcing") and not told["synthetic"]
    assert told["device"] and told["versions"]["torch"]


def test_weights_are_read_once_and_again_when_a_file_changed(wan: Path, tmp_path: Path) -> None:
    root = tmp_path / "models"
    shutil.copytree(wan.parent, root)
    loaded, cpu = LoadedWeights(), torch.device("cpu")
    reports: list[str] = []

    def weights() -> DitWeights:
        reports.clear()
        video = CheckpointVideo("small", Folders(tmp_path, None, (root,)), loaded, lambda: False)
        given = video.conditioning
        part, float32 = shard(given.config), torch.float32
        return given.weights(part, cpu, float32, False, lambda done, what: reports.append(what))

    first = weights()
    assert reports and loaded.bytes > 1e6 and loaded.name == "small"
    assert weights() is first and not reports
    model = root / "wan" / "self_forcing_dmd.pt"
    os.utime(model, ns=(1, 10**18))
    assert weights() is not first and reports


def test_a_second_character_does_not_read_again(wan: Path, tmp_path: Path) -> None:
    """The factory of a session keeps the weights from one character to the next, and can cancel."""
    folders = Folders(tmp_path, None, (wan.parent,))
    factory = ModelFactory("small", {}, folders)
    picture = io.BytesIO()
    Image.fromarray(np.full((300, 200, 3), 90, np.uint8)).save(picture, "PNG")
    told: list[str] = []

    def load(cancelled: bool) -> None:
        told.clear()
        spec = CharacterSpec()
        factory.load(
            picture.getvalue(), spec, lambda done, what: told.append(what), lambda: cancelled
        )

    with pytest.raises(EngineError, match="was cancelled"):
        load(True)
    load(False)
    assert any(what.startswith("reading self_forcing_dmd.pt") for what in told)
    load(False)
    assert not any(what.startswith("reading self_forcing_dmd.pt") for what in told)
