"""The studio without widgets against the real engine process, whose picture is a loudness meter."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import wave

import av
import numpy as np
import psutil
import pytest

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME, samples_to_ms
from engine.protocol.character import CharacterSpec
from studio import sound_out
from studio.engine_process import engine_command
from studio.session_flow import SessionFlow
from studio.settings import StudioSettings

METER = ["--model-module", "tests.engine.meter_model"]


@pytest.fixture(autouse=True)
def no_devices(monkeypatch):
    """A machine without any audio device, whatever this one has."""
    monkeypatch.setattr("studio.audio_devices.load_portaudio", lambda: None)
    monkeypatch.setattr("studio.device_stream.load_portaudio", lambda: None)
    assert sound_out.find_device


class Stage:
    """A flow with a painter that notes what was up when, and how far the sound was."""

    def __init__(self, qtbot, tmp_path, **overrides):
        self.qtbot = qtbot
        settings = StudioSettings(overrides={"model": "meter", **overrides})
        command = [*engine_command(), *METER, "--cache-dir", str(tmp_path / "cache")]
        self.flow = SessionFlow(settings, engine_command=command)
        self.errors, self.painted = [], []
        self.flow.failed.connect(self.errors.append)
        self.flow.frame_waiting.connect(self.paint)

    def paint(self):
        frame = self.flow.mailbox.take()
        if frame is None:
            return
        now = time.monotonic_ns()
        self.flow.timings.painted(frame, now, 0.5)
        position = self.flow.voice.position(now) if self.flow.state.session.live else None
        self.painted.append((now, frame.epoch, frame.pts, position, int(frame.pixels[0, 0, 0])))

    def wait(self, condition, seconds=15):
        self.qtbot.waitUntil(condition, timeout=int(seconds * 1000))

    def on_stage(self, picture=b"meter"):
        self.flow.open_character(CharacterSpec(name="Meter"), picture)
        self.flow.start()
        self.wait(lambda: self.flow.talk.is_running, 30)

    def offsets_ms(self, since_ns=0):
        """Sound minus picture when painted, beyond the frame's own 41.7 ms: + is a late picture."""
        rows = [(p, pts) for now, _, pts, p, _ in self.painted if p is not None and now >= since_ns]
        late = [p - pts - SAMPLES_PER_FRAME for p, pts in rows]
        early = [pts - p for p, pts in rows]
        pairs = zip(late, early, strict=True)
        return np.array([samples_to_ms(max(a, 0) - max(b, 0)) for a, b in pairs])


@pytest.fixture
def stage(qtbot, tmp_path):
    stages = []

    def make(**overrides):
        stages.append(Stage(qtbot, tmp_path, **overrides))
        return stages[-1]

    yield make
    for each in stages:
        each.flow.shut_down()


def beeps(path, seconds, at):
    """A file with 0.25 s beeps at the given seconds."""
    samples = np.zeros(int(seconds * SAMPLE_RATE))
    for start in at:
        first = int(start * SAMPLE_RATE)
        samples[first : first + 12_000] = 0.8 * np.sin(np.arange(12_000) * 0.06)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((samples * 32767).astype(np.int16).tobytes())
    return path


def play(stage, path):
    stage.flow.choose_file(path)
    stage.wait(lambda: stage.flow.state.voice.kind == "file")
    stage.flow.go_live()
    stage.wait(lambda: stage.flow.state.session.live)


def test_a_file_is_seen_heard_and_recorded_in_step(stage, tmp_path):
    s = stage()
    s.on_stage()
    s.flow.start_recording(tmp_path / "take.mp4")
    play(s, beeps(tmp_path / "b.wav", 4.0, (1.0, 2.5)))
    s.wait(lambda: not s.flow.state.session.live, 12)
    s.wait(lambda: s.flow.talk.is_running)
    offsets = s.offsets_ms()
    print(f"offset p50 {np.median(offsets):.1f} max {np.abs(offsets).max():.1f} ms")
    assert len(offsets) > 48
    assert np.percentile(np.abs(offsets), 90) <= 20
    s.flow.save_snapshot(tmp_path / "s.png")
    s.flow.stop_recording()
    s.wait(lambda: s.flow.state.recording.state == "off")
    s.wait(lambda: (tmp_path / "s.png").exists())
    pictures, sound = read_back(tmp_path / "take.mp4")
    onset_s = np.flatnonzero(np.abs(sound) > 0.2)[0] / SAMPLE_RATE
    bright = np.flatnonzero(pictures - np.median(pictures) > 20)
    repeated = s.flow.state.recording.repeated_frames  # a busy machine: each may hide the onset
    print(f"recorded: sound {onset_s:.3f} s, picture {bright[0] / 24:.3f} s, repeated {repeated}")
    assert abs(bright[0] / 24 - onset_s) <= (1 + repeated) / 24, "picture and sound agree"
    assert s.errors == []


