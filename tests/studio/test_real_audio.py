"""Real streams: capture, playback, positions, loss and return on a private PulseAudio server."""

from __future__ import annotations

import time

import numpy as np
import pytest

from engine.clock import SAMPLE_RATE, ms_to_samples, samples_to_ms
from engine.errors import EngineError
from studio.audio_devices import find_device, list_devices, load_portaudio, restart_portaudio
from studio.audio_io import Microphone
from studio.device_watch import DeviceWatch
from studio.microphone_source import MicrophoneSource
from studio.sound_out import SoundOut
from studio.speaker import Speaker
from studio.voice import Voice
from studio.voice_level import FLOOR_DB
from tests.studio.pulse_server import BOOTH, start_or_skip

pytestmark = pytest.mark.audio_device


@pytest.fixture(scope="module")
def pulse(tmp_path_factory):
    server = start_or_skip(tmp_path_factory.mktemp("pulse"))
    with pytest.MonkeyPatch.context() as patch:
        for key, value in server.environment.items():
            patch.setenv(key, value)
        restart_portaudio()
        names = [row["name"] for row in load_portaudio().query_devices()]
        if "pulse" not in names:
            server.close()
            pytest.skip("the ALSA plug-in for PulseAudio (libasound2-plugins) is not installed")
        yield server
    server.close()
    restart_portaudio()


@pytest.fixture
def watch():
    changes = []
    watch = DeviceWatch(lambda: changes.append(time.monotonic()))
    watch.start()
    wait_for(lambda: watch.inputs is not None, 5)
    yield watch
    watch.close()


