"""N+M: what is understood, and that what cannot run is refused in one line with the remedy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.errors import EngineError
from engine.gpus import Gpus, check_machine, check_model, parse, present
from tests.engine.wire_client import ROOT


@pytest.mark.parametrize("text", ["1+0", "1+1", "2+1", "3+1", "4+0", "7+1"])
def test_shapes_that_run(text):
    gpus = parse(text)
    assert str(gpus) == text
    assert gpus.where("cuda") == [f"cuda:{i}" for i in range(gpus.total)]
    assert set(gpus.where("cpu")) == {"cpu"}
    check_model(gpus, "avatar-57b")
    check_machine(gpus, 8)
    check_machine(gpus, 0)  # then on the CPU


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3", "is not N+M"),
        ("three+1", "is not N+M"),
        ("-1+1", "is not N+M"),
        ("2+1+1", "is not N+M"),
        ("2+2", "use 3+1"),
        ("0+1", "0 denoise ranks"),
        ("99+0", "99 denoise ranks"),
    ],
)
def test_shapes_that_do_not(text, why):
    with pytest.raises(EngineError) as caught:
        parse(text)
    assert why in str(caught.value) and caught.value.code == "bad_config"


def test_too_few_gpus_and_too_few_heads_are_refused_with_the_remedy():
    with pytest.raises(EngineError, match=r"needs 4 GPUs, this machine has 2: use --gpus 1\+1"):
        check_machine(Gpus(3, 1), 2)
    with pytest.raises(EngineError, match="heads"):
        check_model(Gpus(4, 0), "tiny")
    with pytest.raises(EngineError, match="'portrait' cannot be spread"):
        check_model(Gpus(2, 1), "portrait")


def test_gpus_are_counted_by_the_driver_and_what_is_visible(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A'\necho 'GPU 1: B'\necho '  MIG 1g.18gb'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert present({}) == 2
    assert present({"CUDA_VISIBLE_DEVICES": "1"}) == 1
    assert present({"CUDA_VISIBLE_DEVICES": ""}) == 0
    tool.unlink()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["serve", "--gpus", "2+3"], "the limit is 1"),
        (["serve", "--model", "tiny", "--gpus", "4+1"], "heads"),
        (["render", "--model", "portrait", "--gpus", "2+1"], "cannot be spread"),
    ],
)
def test_the_commands_say_one_line_and_exit_2(arguments, why, tmp_path):
    if arguments[0] == "render":
        arguments = [*arguments, "--image", "a", "--audio", "b", "--out", "c.mp4"]
    done = subprocess.run(
        [sys.executable, "-m", "engine", *arguments], cwd=ROOT, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
