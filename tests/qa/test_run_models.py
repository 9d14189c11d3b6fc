"""A public video model in a run: found by its folder's name, refused early, one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.folders import Folders
from engine.qa.__main__ import run as avatar_qa
from engine.qa.jobs import Configuration
from engine.qa.run_folder import RunFolder
from engine.qa.run_models import check_models, plain_name, processes
from engine.qa.workers import cores

CLIP = "es-allison-vm-reachoper"  # 2.9 s


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> Path:
    """A folder with one whole, small model of random weights, called `small`."""
    pytest.importorskip("transformers")
    from engine.models.vae_config import wan_2_1
    from tests.models import checkpoint_layouts as layouts
    from tests.models.test_text_encoder_parity import WIDTH, original_folder
    from tests.models.test_vae_files import original_file

    folder = tmp_path_factory.mktemp("models")
    config = replace(layouts.small("wan-1.3b"), text_features=WIDTH)
    base = layouts.self_forcing(folder / "wan", layouts.random_state(config))
    original_folder(base)
    original_file(wan_2_1((12, 8), 16), base).rename(base / "Wan2.1_VAE.pth")
    small = folder / "small"
    small.mkdir()
    (small / "avatar-model.toml").write_text('base = "../wan"\npicture = "32x48"\n')
    return folder


def test_a_model_of_the_checkpoints_folder_is_rendered_and_scored(checkpoints, tmp_path):
    command = [
        "run", "--out", str(tmp_path / "run"), "--model", "small", "--only", CLIP, "--checkpoints",
        str(checkpoints), "--cache-dir", str(tmp_path / "cache"),
    ]  # fmt: skip
    assert avatar_qa(command, {}) == 1, "noise holds no face"
    run = RunFolder.existing(tmp_path / "run")
    (result,) = run.results()
    assert result.configuration == "small"
    assert result.failed.startswith("no face in "), "it was rendered, and judged from its pixels"
    assert run.video_file(run.run.jobs[0]).is_file()


def test_a_path_is_a_model_too(checkpoints, tmp_path, capsys):
    place = str(checkpoints / "small")
    command = ["run", "--out", str(tmp_path / "run"), "--model", place, "--only", "nothing"]
    assert avatar_qa(command, {}) == 2
    assert "nothing" in capsys.readouterr().err, "the model is understood, the clip is not there"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "smal"], "no model is called 'smal'"),
        (["--options", "steps=3"], "has no option 'steps'"),
        (["--checkpoints", "/nowhere"], "/nowhere does not exist"),
    ],
)
def test_refused_once_before_the_first_clip(tmp_path, capsys, words, said):
    out = tmp_path / "run"
    assert avatar_qa(["run", "--out", str(out), "--only", CLIP, *words], {}) != 0
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_one_process_for_video_models_unless_asked():
    light, heavy = Configuration("a"), Configuration("b", model="tiny")
    assert processes([light], 0) == cores()
    assert processes([light, heavy], 0) == 1
    assert processes([light, heavy], 3) == 3
    with pytest.raises(EngineError):
        processes([light], -1)


def test_names_for_folders():
    assert plain_name("portrait") == "portrait"
    assert plain_name("/models/Wan 2.1 (T2V)") == "Wan 2.1 T2V"
    assert plain_name("krea/wan") == "krea wan"


def test_each_model_is_looked_at_once(tmp_path):
    check_models([Configuration("a"), Configuration("b", drive="phones")], Folders(tmp_path))
    with pytest.raises(EngineError, match="no model is called"):
        check_models([Configuration("a"), Configuration("b", model="nil")], Folders(tmp_path))
