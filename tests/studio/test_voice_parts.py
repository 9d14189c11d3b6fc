"""File decoding, file play, monitor, microphone source and the engine process, without devices."""

from __future__ import annotations

import sys
import time

import av
import numpy as np
import pytest

from engine.clock import SAMPLE_RATE, ms_to_samples
from engine.errors import EngineError
from studio.audio_io import CapturedBlock
from studio.engine_process import RESTARTS, EngineProcess, parse_ready
from studio.file_audio import FileAudio
from studio.file_play import FilePlay
from studio.heard import Marks
from studio.microphone_source import MicrophoneSource
from studio.monitor import Monitor
from studio.opener import Opener
from studio.silent_speaker import SilentSpeaker

NS = 1_000_000_000


def encode(path, codec, rate=44_100, layout="stereo", seconds=2.0, hertz=440.0):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        tone = 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)
        channels = 2 if layout == "stereo" else 1
        data = np.repeat(tone[None].astype(np.float32), channels, 0)
        resampler = av.AudioResampler(stream.format, layout, rate, stream.frame_size or None)
        sound = av.AudioFrame.from_ndarray(np.ascontiguousarray(data), "fltp", layout)
        sound.sample_rate = rate
        for part in [*resampler.resample(sound), *resampler.resample(None)]:
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("name", "codec", "rate", "layout"),
    [
        ("a.wav", "pcm_s16le", 44_100, "stereo"), ("a.flac", "flac", 96_000, "mono"),
        ("a.mp3", "libmp3lame", 44_100, "stereo"), ("a.ogg", "libopus", 48_000, "stereo"),
        ("a.opus", "libopus", 48_000, "mono"), ("a.m4a", "aac", 22_050, "mono"),
        ("a.wav", "pcm_f32le", 8_000, "mono"),
    ],
)  # fmt: skip
def test_common_formats_become_48_khz_mono(tmp_path, name, codec, rate, layout):
    file = FileAudio(encode(tmp_path / name, codec, rate, layout))
    assert abs(len(file) / SAMPLE_RATE - 2.0) < 0.1
    middle = file.samples(SAMPLE_RATE // 2, SAMPLE_RATE)
    assert np.abs(np.fft.rfft(middle)).argmax() == 440
    assert 0.3 < np.sqrt(np.mean(middle**2)) < 0.4
    low, high = file.overview(200)
    assert low.shape == high.shape == (200,) and high[50:150].min() > 0.4 and low.min() >= -1.0


def test_file_edges(tmp_path):
    file = FileAudio(encode(tmp_path / "a.wav", "pcm_s16le", 48_000, "mono", 0.1))
    assert not file.samples(-10, 10).any() and not file.samples(len(file), 10).any()
    assert file.samples(len(file) - 5, 10)[5:].sum() == 0
    truncated = tmp_path / "t.flac"
    whole = encode(tmp_path / "w.flac", "flac", 48_000, "mono", 3.0).read_bytes()
    truncated.write_bytes(whole[: len(whole) // 2])
    assert len(FileAudio(truncated)) > 0.5 * SAMPLE_RATE


@pytest.mark.parametrize("data", [b"", b"hello", b"RIFF\x00\x00\x00\x00WAVE", bytes(5_000)])
def test_unreadable_files_are_one_line(tmp_path, data):
    path = tmp_path / "odd.wav"
    path.write_bytes(data)
    with pytest.raises(EngineError) as caught:
        FileAudio(path)
    assert caught.value.code == "bad_audio" and "odd.wav" in str(caught.value)
    assert "\n" not in str(caught.value) and caught.value.hint


# --- file play ----------------------------------------------------------------------------------
class FakeSink:
    """A speaker whose clock is `now_ns` at a rate that may be wrong, with a latency."""

    def __init__(self, ppm=0.0, latency=960):
        self.marks, self.written, self.ppm, self.latency = Marks(), 0, ppm, latency
        self.start_ns = None
        self.sound = []

    def write(self, samples, first, following):
        self.marks.add(self.written, first)
        self.written += len(samples)
        self.marks.add(self.written, following)
        self.sound.append(samples)

    def elapsed(self, now_ns):
        if self.start_ns is None:
            self.start_ns = now_ns if self.written else None
        seconds = 0 if self.start_ns is None else (now_ns - self.start_ns) / NS
        return int(seconds * SAMPLE_RATE * (1 + self.ppm * 1e-6))

    def taken(self, now_ns):
        return min(self.elapsed(now_ns), self.written)

    def queued(self, now_ns):
        return self.written - self.taken(now_ns)

    def position(self, now_ns):
        return self.marks.sample_at(min(max(self.elapsed(now_ns) - self.latency, 0), self.written))

    def flush(self):
        self.__init__(self.ppm, self.latency)


class FakeFile:
    def __init__(self, seconds):
        self.count = int(seconds * SAMPLE_RATE)

    def __len__(self):
        return self.count

    def samples(self, first, count):
        return np.arange(first, first + count, dtype=np.float32)


@pytest.mark.parametrize("ppm", [-200, 0, 200])
def test_sound_waits_for_the_picture_and_the_engine_leads_it(ppm):
    sink, sent = FakeSink(ppm), []
    play = FilePlay(FakeFile(20), 480, 10_000, 0)
    head, began = -1, None
    for ms in range(0, 25_000, 10):
        play.step(ms * 1_000_000, sink, head, lambda *row: sent.append(row))
        if ms == 200:
            assert not play.is_sounding and play.position(ms * 1_000_000, sink) == 9_999
            head = 10_000
        began = ms if play.is_sounding and began is None else began
        here = play.position(ms * 1_000_000, sink)
        lead = sent[-1][0] - here
        if not sent[-1][2]:
            assert ms_to_samples(560) <= lead <= ms_to_samples(640)
        if play.is_finished:
            break
    assert 200 <= began <= 220
    assert [row[0] for row in sent] == list(range(10_000, 10_000 + 20 * SAMPLE_RATE - 480, 960))
    assert [row[2] for row in sent].count(True) == 1 and sent[-1][2]
    assert np.array_equal(np.concatenate(sink.sound), np.arange(480, 20 * SAMPLE_RATE))
    assert abs(ms / 1000 - began / 1000 - 20) < 0.1


def test_sound_begins_without_a_picture_after_a_while():
    sink, play = FakeSink(), FilePlay(FakeFile(5), 0, 0, 0)
    for ms in range(0, 1_700, 10):
        play.step(ms * 1_000_000, sink, -1, lambda *row: None)
    assert play.is_sounding


def test_a_dead_sink_is_left_at_the_sample_heard_last():
    sink, play = FakeSink(), FilePlay(FakeFile(10), 0, 0, 0)
    for ms in range(0, 3_000, 10):
        play.step(ms * 1_000_000, sink, 0, lambda *row: None)
    here = play.file_position(3 * NS, sink)
    play.move_to(sink, 3 * NS)
    other = SilentSpeaker()
    other.open()
    play.step(3 * NS, other, 0, lambda *row: None)
    assert play.is_sounding and abs(play.file_position(3 * NS, other) - here) < 960


# --- monitor ------------------------------------------------------------------------------------
@pytest.mark.parametrize("ppm", [-200, 200])
def test_monitor_keeps_sound_and_lips_together_with_wrong_clocks(ppm):
    sink, monitor = FakeSink(ppm), Monitor()
    picture_delay = ms_to_samples(130)
    delays = []
    for block in range(50 * 240):
        now_ns = (block + 1) * 20_000_000
        first = block * 960
        captured = first + 960
        monitor.write(np.zeros(960, np.float32), first, captured, picture_delay, now_ns, sink)
        heard = sink.position(now_ns)
        if heard is not None and block > 50 * 60:
            delays.append(captured - heard)
    off_ms = (np.array(delays) - picture_delay) * 1000 / SAMPLE_RATE
    assert np.abs(off_ms - 15).max() < 8, "at the picture's delay plus its margin"


# --- microphone source --------------------------------------------------------------------------
class FakeMicrophone:
    def __init__(self):
        from studio.audio_devices import Device
        from studio.sample_clock import SampleClock

        self.device, self.clock = Device("Desk", "input", "x"), SampleClock()
        self.dead, self.has_spoken, self.closed, self.given = False, True, False, 0
        self.opened_ns, self.ready = None, []

    def read(self):
        return self.ready.pop(0) if self.ready else None

    def is_alive(self, now_ns):
        return not self.dead

    def close(self):
        self.closed = True

    def speak(self, now_ns):
        """All blocks that are complete by now."""
        self.opened_ns = now_ns if self.opened_ns is None else self.opened_ns
        self.ready = []
        while (self.given + 1) * 20_000_000 <= now_ns - self.opened_ns:
            ones = np.ones(960, np.float32)
            self.ready.append(CapturedBlock(self.given * 960, now_ns, ones))
            self.given += 1
        self.clock.stamp(self.given * 960, now_ns)


def test_positions_go_on_through_loss_and_return(monkeypatch):
    source = MicrophoneSource("Desk", lambda name: False, lambda: True)
    available = []
    monkeypatch.setattr(source._opener, "poll", lambda now: None)
    monkeypatch.setattr(source._opener, "take", lambda: available.pop() if available else None)
    microphone, blocks = FakeMicrophone(), []
    for ms in range(0, 9_000, 10):
        now = ms * 1_000_000
        if ms == 1_000:
            available.append(microphone)
        if ms == 4_000:
            microphone.dead = True
            assert not source.is_lost
        if ms == 6_000:
            assert source.is_lost and microphone.closed
            microphone = FakeMicrophone()
            available.append(microphone)
            source._opener.failures = 0
        if source._microphone is microphone and not microphone.dead:
            microphone.speak(now)
        blocks += source.read(now)
    firsts = np.array([block.first for block in blocks])
    assert (np.diff(firsts) >= 960).all() and (np.diff(firsts) < 2 * 960).all()
    assert abs(firsts[-1] / SAMPLE_RATE - 9.0) < 0.1, "as long as real time"
    loud = np.array([block.samples.any() for block in blocks])
    spoken_s = loud.sum() * 0.02
    assert abs(spoken_s - 6.0) < 0.2


def test_a_suspended_process_does_not_flood(monkeypatch):
    source = MicrophoneSource("Desk", lambda name: False, lambda: True)
    monkeypatch.setattr(source._opener, "poll", lambda now: None)
    source.read(0)
    assert source.read(3600 * NS) == []
    assert len(source.read(3600 * NS + 40_000_000)) == 2


def test_opener_tries_again_and_reports():
    tries = []

    def attempt():
        tries.append(1)
        if len(tries) == 1:
            raise EngineError("device_lost", "not yet")
        return "device"

    opener = Opener(attempt)
    opener.poll(0)
    opener.wait(2)
    assert opener.take() is None and opener.failures == 1 and str(opener.error) == "not yet"
    opener.poll(500_000_000)
    assert len(tries) == 1, "not before a second"
    opener.poll(1_100_000_000)
    opener.wait(2)
    assert opener.take() == "device" and opener.failures == 0


# --- engine process -----------------------------------------------------------------------------
READY = '{"ready": true, "pid": 4, "endpoints": {"control": "ipc:///x"}, "token": "t"}'


def test_ready_line():
    ready = parse_ready(READY + "\n")
    assert (ready.control, ready.token, ready.pid) == ("ipc:///x", "t", 4)
    for line in ("", "hello", "[]", '{"ready": false}', '{"ready": true}'):
        assert parse_ready(line) is None


class Watcher:
    def __init__(self, code, monkeypatch):
        monkeypatch.setattr("studio.engine_process.BACK_OFF_S", (0.01,))
        self.ready, self.restarts, self.failures, self.lines = [], [], [], []
        self.process = EngineProcess(
            self.ready.append, self.restarts.append, self.failures.append, self.lines.append,
            [sys.executable, "-c", code],
        )  # fmt: skip
        self.process.start()

    def wait(self, condition):
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_an_engine_that_always_dies_is_given_up_with_its_last_words(monkeypatch):
    code = "import sys; sys.stderr.write('no libfoo\\n'); sys.exit(3)"
    watcher = Watcher(code, monkeypatch)
    watcher.wait(lambda: watcher.failures)
    assert len(watcher.restarts) == RESTARTS
    assert "code 3: no libfoo" in str(watcher.failures[0]) and "doctor" in watcher.failures[0].hint
    assert "no libfoo" in watcher.lines
    watcher.process.stop()


def test_an_engine_is_stopped_and_leaves_nothing(monkeypatch):
    code = f"import time; print({READY!r}, flush=True); time.sleep(60)"
    watcher = Watcher(code, monkeypatch)
    watcher.wait(lambda: watcher.ready)
    process = watcher.process._process
    watcher.process.stop()
    watcher.process.stop()
    assert process.poll() is not None and watcher.failures == [] and watcher.restarts == []


def test_a_missing_program_is_said(monkeypatch):
    failures = []
    monkeypatch.setattr("studio.engine_process.BACK_OFF_S", (0.0,))
    process = EngineProcess(print, lambda why: None, failures.append, print, ["/no/such/engine"])
    process.start()
    process._thread.join(10)
    assert "/no/such/engine cannot be started" in str(failures[0])