def wait_for(condition, seconds):
    """-> seconds it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s"
        time.sleep(0.01)
    return time.monotonic() - begun


def read_for(microphone, seconds):
    blocks = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        while (block := microphone.read()) is not None:
            blocks.append(block)
        time.sleep(0.005)
    return blocks


def test_devices_are_listed_by_name(pulse):
    assert [d.name for d in list_devices("input")] == ["Monitor of Room", BOOTH]
    assert [d.name for d in list_devices("output")] == ["Room", "Booth"]
    with pytest.raises(EngineError, match="'Loft' is not there"):
        find_device("input", "Loft")


def test_microphone_hears_what_is_played(pulse):
    tone = 0.5 * np.sin(2 * np.pi * 997 * np.arange(8 * SAMPLE_RATE) / SAMPLE_RATE)
    player = pulse.play("booth", tone)
    microphone = Microphone(find_device("input", BOOTH))
    microphone.open()
    try:
        blocks = read_for(microphone, 5.0)
    finally:
        microphone.close()
        player.kill()
        player.wait()
    assert [b.first for b in blocks] == list(range(0, 480 * len(blocks), 480))
    sound = np.concatenate([b.samples for b in blocks])
    heard = sound[np.abs(sound) > 0.01]
    assert len(heard) > SAMPLE_RATE
    middle = sound[-SAMPLE_RATE:]
    spectrum = np.abs(np.fft.rfft(middle))
    assert spectrum.argmax() == 997
    assert abs(np.sqrt(np.mean(middle**2)) - 0.5 / np.sqrt(2)) < 0.02
    steady = np.diff([block.captured_ns for block in blocks[-60:]]) / 1e6
    assert abs(np.mean(steady) - 10.0) < 0.5 and steady.min() > 0


def test_speaker_position_agrees_with_what_a_microphone_hears(pulse):
    """Clicks into the sink, heard at its monitor: when heard, the position says the same click."""
    speaker = Speaker(find_device("output", "Booth"))
    microphone = Microphone(find_device("input", BOOTH))
    speaker.open()
    microphone.open()
    heard, positions, written = [], [], 0
    try:
        end = time.monotonic() + 6.0
        while time.monotonic() < end:
            while speaker.queued(time.monotonic_ns()) < 4_800:
                samples = np.zeros(960, np.float32)
                if written % 24_000 == 0:
                    samples[0] = 0.9
                speaker.write(samples, written, written + 960)
                written += 960
            now = time.monotonic_ns()
            if (position := speaker.position(now)) is not None:
                positions.append((now, position))
            while (block := microphone.read()) is not None:
                clicks = np.flatnonzero(np.abs(block.samples) > 0.4)
                heard += [block.captured_ns + int(at) * 10**9 // SAMPLE_RATE for at in clicks]
            time.sleep(0.005)
    finally:
        speaker.close()
        microphone.close()
    times, samples = np.array(positions, np.float64).T
    assert len(heard) >= 5
    # The null sink changes its latency when the first streams open: its first two seconds are odd.
    late = [at for at in heard if at > times[0] + 2.5e9]
    said = np.interp(late, times, samples)
    off_ms = np.array([samples_to_ms((s + 12_000) % 24_000 - 12_000) for s in said])
    print("speaker position against its monitor, ms:", np.round(off_ms, 1))
    assert np.abs(np.median(off_ms)) < 60  # the null sink's own latency is part of it
    assert off_ms.std() < 10
    steady = np.polyfit(times[100:] / 1e9, samples[100:], 1)[0]
    assert abs(steady / SAMPLE_RATE - 1) < 2e-3


def test_monitor_is_heard_when_its_picture_is_due(pulse):
    """Clicks into one sink, captured, delayed, played into the other, captured there: the voice's
    position at the moment a click is heard is that click's own sample.

    The gate is off: it opens over 2 ms, and where a click falls on the first samples of a block,
    which depends on the moment the device was opened, nothing would be heard of any of them.
    """
    picture_delay = ms_to_samples(200)
    clicks = np.zeros(12 * SAMPLE_RATE)
    clicks[::24_000] = 0.9
    player = pulse.play("booth", clicks)
    sent, positions, heard = [], [], []
    voice = Voice(sent.append, lambda what, value: None, picture_delay=lambda: picture_delay)
    room = Microphone(find_device("input", "Monitor of Room"))
    try:
        voice.start()
        voice.use_microphone(BOOTH)
        voice.use_speaker("Room")
        voice.monitor(True)
        voice.gate(FLOOR_DB)
        wait_for(lambda: voice._microphone and voice._microphone._microphone, 8)
        voice.go(1, 1, 480)
        room.open()
        end = time.monotonic() + 7
        while time.monotonic() < end:
            now = time.monotonic_ns()
            position = voice.position(now)
            if position is not None:
                positions.append((now, position))
            while (block := room.read()) is not None:
                loud = np.flatnonzero(np.abs(block.samples) > 0.3)
                heard += [block.captured_ns + int(at) * 10**9 // SAMPLE_RATE for at in loud]
            time.sleep(0.005)
    finally:
        voice.close()
        room.close()
        player.kill()
        player.wait()
    spoken = [b.first_sample + at for b in sent for at in np.flatnonzero(np.abs(b.samples) > 0.3)]
    times, samples = np.array(positions, np.float64).T
    late = [at for at in heard if at > times[0] + 3e9 and at < times[-1]]
    said = np.interp(late, times, samples)
    off_ms = [samples_to_ms(min(np.subtract(spoken, at), key=abs)) for at in said]
    print("monitor: heard against position, ms:", np.round(off_ms, 1))
    assert len(off_ms) >= 3 and abs(np.median(off_ms)) < 10
    captures = {b.first_sample: b.capture_time_ns for b in sent}
    delays = []
    for at, sample in zip(late, said, strict=True):
        click = min(spoken, key=lambda s, sample=sample: abs(s - sample))
        first = max(f for f in captures if f <= click)
        delays.append((at - captures[first]) / 1e6 - samples_to_ms(click - first))
    print("microphone to monitor, ms:", np.round(delays, 1))
    assert abs(np.median(delays) - 215) < 60, "the picture's delay and the margin"


def test_microphone_loss_is_seen_and_healed_by_name(pulse, watch):
    source = MicrophoneSource(BOOTH, lambda name: watch.is_gone("input", name), lambda: True)
    blocks = []

    def read():
        blocks.extend(source.read(time.monotonic_ns()))
        return source

    def heard():
        return blocks[-1].first / SAMPLE_RATE if blocks else 0.0

    try:
        # a null sink's monitor says its first word up to 2 s after opening
        wait_for(lambda: read()._microphone is not None, 6)
        pulse.unplug("booth")
        lost_s = wait_for(lambda: read().is_lost, 3)
        wait_for(lambda: read() and heard() > 4 and "is not there" in source.why, 6)
        assert source.is_lost and "is not there" in source.why
        pulse.plug("booth", "Booth")
        healed_s = wait_for(lambda: not read().is_lost and source._microphone is not None, 8)
        print(f"lost after {lost_s:.2f} s, healed after {healed_s:.2f} s")
        assert lost_s <= 2.0
        wait_for(lambda: read() and heard() > 8, 6)
    finally:
        source.close()
    steps = np.diff([block.first for block in blocks])
    lengths = np.array([len(block.samples) for block in blocks])
    assert (steps >= lengths[:-1]).all(), "positions never go back or overlap"
    real_s = (blocks[-1].captured_ns - blocks[0].captured_ns) / 1e9
    counted_s = (blocks[-1].first - blocks[0].first) / SAMPLE_RATE
    assert abs(counted_s - real_s) < 0.8, "a null sink's monitor is 0.5 s old"


def test_speaker_loss_goes_on_silently_and_heals(pulse, watch):
    out = SoundOut("Booth", lambda name: watch.is_gone("output", name), lambda: True)
    try:
        wait_for(lambda: out.check(time.monotonic_ns()), 5)
        assert isinstance(out.sink, Speaker)
        pulse.unplug("booth")
        lost_s = wait_for(lambda: out.check(time.monotonic_ns()) and out.is_lost, 3)
        pulse.plug("booth", "Booth")
        wait_for(lambda: out.check(time.monotonic_ns()) and isinstance(out.sink, Speaker), 6)
        print(f"lost after {lost_s:.2f} s")
        assert lost_s <= 2.0 and not out.is_lost
    finally:
        out.close()
