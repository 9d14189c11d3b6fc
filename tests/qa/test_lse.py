"""LSE without weights: shapes, an independent MFCC, a planted lag, and wrong files refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.errors import EngineError
from engine.qa.lse import (
    MOST_LAG,
    confidence_and_distance,
    cut_face,
    faces_at_25,
    load_syncnet,
    steady_boxes,
)
from engine.qa.lse_net import Towers, mfcc
from engine.qa.score_clip import measure_video
from tests.qa.conftest import needs_models, write_video


def slow_mfcc(pcm: np.ndarray, frame: int) -> np.ndarray:
    """One frame of the textbook's MFCC, loop by loop."""
    x = pcm.astype(float) * 32768
    x = np.array([x[0]] + [x[i] - 0.97 * x[i - 1] for i in range(1, len(x))])
    part = np.zeros(512)
    part[:400] = x[160 * frame : 160 * frame + 400]
    power = [
        abs(np.sum(part * np.exp(-2j * np.pi * k * np.arange(512) / 512))) ** 2 / 512
        for k in range(257)
    ]
    top = 2595 * np.log10(1 + 8000 / 700)
    points = [int(513 * 700 * (10 ** (top * i / 27 / 2595) - 1) / 16000) for i in range(28)]
    bands = []
    for low, mid, high in zip(points, points[1:], points[2:], strict=False):
        total = sum(power[k] * (k - low) / (mid - low) for k in range(low, mid))
        total += sum(power[k] * (high - k) / (high - mid) for k in range(mid, high))
        bands.append(np.log(total))
    out = []
    for k in range(13):
        scale = np.sqrt((1 if k == 0 else 2) / 26)
        value = scale * sum(b * np.cos(np.pi * k * (2 * n + 1) / 52) for n, b in enumerate(bands))
        out.append(value * (1 + 11 * np.sin(np.pi * k / 22)))
    return np.array([np.log(sum(power)), *out[1:]])


def test_mfcc_is_the_textbooks():
    pcm = np.random.default_rng(1).normal(0, 0.1, 4000).astype(np.float32)
    fast = mfcc(pcm)
    assert fast.shape == (24, 13)
    for frame in (0, 7, 20):
        assert fast[frame] == pytest.approx(slow_mfcc(pcm, frame), rel=1e-6, abs=1e-6)


def test_towers_have_the_published_shapes():
    """Names and shapes of the published file: what load_state_dict checks."""
    state = Towers().state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    assert shapes["netcnnaud.0.weight"] == (64, 1, 3, 3)
    assert shapes["netcnnaud.18.weight"] == (512, 256, 5, 4)
    assert shapes["netcnnlip.0.weight"] == (96, 3, 5, 7, 7)
    assert shapes["netcnnlip.18.weight"] == (512, 256, 1, 6, 6)
    assert shapes["netfcaud.3.weight"] == shapes["netfclip.3.weight"] == (1024, 512)
    with torch.inference_mode():
        towers = Towers().eval()
        assert towers.sound(torch.zeros(1, 1, 13, 20)).shape == (1, 1024)
        assert towers.lips(torch.zeros(1, 3, 5, 224, 224)).shape == (1, 1024)


class Echo:
    """Towers whose embeddings are the brightness of a picture and the energy of a sound."""

    def lips(self, frames: torch.Tensor) -> torch.Tensor:
        return frames[:, 0, 0, 0, :1]

    def sound(self, heard: torch.Tensor) -> torch.Tensor:
        return heard[:, 0, :1, 0]


def test_distance_is_smallest_where_they_fit():
    sound = np.random.default_rng(0).normal(0, 0.1, 16_000 * 4).astype(np.float32)
    sound *= np.repeat(np.random.default_rng(1).random(100) + 0.1, 640)
    energy = mfcc(sound)[::4, 0]
    faces = np.zeros((100, 224, 224, 3), np.float32)
    faces[:, 0, 0, 0] = energy[:100]
    found = confidence_and_distance(Echo(), faces, sound)
    assert found is not None
    confidence, distance = found
    assert distance < 0.01 and confidence > 0.3
    mixed = confidence_and_distance(Echo(), faces[::-1].copy(), sound)
    assert mixed is not None and mixed[0] < 0.5 * confidence
    assert confidence_and_distance(Echo(), faces[: 2 * MOST_LAG], sound) is None


def test_weights_are_loaded_without_running_code(tmp_path: Path):
    assert load_syncnet(None) is None
    good = tmp_path / "syncnet_v2.model"
    torch.save(Towers().state_dict(), good)
    net = load_syncnet(good)
    assert net is not None and len(net.sha256) == 64 and not net.towers.training
    wrong = tmp_path / "wrong.model"
    torch.save({"weight": torch.zeros(3)}, wrong)
    with pytest.raises(EngineError, match="does not hold SyncNet"):
        load_syncnet(wrong)
    (tmp_path / "text.model").write_text("hello")
    with pytest.raises(EngineError, match="does not hold SyncNet"):
        load_syncnet(tmp_path / "text.model")
    with pytest.raises(EngineError, match="is not a file"):
        load_syncnet(tmp_path / "none.model")


def test_boxes_are_steady_and_bridge_gaps():
    landmarks = np.zeros((30, 478, 2), np.float32)
    landmarks[:, 1:] = 100
    landmarks[12] = np.nan
    landmarks[5] += 40  # one frame's slip
    boxes = steady_boxes(landmarks)
    assert boxes == pytest.approx(np.tile([50, 50, 50], (30, 1)))
    assert cut_face(np.zeros((120, 120, 3), np.uint8), boxes[0]).shape == (224, 224, 3)


@needs_models
def test_faces_are_re_timed_to_25_fps(tmp_path, talking):
    path = write_video(tmp_path / "a.mp4", talking)
    measured, _ = measure_video(path)
    faces = faces_at_25(path, measured)
    assert faces.shape[1:] == (224, 224, 3) and len(faces) == int(measured.times_s[-1] * 25)
