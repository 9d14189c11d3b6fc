"""Options, the command line's manners and doctor."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from engine import doctor
from engine.cli import build_parser, serve_config
from engine.config import make_config, read_config_file
from engine.errors import EngineError
from engine.folders import Folders
from tests.engine.wire_client import ROOT


def engine(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "engine", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_unknown_keys_name_the_nearest():
    with pytest.raises(EngineError, match="did you mean 'runtime_dir'"):
        make_config({"runtimedir": "/tmp"})


@pytest.mark.parametrize(
    "values",
    [
        {"port": "80"},
        {"port": 70_000},
        {"port": True},
        {"parent_pid": -1},
        {"log_level": "loud"},
        {"token": 1},
    ],
)
def test_bad_values_are_refused(values):
    with pytest.raises(EngineError) as caught:
        make_config(values)
    assert caught.value.code == "bad_config" and caught.value.exit_status == 2


def test_the_command_line_overrides_the_file(tmp_path):
    file = tmp_path / "engine.toml"
    file.write_text('bind = "127.0.0.1"\nport = 5000\n')
    options = build_parser().parse_args(["serve", "--config", str(file), "--port", "6000"])
    config = serve_config(options)
    assert (config.bind, config.port, config.token) == ("127.0.0.1", 6000, True)
    file.write_text("bind = ")
    with pytest.raises(EngineError):
        read_config_file(file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["serv"],
        ["serve", "--port", "x"],
        ["render"],
        ["train", "dance"],
        ["bench", "--model", "q"],
        ["serve", "--config", "/absent.toml"],
        ["doctor", "--fast"],
        ["bench", "--image", "/absent.png", "--json-lines"],
    ],
)
def test_bad_use_is_one_line_and_exit_status_2(arguments):
    done = engine(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_doctor_is_a_table_and_one_json_object():
    done = engine("doctor", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert {"Python", "numpy", "Qt libraries", "PortAudio", "GPU", "Disk", "CURVE"} <= {
        row["what"] for row in rows
    }
    assert done.returncode == int(any(row["status"] == "missing" for row in rows))
    assert all(row["remedy"] for row in rows if row["status"] != "ok")
    table = engine("doctor").stdout
    assert len(table.strip().splitlines()) == len(rows)


def test_doctor_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "PACKAGES", ("surely-no-such-package",))
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setattr(doctor, "MIN_DISK_GIB", 1e9)
    rows = {row[0]: row for row in doctor.examine(Folders(tmp_path / "a" / "b", tmp_path))}
    assert rows["surely-no-such-package"][1:] == (
        "missing",
        "not installed",
        "pip install surely-no-such-package",
    )
    assert rows["Face model"][1] == "missing" and "run" in rows["Face model"][3]
    assert rows["Speech weights"][1] == "missing" and rows["Disk"][1] == "warning"
