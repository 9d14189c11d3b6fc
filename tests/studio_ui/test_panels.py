"""Panels and words as tables: every state has its words, every meter its value."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from engine.protocol.messages import Counters, EngineState
from studio import theme, words
from studio.edited_character import Source
from studio.output_files import new_path
from studio.state import CharacterView, EngineView, SessionView, VoiceView
from studio.timings import STAGES, Spread, TimingsView
from studio.widgets.history_plot import TOPS_MS, top_for
from studio.widgets.level_meter import CLIP_HOLD_NS, PEAK_HOLD_NS, LevelMeter, fraction
from studio.widgets.slider_row import SliderRow
from studio.widgets.waveform import Waveform, clock_text

LINKS = ("starting", "connecting", "ready", "lost", "recovering", "failed")
STATES = ("NOT_READY", "READY", "RUNNING", "COMPLETED", "FAILED", "CANCELLED")


# --- words ---
@pytest.mark.parametrize(("link", "state"), list(itertools.product(LINKS, STATES)))
def test_every_state_has_words_and_a_tone(link, state):
    engine = EngineView(link=link, detail="why")
    session = SessionView(state=state, message="it broke", hint="mend it")
    for text, tone in (
        words.engine_words(engine, session),
        words.session_words(session, engine),
    ):
        assert text and tone in theme.COLORS and text[0].isupper()
    banner = words.banner(engine, session, CharacterView())
    assert (banner is None) == (link == "ready" and state != "FAILED")
    if banner is not None:
        assert banner.tone in theme.COLORS and banner.hold


@pytest.mark.parametrize(("voice", "says"), [
    (VoiceView(), "No voice yet"),
    (VoiceView(kind="microphone"), "Default microphone"),
    (VoiceView(kind="microphone", microphone="Yeti"), "Yeti"),
    (VoiceView(kind="microphone", muted=True), "Microphone muted"),
    (VoiceView(kind="file", file="/a/b/talk.mp3"), "talk.mp3"),
    (VoiceView(kind="microphone", device_lost="microphone: unplugged"), "Microphone missing"),
    (VoiceView(kind="file", file="x.wav", device_lost="microphone: none"), "x.wav"),
    (VoiceView(kind="file", file="x.wav", device_lost="speaker: none"), "Speaker missing"),
])  # fmt: skip
def test_voice_words(voice, says):
    assert words.voice_words(voice)[0] == says


@pytest.mark.parametrize(("source", "unsaved", "says"), [
    (Source(), False, "Not saved yet"),
    (Source(), True, "Unsaved changes"),
    (Source(Path("/a/ada.avatar")), False, "Saved as ada.avatar"),
    (Source(Path("/a/mira.avatar"), True), False, "CC0"),
    (Source(Path("/a/mira.avatar"), True), True, "Unsaved changes"),
])  # fmt: skip
def test_saved_words(source, unsaved, says):
    assert words.saved_words(source, "CC0", unsaved) == says


def test_session_words_count_hours():
    health = EngineState(
        pid=1, rss_bytes=412_000_000, cpu_percent=61, sessions=1, worker="busy", uptime_s=1
    )
    text, _ = words.session_words(
        SessionView(state="RUNNING", live=True, age_s=3_725, counters=Counters()),
        EngineView(health=health),
    )
    assert text == "Talking · 1:02:05 · 412 MB · 61 % CPU"


def test_long_names_are_shortened():
    assert len(words.short("x" * 100)) == 36 and words.short("short") == "short"


# --- meter ---
@pytest.mark.parametrize(("db", "share"), [
    (-120, 0.0), (-60, 0.0), (-30, 0.5), (-6, 0.9), (0, 1.0), (3, 1.0),
])  # fmt: skip
def test_meter_scale(db, share):
    assert fraction(db) == pytest.approx(share)


def test_meter_holds_peak_and_clip(themed, qtbot):
    meter = LevelMeter()
    qtbot.addWidget(meter)
    meter.set_level(-20, 0.0, True, 1)
    assert meter.clipped and meter.peak_db == 0.0
    meter.set_level(-40, -30, True, PEAK_HOLD_NS)
    assert meter.peak_db == 0.0
    meter.set_level(-40, -30, True, PEAK_HOLD_NS + 2)
    assert meter.peak_db == -30 and meter.clipped
    meter.set_level(-40, -30, True, CLIP_HOLD_NS + 2)
    assert not meter.clipped


def test_meter_paints_the_level(themed, qtbot):
    meter = LevelMeter()
    qtbot.addWidget(meter)
    meter.resize(218, 30)

    def green(db: float) -> int:
        meter.set_level(db, -120, True, 1)
        image = meter.grab().toImage()
        return sum(image.pixelColor(x, 8).green() > 150 for x in range(200))

    assert green(-60) == 0
    assert green(-30) == pytest.approx(100, abs=3)
    assert green(-12) > 150


# --- waveform ---
def test_waveform_scrubs_by_mouse_and_keys(themed, qtbot):
    wave = Waveform()
    qtbot.addWidget(wave)
    wave.resize(216, 56)
    wave.show_file(np.full(100, -1, np.float32), np.ones(100, np.float32), 480_000)
    sought = []
    wave.sought.connect(sought.append)
    qtbot.mouseClick(wave, Qt.MouseButton.LeftButton, pos=wave.rect().center())
    assert sought[-1] == pytest.approx(240_000, abs=3_000)
    for key, wanted in ((Qt.Key.Key_Home, 0), (Qt.Key.Key_Right, 48_000), (Qt.Key.Key_Left, 0),
                        (Qt.Key.Key_Left, 0), (Qt.Key.Key_End, 480_000)):  # fmt: skip
        qtbot.keyClick(wave, key)
        assert sought[-1] == wanted
    wave.set_position(10**9)
    assert wave.position == 480_000 and len(sought) == 6, "the sound's own motion is no seek"


@pytest.mark.parametrize(("samples", "text"), [
    (0, "0:00.0"), (48_000, "0:01.0"), (48_000 * 61 + 24_000, "1:01.5"),
])  # fmt: skip
def test_clock_text(samples, text):
    assert clock_text(samples) == text


# --- timings ---
@pytest.mark.parametrize(("highest", "top"), [(0, 10), (10, 10), (11, 20), (42, 50), (5000, 1000)])
def test_axis_steps(highest, top):
    assert top_for(highest) == top and top in TOPS_MS


def test_timings_panel_shows_every_stage_and_reason(app):
    panel = app.window.timings
    stages = {s: Spread(i + 0.5, i + 1.25, 10) for i, s in enumerate(STAGES)}
    panel.show_view(TimingsView(23.96, Spread(150, 210, 9), stages, {"late": 3, "odd": 1}, 99, 2))
    assert panel.fps.text() == "24.0"
    assert (panel.p50.text(), panel.p95.text()) == ("150 ms", "210 ms")
    for i, stage in enumerate(STAGES):
        p50, p95 = panel.cells[stage]
        assert (p50.text(), p95.text()) == (f"{i + 0.5:.1f}", f"{i + 1.25:.1f}")
    assert panel.drops.text() == "99 frames shown · 2 late · 4 dropped (too late 3, odd 1)"


def test_history_paints_each_stage_in_its_colour(app):
    plot = app.window.timings.plot
    plot.resize(238, 124)
    plot.show_stacks({s: np.full(60, 6.0) for s in STAGES})
    image = plot.grab().toImage()
    seen = {image.pixelColor(100, y).name() for y in range(image.height())}
    assert {theme.STAGE_COLORS[s] for s in STAGES} <= seen


# --- slider, log, paths ---
def test_slider_row_resets(themed, qtbot):
    row = SliderRow("Head", "tip")
    qtbot.addWidget(row)
    changes = []
    row.changed.connect(changes.append)
    row.set_value(1.7)
    assert changes == [] and row.value == 1.7 and row.reset.isVisibleTo(row)
    row.reset.click()
    assert changes == [1.0] and not row.reset.isVisibleTo(row)


def test_gate_slider_has_an_off(app):
    gate = app.window.voice.gate
    gate.slider.setValue(gate.slider.minimum())
    assert app.flow.called("set_gate_db")[-1] == (-100.0,) and gate.text() == "Off"
    gate.slider.setValue(-40)
    assert app.flow.called("set_gate_db")[-1] == (-40.0,) and gate.text() == "-40 dB"


def test_log_filters_copies_and_escapes(app, tmp_path):
    log = app.window.log
    log.clear.click()
    log.add("debug", "engine", "hidden at first")
    log.add("info", "engine", "<b>bold</b> & plain")
    log.add("error", "studio", "a fault")
    assert log.text().count("\n") == 1 and "<b>bold</b> & plain" in log.view.toPlainText()
    log.filter.setText("FAULT")
    assert "fault" in log.text() and "bold" not in log.view.toPlainText()
    log.filter.clear()
    log.level.setCurrentIndex(0)
    assert "hidden at first" in log.view.toPlainText()
    log.save(tmp_path / "x.log")
    assert (tmp_path / "x.log").read_text().count("\n") == 3


def test_log_is_bounded(app):
    for index in range(2_500):
        app.window.log.add("info", "engine", str(index))
    assert len(app.window.log.lines) == 2_000 and app.window.log.view.blockCount() <= 2_000


@pytest.mark.parametrize(("name", "stem"), [
    ("Ada", "Ada"), ("a/b:c", "a b c"), ("..", "Avatar"), ("", "Avatar"), ("é" * 90, "é" * 60),
])  # fmt: skip
def test_output_names_are_safe_and_new(tmp_path, name, stem):
    now = datetime(2026, 3, 1, 14, 5, 9)
    first = new_path(tmp_path, name, ".mp4", now)
    assert first.name == f"{stem} 2026-03-01 14.05.09.mp4"
    first.touch()
    assert new_path(tmp_path, name, ".mp4", now).name == f"{stem} 2026-03-01 14.05.09 2.mp4"