def read_back(path):
    pictures, sound = [], []
    with av.open(str(path)) as container:
        for packet in container.demux():
            for item in packet.decode():
                if isinstance(item, av.VideoFrame):
                    pictures.append(item.to_ndarray(format="gray")[600:].mean())
                else:
                    sound.append(item.to_ndarray()[0])
    return np.array(pictures), np.concatenate(sound)


def test_a_gui_stall_of_500_ms_is_made_good(stage, tmp_path):
    s = stage()
    s.on_stage()
    play(s, beeps(tmp_path / "b.wav", 6.0, ()))
    s.qtbot.wait(1500)
    time.sleep(0.5)  # the GUI thread is blocked
    back = time.monotonic_ns()
    s.qtbot.wait(1500)
    after = s.offsets_ms(back + 100_000_000)
    print(f"after the stall: p50 {np.median(after):.1f} max {np.abs(after).max():.1f} ms")
    assert np.percentile(np.abs(after), 90) <= 20
    assert s.flow.timings.view(time.monotonic_ns()).dropped["not_painted"] >= 8


def test_a_blocked_gui_costs_no_memory(stage, tmp_path):
    s = stage()
    s.on_stage()
    play(s, beeps(tmp_path / "b.wav", 30.0, ()))
    s.qtbot.wait(2500)
    gc.collect()
    before = psutil.Process().memory_info().rss
    time.sleep(6)
    grown = (psutil.Process().memory_info().rss - before) / 1e6
    print(f"grown by {grown:.1f} MB in 6 s")
    assert grown < 20


def test_a_killed_engine_comes_back_with_everything(stage, tmp_path):
    s = stage()
    s.on_stage()
    play(s, beeps(tmp_path / "b.wav", 60.0, ()))
    s.qtbot.wait(1000)
    held = s.flow.mailbox.latest
    killed = time.monotonic()
    os.kill(s.flow.engine.process.pid, signal.SIGKILL)
    s.wait(lambda: s.flow.state.engine.link == "recovering", 5)
    assert s.flow.mailbox.latest.frame_index >= held.frame_index, "the last frame stays up"
    s.wait(lambda: s.flow.state.session.live, 20)
    count = len(s.painted)
    s.wait(lambda: len(s.painted) > count + 10, 20)
    print(f"live again after {time.monotonic() - killed:.1f} s")
    assert s.flow.state.engine.restarts == 1
    assert "killed by signal 9" in " ".join(map(str, s.errors)) or s.errors == []


def test_going_live_too_early_is_told_and_kept_in_mind(stage):
    s = stage(voice="microphone")
    s.flow.open_character(CharacterSpec(name="Meter"), b"meter")
    s.flow.start()
    s.flow.go_live()
    assert "begins by itself" in str(s.errors[0]) and not s.flow.state.session.live
    s.wait(lambda: s.flow.state.session.live, 30)


def test_interruption_drops_what_was_under_way(stage, tmp_path):
    s = stage(voice="microphone")  # no device: silence at the pace of the clock
    s.on_stage()
    s.flow.go_live()
    s.wait(lambda: s.flow.state.session.live)
    s.qtbot.wait(700)
    before = s.painted[-1][1]
    s.flow.interrupt()
    at = time.monotonic_ns()
    s.wait(lambda: s.painted and s.painted[-1][1] > before)
    s.qtbot.wait(400)
    epochs = [row[1] for row in s.painted]
    assert epochs == sorted(epochs)
    stale = [row for row in s.painted if row[1] <= before and row[0] > at + 20_000_000]
    assert stale == []
    s.flow.stop()
    assert not s.flow.state.session.live


def test_refusals_are_one_line_and_nothing_breaks(stage, tmp_path):
    s = stage()
    s.flow.go_live()
    assert s.errors[-1].code == "not_ready" and "character" in str(s.errors[-1])
    s.flow.open_character(CharacterSpec(), b"refuse")
    s.flow.start()
    s.wait(lambda: s.errors[-1].code == "no_face", 30)
    assert not s.flow.state.character.busy
    s.flow.choose_file(tmp_path / "nothing.wav")
    s.wait(lambda: s.errors[-1].code == "bad_audio")
    (tmp_path / "text.wav").write_text("this is no sound")
    s.flow.choose_file(tmp_path / "text.wav")
    s.wait(lambda: "text.wav" in str(s.errors[-1]))
    s.flow.open_character(CharacterSpec(), b"meter")
    s.wait(lambda: s.flow.talk.is_running, 20)


