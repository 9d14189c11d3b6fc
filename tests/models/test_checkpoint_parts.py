"""Whole folders of speech-to-video and image-to-video models, with every encoder, make pictures.

Tiny random weights on a CPU, in this process: what is shown is that the parts find and fit each
other, that each of them matters, and that nothing outside the folder is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import EngineError
from engine.folders import Folders
from engine.model_factory import ModelFactory
from engine.models.base import Chunk
from engine.models.dit_config import Speech
from engine.models.taehv import TinyConfig
from engine.models.vae_config import wan_2_1
from tests.models import checkpoint_layouts as layouts
from tests.models import test_clip_vision_parity as clip
from tests.models import test_taehv as taehv
from tests.models import test_text_encoder_parity as text
from tests.models import test_wav2vec_parity as wav2vec
from tests.models.test_vae_files import original_file

pytest.importorskip("transformers")
RECIPE = 'base = "../{base}"\npicture = "64x96"\n'
SOUND = np.random.default_rng(3).standard_normal(200_000).astype(np.float32) * 0.1


def parts(model: Path, root: Path, decoder: str = "full") -> Path:
    """Text encoder and decoders beside `model`; a folder with a recipe that makes it small."""
    text.original_folder(model)
    original_file(wan_2_1((12, 8), 16), model).rename(model / "Wan2.1_VAE.pth")
    taehv.saved(TinyConfig((12, 8), 16, (16, 8, 8, 8)), model, {}).rename(model / "taew2_1.pth")
    small = root / "small"
    small.mkdir()
    recipe = RECIPE.format(base=model.name) + f'decoder = "{decoder}"\n'
    (small / "avatar-model.toml").write_text(recipe)
    return small


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As Wan2.2-S2V-14B is published, a LiveAvatar LoRA beside it."""
    root = tmp_path_factory.mktemp("s2v")
    config = layouts.small("s2v-14b")
    assert config.speech is not None
    speech: Speech = replace(config.speech, features=32, states=4)
    config = replace(config, text_features=text.WIDTH, speech=speech)
    model = layouts.live_avatar(root / "s2v", layouts.random_state(config))
    wav2vec.saved(model / "wav2vec2-large-xlsr-53-english", {})
    return parts(model, root)


@pytest.fixture(scope="module")
def picturing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As Wan2.1-I2V-14B is published: joined channels and CLIP."""
    root = tmp_path_factory.mktemp("i2v")
    config = replace(
        layouts.small("wan-14b"), joined_channels=20, image_tokens=257, text_features=text.WIDTH
    )
    model = layouts.original(root / "i2v", layouts.random_state(config))
    made = clip.library(width=1280, layers=2, heads=16, size=224)
    torch.save(clip.original(made, layers=2), model / "models_clip.pth")
    return parts(model, root, "taehv")


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def character(seed: int) -> Any:
    pixels = np.random.default_rng(seed).integers(0, 255, (1088, 704, 4), np.uint8)
    return SimpleNamespace(canvas=SimpleNamespace(pixels=pixels))


def film(
    folder: Path, cache: Path, sound: np.ndarray, seed: int = 1, **options: float
) -> tuple[np.ndarray, Any]:
    """Frames of two chunks, and the generator."""
    folders = Folders(cache, checkpoints=(folder,))
    models = ModelFactory("small", options, folders).make()
    generator: Any = models.generator
    for part in (generator, models.decoder):
        part.prepare(character(seed), {}, lambda done, what: None)
    count, at, shown = generator.frames_per_chunk, 0, []
    for index in range(2):
        size = 2000 * count + (generator.lookahead_samples if index == 0 else 0)
        chunk = Chunk(0, index, index * count, count, sound[at : at + size])
        at += size
        out = [np.zeros((1088, 704, 4), np.uint8) for _ in range(count)]
        models.decoder.decode(generator.step(chunk), out)
        shown += [picture[::16, ::16, :3] for picture in out]
    return np.stack(shown), generator


@pytest.fixture(scope="module")
def spoken(speaking: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, Any]:
    return film(speaking, tmp_path_factory.mktemp("cache"), SOUND)


def test_a_speaking_model_hears_and_sees(
    speaking: Path, spoken: tuple[np.ndarray, Any], tmp_path: Path
) -> None:
    frames, generator = spoken
    assert 4800 < generator.lookahead_samples < 5600 and not generator.synthetic
    assert frames.std() > 5
    other, _ = film(speaking, tmp_path, SOUND[::-1].copy())
    assert not np.array_equal(other, frames)
    face, _ = film(speaking, tmp_path, SOUND, seed=2)
    assert not np.array_equal(face, frames)


def test_the_tiny_decoder_draws_in_place_of_the_full_one(
    speaking: Path, spoken: tuple[np.ndarray, Any], tmp_path: Path
) -> None:
    full, _ = spoken
    tiny, _ = film(speaking, tmp_path, SOUND, tiny=1)
    assert tiny.shape == full.shape and not np.array_equal(tiny, full) and tiny.std() > 0.3


def test_a_picturing_model_sees_its_picture(picturing: Path, tmp_path: Path) -> None:
    frames, generator = film(picturing, tmp_path, SOUND)
    assert generator.lookahead_samples == 0
    assert generator.denoiser.model.context.image_k.abs().sum() > 0
    face, _ = film(picturing, tmp_path, SOUND, seed=2)
    assert not np.array_equal(face, frames)


def test_an_option_that_neither_half_has_is_refused(speaking: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no option 'tny'") as refusal:
        ModelFactory("small", {"tny": 1}, Folders(tmp_path, checkpoints=(speaking,)))
    assert "tiny" in str(refusal.value)
