"""The sheet and the report as commands, on a character that carries its own landmarks."""

from __future__ import annotations

import itertools
import json
import shutil
import wave
from pathlib import Path

import cv2
import numpy as np
import pytest

from engine.errors import EngineError
from engine.motion import report, sheet
from engine.motion.flite_clips import make_clips

ASSETS = Path(__file__).resolve().parents[2] / "assets"
CHARACTER = ["--character", str(ASSETS / "characters" / "mira.avatar")]
AUDIO = ["--audio", str(ASSETS / "samples" / "lips.flac")]


def test_a_sheet_has_a_labelled_cell_a_frame(tmp_path: Path) -> None:
    out = tmp_path / "sheet.jpg"
    assert sheet.main([*CHARACTER, *AUDIO, "--from", "1.0", "--to", "1.5", str(out)]) == 0
    picture = cv2.imread(str(out))
    assert picture.shape == (sheet.CELL + sheet.LABEL, 12 * sheet.CELL, 3)
    cells = [picture[: sheet.CELL, i * sheet.CELL : (i + 1) * sheet.CELL] for i in range(12)]
    assert all(cell.std() > 10 for cell in cells)
    moved = [np.abs(a.astype(int) - b).mean() for a, b in itertools.pairwise(cells)]
    assert max(moved) > 0.3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*CHARACTER, "--audio", "none.wav"], "none.wav"),
        (["--image", "none.jpg", *AUDIO], "none.jpg"),
        ([*CHARACTER, *AUDIO, "--from", "99"], "--from"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sheet.main([*arguments, str(tmp_path / "x.jpg")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_mouth_crop_lies_inside_the_canvas() -> None:
    landmarks = np.zeros((478, 3), np.float32)
    landmarks[:, :2] = (30, 1070)
    landmarks[291, 0] = 130
    left, top, right, bottom = sheet.crop_box(landmarks, mouth=True)
    assert (left, bottom) == (0, 1088)
    assert right - left == bottom - top > 100


def test_report_of_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wave.open(str(tmp_path / "still.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(bytes(2 * 48_000))
    (tmp_path / "still.phones").write_text("pau:0.3 b:0.4 aa:0.6 pau:1.0")
    assert report.main([str(tmp_path), "--clips"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["by_clip"]["still"]["closures"] == 1
    assert told["pooled"]["open_in_silence_share"] == 0
    assert told["pooled"]["open_share"] == 0  # a mouth that never opens is found out


def test_report_without_clips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(tmp_path)]) == 2
    assert "no NAME.wav" in capsys.readouterr().err


def test_clips_need_flite_and_a_voice_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="flite is missing"):
        make_clips(tmp_path, ["slt"])


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
def test_an_unknown_voice_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no voice 'nobody'"):
        make_clips(tmp_path, ["nobody"])