def test_seeking_while_live_continues_from_there(stage, tmp_path):
    s = stage()
    positions = []
    s.flow.state.position_changed.connect(positions.append)
    s.on_stage()
    play(s, beeps(tmp_path / "b.wav", 20.0, ()))
    s.qtbot.wait(1000)
    s.flow.seek(10 * SAMPLE_RATE)
    s.wait(lambda: positions[-1] > 10.5 * SAMPLE_RATE, 5)
    assert s.offsets_ms(time.monotonic_ns() - 300_000_000).size > 3
    s.flow.stop()
    s.qtbot.wait(200)
    assert abs(positions[-1] - 10.8 * SAMPLE_RATE) < 0.6 * SAMPLE_RATE, "stop keeps the place"


def test_an_engine_that_was_stopped_for_a_while_is_brought_back_in_step(stage, tmp_path):
    s = stage()
    s.on_stage()
    play(s, beeps(tmp_path / "b.wav", 30.0, ()))
    s.qtbot.wait(1000)
    worker = psutil.Process(s.flow.engine.process.pid).children()[0]
    worker.suspend()
    s.qtbot.wait(1600)
    assert s.flow.state.session.stalled, "no picture for a second is said"
    worker.resume()
    s.qtbot.wait(3000)
    recent = s.offsets_ms(time.monotonic_ns() - 1_000_000_000)
    print(f"after the engine's stall: p50 {np.median(recent):.1f} ms, n {len(recent)}")
    assert len(recent) > 15 and abs(np.median(recent)) <= 20
    assert s.flow.state.session.live and not s.flow.state.session.stalled


def test_skipping_leaves_the_sound_alone(stage, tmp_path):
    s = stage()
    s.on_stage()
    play(s, beeps(tmp_path / "b.wav", 30.0, ()))
    s.qtbot.wait(1200)
    positions = []
    s.flow.state.position_changed.connect(lambda at: positions.append((time.monotonic(), at)))
    epoch = s.painted[-1][1]
    s.flow.catch_up()
    s.qtbot.wait(1500)
    assert s.painted[-1][1] == epoch + 1
    times, samples = np.array(positions).T
    line = np.polyfit(times - times[0], samples, 1)
    assert abs(line[0] / SAMPLE_RATE - 1) < 0.02
    assert np.abs(np.polyval(line, times - times[0]) - samples).max() < 0.06 * SAMPLE_RATE
    recent = s.offsets_ms(time.monotonic_ns() - 500_000_000)
    assert len(recent) > 6 and abs(np.median(recent)) <= 20


def serve_elsewhere(tmp_path, *flags):
    """An engine of its own on loopback tcp -> (process, ready line)."""
    command = [sys.executable, "-m", "engine", "serve", "--json", "--bind", "127.0.0.1", *METER]
    process = subprocess.Popen(
        [*command, "--cache-dir", str(tmp_path / "c"), *flags], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    return process, json.loads(process.stdout.readline())


@pytest.mark.parametrize("with_keys", [False, True])
def test_an_engine_elsewhere_by_token_or_by_keys(stage, tmp_path, with_keys):
    keys = str(tmp_path / "keys")
    process, ready = serve_elsewhere(tmp_path, *(["--curve-key-dir", keys] if with_keys else []))
    try:
        secret = {"engine_keys": keys} if with_keys else {"engine_token": ready["token"]}
        s = stage(engine=ready["endpoints"]["control"], **secret)
        s.on_stage()
        s.wait(lambda: len(s.painted) > 5)
        assert not s.flow.state.engine.local and s.flow.engine.process is None
        assert s.errors == []
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    s.wait(lambda: s.flow.state.engine.link == "lost", 8)


def test_a_wrong_token_and_missing_keys_are_said(stage, tmp_path):
    process, ready = serve_elsewhere(tmp_path)
    try:
        s = stage(engine=ready["endpoints"]["control"], engine_token="wrong")
        s.flow.start()
        s.wait(lambda: s.flow.state.engine.link == "failed", 10)
        assert s.errors and s.flow.state.engine.detail == str(s.errors[0])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    t = stage(engine="tcp://gpu:1", engine_keys=str(tmp_path / "none"))
    t.flow.start()
    assert "engine.key is missing" in str(t.errors[0])
