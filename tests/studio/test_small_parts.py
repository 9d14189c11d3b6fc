"""Mailbox, timings, state, settings, level, gate, marks, silent speaker, calls into the GUI."""

from __future__ import annotations

import argparse
import csv
import threading

import numpy as np
import pytest

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError
from engine.protocol.frame import Frame
from engine.protocol.messages import ChunkTimings
from studio.gui_calls import GuiCalls
from studio.heard import Marks
from studio.mailbox import Mailbox
from studio.settings import TABLE, StudioSettings, add_flags, overrides_from
from studio.silent_speaker import SilentSpeaker
from studio.state import StudioState
from studio.timings import Timings
from studio.voice_level import FLOOR_DB, NoiseGate, measure

S = 1_000_000_000
PIXELS = np.zeros((1, 1, 4), np.uint8)


def frame(index, captured=0, published=0, idle=False):
    return Frame(1, 1, index, 2000 * index, captured, published, PIXELS, idle=idle)


# --- mailbox ------------------------------------------------------------------------------------
def test_mailbox_newest_wins_one_wake_up_and_counts():
    box = Mailbox()
    assert box.take() is None and box.latest is None
    assert box.put(frame(1)) and not box.put(frame(2)) and not box.put(frame(3))
    assert box.overwritten == 2
    assert box.take().frame_index == 3 and box.take() is None
    assert box.latest.frame_index == 3
    assert box.put(frame(4)), "after a take the next frame asks for a wake-up again"
    box.clear()
    assert box.take() is None and box.latest is None


# --- timings ------------------------------------------------------------------------------------
def test_timings_fps_latency_and_stages():
    timings = Timings()
    for index in range(240):
        now = index * S // 24
        timings.painted(frame(index, captured=now - 120_000_000 + 1), now, 2.0)
        timings.painted(frame(index, captured=1), now)  # a repaint is no new frame
    view = timings.view(239 * S // 24)
    assert abs(view.fps - 24) < 0.1 and view.frames_painted == 240
    assert abs(view.latency.p50_ms - 120) < 0.1 and view.latency.count == 240
    assert view.stages["paint"].p95_ms == 2.0
    assert timings.view(20 * S).fps < 3, "no paints, falling fps"
    assert timings.view(100 * S).latency is None, "only the last 60 s count"


def test_timings_chunk_is_spread_over_its_frames_and_stacked():
    timings = Timings()
    chunk = ChunkTimings(session=1, epoch=1, chunk_index=0, first_frame=0, frame_count=4,
                         stage_ms={"denoise": 40.0, "decode": 20.0})  # fmt: skip
    timings.chunk(chunk, 30 * S)
    timings.arrived(frame(0, published=30 * S - 3_000_000), 30 * S)
    stacks = timings.stacked(60 * S, bins=60)
    assert stacks["denoise"].sum() == 10.0 and stacks["decode"].sum() == 5.0
    assert np.flatnonzero(stacks["denoise"])[0] == 30
    assert timings.view(60 * S).stages["transport"].p50_ms == 3.0
    assert set(stacks) == {"capture", "audio", "encode", "denoise", "decode", "transport", "paint"}


def test_timings_idle_frames_and_foreign_clocks_have_no_latency():
    timings = Timings()
    timings.painted(frame(1, captured=5, idle=True), 10)
    timings.arrived(frame(2, published=99 * S), 10)
    view = timings.view(10)
    assert view.latency is None and "transport" not in view.stages


def test_timings_csv(tmp_path):
    timings = Timings()
    timings.add("decode", 3.25, 2 * S)
    timings.dropped("late", 4)
    timings.export_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["stage", "monotonic_s", "ms"], ["decode", "2.0", "3.25"], ["dropped:late", "", "4"],
        ]  # fmt: skip


def test_timings_are_bounded():
    timings = Timings()
    for k in range(10_000):
        timings.add("paint", 1.0, k)
    assert len(timings._rings["paint"]) == 2_400


# --- state and calls ----------------------------------------------------------------------------
def test_state_signals_only_real_changes(qtbot):
    state, seen = StudioState(), []
    state.voice_changed.connect(seen.append)
    state.update_voice(muted=True)
    state.update_voice(muted=True)
    assert len(seen) == 1 and seen[0].muted and state.voice is seen[0]
    with pytest.raises(TypeError):
        state.update_voice(loudness=11)


