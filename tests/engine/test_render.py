"""A short clip from picture and sound to MP4, read back; bad input; Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import wave

import av
import numpy as np
import pytest

from engine.mp4 import Mp4Writer
from tests.engine.wire_client import ROOT


def write_wav(path, samples, rate=48_000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def render(folder, audio, *more, out="out.mp4"):
    picture = folder / "picture"
    picture.write_bytes(b"meter")
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "engine",
            "render",
            "--model",
            "meter",
            "--model-module",
            "tests.engine.meter_model",
            "--image",
            str(picture),
            "--audio",
            str(audio),
            "--out",
            str(folder / out),
            "--json",
            "--cache-dir",
            str(folder / "cache"),
            *more,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the suite in the background has its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def levels(path):
    """Brightness of the lowest row and pts in samples, of every frame."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        scale = float(stream.time_base) * 48_000
        return [
            (f.to_ndarray(format="gray")[-4].mean(), f.pts * scale)
            for f in container.decode(stream)
        ]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """2.03 s: quiet, loud from exactly 1 s on."""
    folder = tmp_path_factory.mktemp("render")
    samples = np.zeros(97_400, np.float32)
    samples[48_000:] = 0.9 * np.sign(np.sin(np.arange(49_400) / 10))
    write_wav(folder / "a.wav", samples)
    process = render(folder, folder / "a.wav")
    out, log = process.communicate(timeout=100)
    assert process.returncode == 0, log
    return folder, json.loads(out), log


def test_report(clip):
    _, told, log = clip
    assert told["frames"] == 49 and told["fps"] == 24 and told["model"] == "meter"
    assert told["duration_s"] == pytest.approx(97_400 / 48_000, abs=1e-6)
    assert (told["width"], told["height"]) == (704, 1088) and told["realtime_factor"] > 0
    for stage in ("encode", "denoise", "decode", "mux"):
        assert 0 <= told["stages"][stage]["p50_ms"] <= told["stages"][stage]["p95_ms"]
    assert "Traceback" not in log and "wrote" in log


def test_the_file_has_exactly_these_frames_and_this_sound(clip):
    folder, _, _ = clip
    with av.open(str(folder / "out.mp4")) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        assert (video.codec.name, audio.codec.name) == ("h264", "aac")
        assert (video.width, video.height, video.average_rate) == (704, 1088, 24)
        assert video.start_time == 0 and (audio.start_time or 0) == 0
        frames = [f.pts * video.time_base for f in container.decode(video)]
        assert len(frames) == 49
        assert [f * 48_000 for f in frames] == [2_000 * i for i in range(49)]
        length = audio.duration * audio.time_base * 48_000
        assert abs(length - 97_400) <= 1024  # an AAC frame


def test_sound_and_picture_change_at_the_same_time(clip):
    folder, _, _ = clip
    brightness = [level for level, _ in levels(folder / "out.mp4")]
    assert max(brightness[:24]) < 100 < min(brightness[24:])
    with av.open(str(folder / "out.mp4")) as container:
        pcm = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
        first = next(iter(av.open(str(folder / "out.mp4")).decode(audio=0)))
    loud = np.flatnonzero(np.abs(pcm) > 0.4)[0] + first.pts
    assert abs(loud - 48_000) < 480  # 10 ms: the codec smears an edge


def test_colours_survive_and_are_labelled(tmp_path):
    colours = [(30, 60, 200), (200, 180, 40), (128, 128, 128), (90, 140, 215)]  # BGR
    writer = Mp4Writer(tmp_path / "c.mp4")
    for i, colour in enumerate(colours):
        writer.video(i, np.full((1088, 704, 4), (*colour, 255), np.uint8), lambda: None)
    writer.sound(np.zeros(8000, np.float32))
    writer.finish()
    with av.open(str(tmp_path / "c.mp4")) as container:
        frames = list(container.decode(video=0))
    assert {(int(f.colorspace), int(f.color_range)) for f in frames} == {(6, 1)}
    for frame, colour in zip(frames, colours, strict=True):
        got = frame.to_ndarray(format="bgr24").reshape(-1, 3).mean(0)
        assert np.abs(got - colour).max() < 4, (got, colour)


def test_same_input_same_pictures(clip):
    folder, _, _ = clip
    process = render(folder, folder / "a.wav", "--seed", "1", out="again.mp4")
    process.communicate(timeout=100)
    assert levels(folder / "again.mp4") == levels(folder / "out.mp4")


