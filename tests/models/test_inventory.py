"""Installed models: found, named, judged; licences as their files state them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.doctor_models import model_rows
from engine.errors import EngineError
from engine.folders import Folders
from engine.models import inventory
from engine.models.dit_config import preset
from engine.models.licence import licence_of
from engine.models.vae_files import load_vae
from engine.models.weights import open_model
from tests.models import checkpoint_layouts as layouts


def folders(tmp_path: Path, *checkpoints: Path) -> Folders:
    return Folders(tmp_path / "cache", None, checkpoints)


def vae_marks(channels: int) -> dict[str, torch.Tensor]:
    """As much of a decoder as telling it apart needs."""
    return {
        "decoder.conv1.weight": torch.zeros(8, channels, 3, 3, 3),
        "conv2.weight": torch.zeros(channels, channels, 1, 1, 1),
    }


def text_marks() -> dict[str, torch.Tensor]:
    return {"token_embedding.weight": torch.zeros(9, 4),
            "blocks.0.attn.q.weight": torch.zeros(4, 4)}  # fmt: skip


def test_models_are_found_and_what_they_lack_is_said(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    state = layouts.random_state(layouts.small("wan-1.3b"))
    layouts.self_forcing(root / "self-forcing", state)
    layouts.original(root / "wan-s2v", layouts.random_state(layouts.small("s2v-14b")))
    (root / "empty").mkdir()
    (root / ".git").mkdir()
    plain, speech = inventory.installed(folders(tmp_path, root))
    assert (plain.name, speech.name) == ("self-forcing", "wan-s2v")
    assert plain.line.startswith("Self-Forcing generator_ema, 256-wide Wan geometry")
    assert plain.size_bytes == open_model(plain.path).checkpoint.bytes
    assert not plain.runs and not plain.problem
    where = root / "self-forcing"
    assert plain.lacks[0] == f"the video decoder is missing: put Wan2.1_VAE.pth into {where}"
    assert [line.split(" is ")[0] for line in speech.lacks] == [
        "the video decoder", "the text encoder", "the sound encoder",
    ]  # fmt: skip
    assert any("not distilled" in note for note in speech.notes)


def test_parts_may_lie_with_another_model(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    state = layouts.random_state(layouts.small("wan-1.3b"))
    layouts.self_forcing(root / "b", state)
    layouts.original(root / "a", state)
    torch.save(vae_marks(48), root / "a" / "Wan2.2_VAE.pth")
    torch.save(text_marks(), root / "a" / "t5.pth")
    with_wrong = inventory.installed(folders(tmp_path, root))[1]
    assert [line.split(" is ")[0] for line in with_wrong.lacks] == ["the video decoder"]
    (root / "a" / "vae").mkdir()
    torch.save(vae_marks(16), root / "a" / "vae" / "Wan2.1_VAE.pth")
    entry = inventory.installed(folders(tmp_path, root))[1]
    assert entry.name == "b" and entry.lacks == () and entry.runs


def test_a_bad_model_is_listed_with_its_problem(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    state = layouts.random_state(layouts.small("wan-1.3b"))
    path = layouts.original_single(root / "cut", state) / "diffusion_pytorch_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    layouts.causvid(root / "less", {k: v for k, v in state.items() if "norm3" not in k})
    cut, less = inventory.installed(folders(tmp_path, root))
    assert "is cut short" in cut.problem and "tensors are missing" in less.problem
    assert not cut.runs and not less.runs
    with pytest.raises(EngineError, match="is cut short"):
        inventory.find("cut", folders(tmp_path, root))


def test_names_are_unique_and_keep_clear_of_built_in_ones(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("wan-1.3b"))
    for place in ("one/tiny", "two/wan", "three/wan"):
        layouts.original_single(tmp_path / place, state)
    both = layouts.causvid(tmp_path / "four" / "wan-files", state)
    save_file(state, both / "other.safetensors")
    where = folders(tmp_path, *(tmp_path / n for n in ("one", "two", "three", "four")))
    names = [entry.name for entry in inventory.installed(where)]
    assert sorted(names) == ["model", "one/tiny", "other", "two/wan", "wan"]
    with pytest.raises(EngineError, match="installed are model, other"):
        inventory.find("wen", where)


def test_what_a_model_needs_is_held_against_what_is_free() -> None:
    config = preset("wan-1.3b")
    large = inventory.Room("NVIDIA H200", 140 << 30, True)
    needed, sentence = inventory.need(config, large)
    assert 14 << 30 < needed < 40 << 30
    assert sentence.endswith("on one GPU, 140.0 GiB are free")
    fourteen, _ = inventory.need(preset("wan-14b"), large)
    assert fourteen > needed + (8 << 30)
    on_cpu, sentence = inventory.need(config, replace(large, cuda=False))
    assert "of memory" in sentence and on_cpu > 5e9


def test_a_file_of_the_name_alone_is_no_decoder(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "Wan2.1_VAE.safetensors")
    with pytest.raises(EngineError):
        load_vae(tmp_path / "Wan2.1_VAE.safetensors", (6, 4))


@pytest.mark.parametrize(
    ("card", "name", "restricted"),
    [
        ("license: apache-2.0", "Apache 2.0", False),
        ("license: cc-by-nc-sa-4.0\nlanguage: en", "CC BY-NC-SA 4.0", True),
        ('license: other\nlicense_name: "nvidia-non-commercial"', "nvidia-non-commercial", True),
        ("license: [mit]", "MIT", False),
        ("license: other", "other", False),
    ],
)
def test_licence_of_a_model_card(card: str, name: str, restricted: bool, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(f"---\n{card}\ntags:\n- video\n---\n# Model\n")
    (tmp_path / "LICENSE").write_text("MIT License")
    licence = licence_of(tmp_path)
    assert (licence.name, licence.stated_in) == (name, "README.md")
    assert licence.non_commercial is restricted
    assert licence.line.endswith(": not for commercial use") is restricted


@pytest.mark.parametrize(
    ("text", "name", "restricted"),
    [
        ("   Apache License\n  Version 2.0, January 2004", "Apache 2.0", False),
        ("Attribution-NonCommercial-ShareAlike 4.0 International", "CC BY-NC-SA 4.0", True),
        ("Attribution-NonCommercial 4.0 International", "CC BY-NC 4.0", True),
        ("MIT License\n\nCopyright", "MIT", False),
        ("ACME Research-Only Terms\nfor non-commercial purposes", "ACME Research-Only Terms", True),
        ("ACME terms", "ACME terms", False),
    ],
)
def test_licence_of_a_text(text: str, name: str, restricted: bool, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# no front matter, license: mit\n")
    (tmp_path / "LICENSE.txt").write_text(text)
    licence = licence_of(tmp_path)
    assert (licence.name, licence.non_commercial) == (name, restricted)
    assert licence.stated_in == "LICENSE.txt"


def test_no_licence_is_said_too(tmp_path: Path) -> None:
    assert licence_of(tmp_path).line == "not stated by its files: ask its publisher before use"


def test_doctor_says_of_each_model_whether_it_runs(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    where = folders(tmp_path, root)
    assert "looked for in " in model_rows(where)[0][2]
    layouts.causvid(root / "a", layouts.random_state(layouts.small("wan-1.3b")))
    (root / "a" / "README.md").write_text("---\nlicense: mit\n---\n")
    (root / "b").mkdir()
    (root / "b" / "x.safetensors").write_bytes(b"nothing")
    good, bad = model_rows(where)
    assert good[:2] == ("Model a", "warning") and "licence MIT (README.md)" in good[2]
    assert "put Wan2.1_VAE.pth into" in good[3] and "put models_t5" in good[3]
    assert bad[:2] == ("Model b", "warning") and "x.safetensors: is not a safetensors" in bad[2]


# -- recipes ---------------------------------------------------------------------------------------


def recipe(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "avatar-model.toml").write_text(text)
    return folder


def test_a_recipe_puts_a_model_together(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("s2v-14b"))
    root = tmp_path / "checkpoints"
    layouts.original(root / "s2v", state)
    (root / "live").mkdir()
    save_file(layouts.lora_of(state), root / "live" / "liveavatar.safetensors")
    (root / "live" / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    text = 'base = "../s2v"\nlora = "liveavatar.safetensors"\npicture = "400x608"\n'
    recipe(root / "live", text + 'schedule = "self-forcing"\nprompt = "A man sings."\n')
    entries = {entry.name: entry for entry in inventory.installed(folders(tmp_path, root))}
    assert set(entries) == {"live", "s2v"}
    assert entries["live"].line.startswith("LiveAvatar (base and LoRA)")
    assert entries["live"].licence.non_commercial and not entries["s2v"].licence.name
    model, told = inventory.open_entry(root / "live")
    assert model.config.grid == (38, 25) and model.schedule == "self-forcing"
    assert told.prompt == "A man sings." and model.config.name == "live"


def test_a_talking_model_wants_a_picture_that_its_past_can_cover(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    layouts.original(root / "a", layouts.random_state(layouts.small("s2v-14b")))
    recipe(root / "b", 'base = "../a"\npicture = "32x48"')
    problem = inventory.installed(folders(tmp_path, root))[1].problem
    assert problem == "a picture 32 pixels across is too small for this model: use 64 or more"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base = 3", "'base' is not understood"),
        ('lora = "x"', "names no base"),
        ('base = "../a"\ncolour = "red"', "'colour' is not understood"),
        ('base = "../a"\npicture = "big"', "picture 'big' is not understood"),
        ('base = "../a"\npicture = "832x480"', "is not understood"),
        ('base = "../a"\npicture = "400x400"', "has not the shape of 704x1088"),
        ("base = ", "cannot be read"),
        ('base = "../nowhere"', "nowhere does not exist"),
        ('base = "../a"\nschedule = "slow"', "no schedule is called 'slow'"),
    ],
)
def test_a_recipe_that_is_wrong_is_told(text: str, words: str, tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    layouts.causvid(root / "a", layouts.random_state(layouts.small("wan-1.3b")))
    recipe(root / "b", text)
    entries = inventory.installed(folders(tmp_path, root))
    assert [entry.name for entry in entries] == ["a", "b"]
    assert words in entries[1].problem and "\n" not in entries[1].problem