def test_calls_of_a_key_coalesce_and_run_in_the_gui_thread(qtbot):
    calls, ran = GuiCalls(), []
    here = threading.get_ident()

    def flood():
        for k in range(1_000):
            calls.post("level", lambda k=k: ran.append((k, threading.get_ident())))
        calls.post("other", lambda: ran.append(("other", threading.get_ident())))

    thread = threading.Thread(target=flood)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: len(ran) == 2, timeout=2000)
    assert ran == [(999, here), ("other", here)]


# --- settings -----------------------------------------------------------------------------------
def test_settings_survive_a_restart_and_keep_unknown_keys(tmp_path):
    path = tmp_path / "deep" / "settings.json"
    settings = StudioSettings(path)
    settings.set("gate_db", -42.5)
    settings.set("recent_characters", ["a", "b"])
    path.write_text(path.read_text().replace("{", '{"from_the_future": 7,', 1))
    again = StudioSettings(path)
    assert again.number("gate_db") == -42.5 and again.strings("recent_characters") == ["a", "b"]
    again.set("monitor", True)
    assert "from_the_future" in path.read_text()


DAMAGED = ["", "[1]", "{", '{"gate_db": "loud"}', '{"gate_db": 12}', "\x00"]


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_settings_fall_back(tmp_path, text):
    path = tmp_path / "s.json"
    path.write_text(text)
    assert StudioSettings(path).number("gate_db") == -60.0


def test_settings_refuse_and_say_the_limits(tmp_path):
    settings = StudioSettings()
    with pytest.raises(EngineError, match=r"from -100\.0 to 0\.0"):
        settings.set("gate_db", 3.0)
    with pytest.raises(EngineError, match="bool"):
        settings.set("monitor", "yes")


def test_command_line_wins_and_is_not_saved(tmp_path):
    parser = argparse.ArgumentParser()
    add_flags(parser)
    given = overrides_from(parser.parse_args(["--engine", "tcp://gpu:5555"]))
    path = tmp_path / "s.json"
    settings = StudioSettings(path, given)
    assert settings.text("engine") == "tcp://gpu:5555"
    settings.set("monitor", True)
    assert "gpu" not in path.read_text()


def test_every_default_is_valid():
    settings = StudioSettings()
    for row in TABLE:
        assert settings.get(row.key) == row.default


# --- level and gate -----------------------------------------------------------------------------
def test_level_of_known_signals():
    tone = np.sin(2 * np.pi * 1000 * np.arange(960) / SAMPLE_RATE).astype(np.float32)
    level = measure(tone * 0.5)
    assert abs(level.peak_db + 6.02) < 0.05 and abs(level.rms_db + 9.03) < 0.05
    assert measure(tone * 1.001).clipped and not level.clipped
    assert measure(np.zeros(960, np.float32)).rms_db == FLOOR_DB


def test_gate_opens_at_once_holds_and_closes():
    gate = NoiseGate(-40.0)
    quiet, loud = np.full(960, 0.001, np.float32), np.full(960, 0.1, np.float32)
    assert not gate.process(quiet).any() and not gate.is_open
    opened = gate.process(loud)
    assert gate.is_open and (opened[96:] == loud[96:]).all() and (np.diff(opened) >= 0).all()
    held = [gate.process(quiet) for _ in range(11)]
    assert all(np.array_equal(block, quiet) for block in held)
    tail = [gate.process(quiet) for _ in range(6)]
    assert not tail[-1].any() and not gate.is_open
    assert NoiseGate(-100.0).process(quiet) is quiet


# --- positions ----------------------------------------------------------------------------------
def test_marks_interpolate_and_never_run_ahead():
    marks = Marks()
    assert marks.sample_at(0) is None
    for played, sample in ((0, 1000), (960, 1960), (960, 1960), (1921, 2920)):
        marks.add(played, sample)
    assert marks.sample_at(480) == 1480
    assert marks.sample_at(1440) == 1960 + 480 * 960 // 961
    assert marks.sample_at(99_999) == 2920


def test_silent_speaker_plays_by_the_clock_and_waits_when_dry():
    speaker = SilentSpeaker()
    assert speaker.position(0) is None
    speaker._write(np.zeros(4_800), 1_000, 5_800, 0)
    assert speaker.position(50_000_000) == 3_400 and speaker.queued(50_000_000) == 2_400
    assert speaker.position(S) == 5_800 and speaker.queued(S) == 0
    speaker._write(np.zeros(4_800), 5_800, 10_600, 2 * S)
    assert speaker.position(2 * S + 50_000_000) == 8_200
    speaker.flush()
    assert speaker.position(3 * S) is None