@pytest.mark.parametrize("format_", ["mp3", "m4a", "flac", "ogg", "opus"])
def test_common_formats(tmp_path, format_):
    path = tmp_path / f"a.{format_}"
    codecs = {"m4a": "aac", "ogg": "libopus", "opus": "libopus", "mp3": "libmp3lame"}
    with av.open(str(path), "w") as container:
        rate = 48_000 if format_ in ("opus", "ogg") else 44_100
        stream = container.add_stream(codecs.get(format_, format_), rate=rate, layout="stereo")
        wave_ = np.sin(np.arange(stream.rate) * 0.05).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(np.stack([wave_, wave_]), format="fltp", layout="stereo")
        frame.sample_rate = stream.rate
        resampler = av.AudioResampler(stream.format.name, "stereo", stream.rate)
        fifo = av.AudioFifo()
        for piece in resampler.resample(frame):
            piece.pts = None
            fifo.write(piece)
        size = stream.codec_context.frame_size or 4096
        while (piece := fifo.read(size, partial=True)) is not None:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    process = render(tmp_path, path)
    out, log = process.communicate(timeout=100)
    assert process.returncode == 0, log
    assert 24 <= json.loads(out)["frames"] <= 26  # encoders pad
    assert max(level for level, _ in levels(tmp_path / "out.mp4")) > 100


def silent_video(path):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=24, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(5):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("empty.wav", lambda p: p.write_bytes(b""), "is empty"),
        ("noise.mp3", lambda p: p.write_bytes(bytes(range(256)) * 40), "cannot be read as audio"),
        ("film.mp4", silent_video, "no audio stream"),
        ("none.wav", lambda p: write_wav(p, np.zeros(0)), "no"),
        ("absent.wav", lambda p: None, "is not a file"),
        ("words.wav", lambda p: p.write_text("not audio at all"), "cannot be read as audio"),
    ],
)
def test_bad_audio_is_one_line(tmp_path, name, make, words):
    make(tmp_path / name)
    process = render(tmp_path, tmp_path / name)
    out, log = process.communicate(timeout=100)
    assert process.returncode == 2
    lines = [line for line in log.splitlines() if line.startswith("avatar-engine:")]
    assert len(lines) == 1 and words in lines[0] and "Traceback" not in log
    assert json.loads(out)["error"]["code"] == "bad_audio"
    assert not list(tmp_path.glob("*.mp4")) or name == "film.mp4"
    assert not list(tmp_path.glob(".*.part"))


def test_a_truncated_wav_plays_as_far_as_it_goes(tmp_path):
    path = tmp_path / "cut.wav"
    write_wav(path, np.full(48_000, 0.5))
    path.write_bytes(path.read_bytes()[:50_000])
    process = render(tmp_path, path)
    out, log = process.communicate(timeout=100)
    assert process.returncode == 0, log
    assert json.loads(out)["frames"] == 13  # 24,978 samples


def test_ctrl_c_leaves_no_file(tmp_path):
    write_wav(tmp_path / "long.wav", np.zeros(48_000 * 120))
    process = render(tmp_path, tmp_path / "long.wav")
    while not list(tmp_path.glob(".*.part")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, log = process.communicate(timeout=30)
    assert process.returncode == 130 and out == "" and "Traceback" not in log
    assert not list(tmp_path.glob("*.mp4")) and not list(tmp_path.glob(".*.part"))


def test_an_older_file_stays_when_a_render_fails(tmp_path):
    (tmp_path / "out.mp4").write_bytes(b"precious")
    (tmp_path / "bad.wav").write_bytes(b"junk" * 100)
    process = render(tmp_path, tmp_path / "bad.wav")
    process.communicate(timeout=100)
    assert (tmp_path / "out.mp4").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--settings", "mouth=9"], "0 to 2"),
        (["--settings", "mout=1"], "mouth"),
        (["--settings", "mouth=x"], "not understood"),
        (["--out", "/nowhere/at/all.mp4"], "existing folder"),
        (["--out", "film.avi"], ".mp4"),
        (["--model", "portrat"], "portrait"),
        (["--image", "/absent.png"], "cannot be read"),
    ],
)
def test_bad_options_name_the_remedy(tmp_path, more, words):
    write_wav(tmp_path / "a.wav", np.zeros(4_800))
    process = render(tmp_path, tmp_path / "a.wav", *more)
    _, log = process.communicate(timeout=100)
    assert process.returncode == 2 and words in log and "Traceback" not in log
