"""One face, short videos of it, and a mouth that does what it is told."""

from __future__ import annotations

import wave
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from engine.character import load_character
from engine.portrait.canvas import Canvas
from engine.portrait.coefficients import vector
from engine.portrait.face_model import DETECTOR, default_folder
from engine.portrait.renderer import PortraitRenderer
from engine.protocol.character_file import read_character
from engine.qa.gauge import Gauge
from engine.qa.planted import Face
from engine.qa.sweep import gauge_of_renderer

ROOT = Path(__file__).resolve().parents[2]
GRID = ROOT.parent / "shared" / "data" / "grid"
needs_models = pytest.mark.skipif(
    not (default_folder() / DETECTOR).is_file(), reason="run python packaging/face_model.py"
)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    cv2.setNumThreads(1)


def canvas_of(name: str) -> Canvas:
    spec, picture = read_character(ROOT / "assets" / "characters" / f"{name}.avatar")
    return load_character(picture, spec).canvas


@pytest.fixture(scope="session")
def renderer() -> PortraitRenderer:
    return PortraitRenderer(canvas_of("mira"), None, lambda fraction, what: None)


@pytest.fixture(scope="session")
def gauge(renderer: PortraitRenderer) -> Gauge:
    return gauge_of_renderer(renderer)


@pytest.fixture(scope="session")
def face(renderer: PortraitRenderer, gauge: Gauge) -> Face:
    return Face("mira", "drawing", renderer, gauge)


@pytest.fixture(scope="session")
def talking(renderer: PortraitRenderer) -> list[np.ndarray]:
    """48 half-size BGR frames of a mouth that opens and shuts."""
    frames = []
    out = np.zeros((1088, 704, 4), np.uint8)
    for i in range(48):
        jaw = 0.2 * (1 - np.cos(2 * np.pi * i / 12))
        renderer.render(vector(jawOpen=jaw, seal=1.0, headRoll=0.1 * i), out)
        frames.append(cv2.resize(out[:, :, :3], (352, 544), interpolation=cv2.INTER_AREA))
    return frames


def write_video(
    path: Path, frames: list[np.ndarray], fps: float = 24.0, sound_s: float | None = None,
    starts_s: list[float] | None = None, format: str | None = None,
) -> Path:  # fmt: skip
    """An H.264 file with a tone beside it, as long as the picture unless told otherwise."""
    with av.open(str(path), "w", format=format) as container:
        stream = container.add_stream(
            "libx264", rate=Fraction(fps).limit_denominator(1001),
            options={"preset": "ultrafast", "crf": "20", "bf": "0", "threads": "1"},
        )  # fmt: skip
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 90_000)
        sound_s = len(frames) / fps if sound_s is None else sound_s
        sound = container.add_stream("aac", rate=48_000, layout="mono") if sound_s else None
        for i, bgr in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(bgr, format="bgr24")
            start = starts_s[i] if starts_s else i / fps
            picture.pts, picture.time_base = round(start * 90_000), Fraction(1, 90_000)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
        if sound is not None:
            time = np.arange(round(sound_s * 48_000)) / 48_000
            tone = (0.2 * np.sin(2 * np.pi * 300 * time)).astype(np.float32)[None]
            block = av.AudioFrame.from_ndarray(tone, format="fltp", layout="mono")
            block.sample_rate, block.pts = 48_000, 0
            container.mux(sound.encode(block))
            container.mux(sound.encode(None))
    return path


def write_wav(path: Path, samples: np.ndarray) -> None:
    """Mono `samples` [n] float32 in -1..1 at 48 kHz as 16-bit PCM."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes((np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes())
