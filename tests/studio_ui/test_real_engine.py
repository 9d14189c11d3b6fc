"""The app with its real engine process and model: a starter comes alive, talks, is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from engine.clock import HEIGHT, WIDTH
from studio.app import StudioApp

ENCODER = Path(__file__).resolve().parents[2] / "assets" / "speech" / "encoder.safetensors"
# Enough for a cold engine on a machine that is busy with other tests; nothing is timed here.
PATIENCE_MS = 60_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not ENCODER.is_file(), reason="the speech encoder is not trained yet"),
]


@pytest.fixture
def real_app(themed, settings):
    made = StudioApp(settings)
    made.start()
    yield made
    made.window.close()
    made.window.deleteLater()
    QApplication.processEvents()


def test_a_starter_comes_alive_talks_and_is_recorded(real_app, qtbot, tmp_path):
    app, timings = real_app, real_app.flow.timings

    def painted() -> int:
        return timings.view(0).frames_painted

    qtbot.waitUntil(lambda: app.flow.state.character.loaded, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: painted() >= 24, timeout=PATIENCE_MS)
    rest = app.window.view.frame
    assert rest.pixels.shape == (HEIGHT, WIDTH, 4) and app.window.view.banner is None
    app.window.action("record").trigger()
    app.window.action("play_sample").trigger()
    qtbot.waitUntil(lambda: app.flow.state.session.live, timeout=PATIENCE_MS)
    before = painted()
    qtbot.waitUntil(lambda: painted() >= before + 48, timeout=PATIENCE_MS)
    assert app.window.voice.waveform.duration == app.flow.state.voice.duration_samples > 0
    app.window.action("snapshot").trigger()
    pictures = tmp_path / "pictures"
    qtbot.waitUntil(lambda: any(pictures.glob("*.png")), timeout=PATIENCE_MS)
    app.window.action("record").trigger()
    qtbot.waitUntil(lambda: app.flow.state.recording.state == "off", timeout=PATIENCE_MS)
    (video,) = (tmp_path / "videos").glob("*.mp4")
    assert video.stat().st_size > 10_000
    app.display.timings()
    assert {"encode", "decode", "transport", "paint"} <= {
        stage for stage, (p50, _) in app.window.timings.cells.items() if p50.text() != "–"
    }
    qtbot.waitUntil(lambda: _size(pictures) == (WIDTH, HEIGHT), timeout=PATIENCE_MS)


def _size(folder: Path) -> tuple[int, int]:
    (picture,) = folder.glob("*.png")
    image = QImage(str(picture))
    return image.width(), image.height()
