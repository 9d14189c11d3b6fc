"""Recordings are read back: frames, rate, start, sync of a flash and a click, pauses, kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from engine.clock import HEIGHT, SAMPLE_RATE, SAMPLES_PER_BLOCK, SAMPLES_PER_FRAME, WIDTH
from engine.errors import EngineError
from engine.protocol.audio_block import AudioBlock
from engine.protocol.frame import Frame
from studio.recorder import Recorder
from studio.snapshot import save_snapshot
from studio.take import Sound, Take


def frame(index, epoch=1, session=1, value=0):
    pixels = np.full((HEIGHT, WIDTH, 4), value, np.uint8)
    return Frame(session, epoch, index, SAMPLES_PER_FRAME * index, 0, 0, pixels)


def block(first, epoch=1, session=1, value=0.0, count=SAMPLES_PER_BLOCK):
    return AudioBlock(session, epoch, first, 0, np.full(count, value, np.float32))


def read_back(path: Path):
    """-> (video pts in s, mean luma per frame, audio start in s, samples)."""
    with av.open(str(path)) as container:
        times, means, sound, start = [], [], [], None
        for packet in container.demux():
            for item in packet.decode():
                if isinstance(item, av.VideoFrame):
                    times.append(float(item.pts * item.time_base))
                    means.append(item.to_ndarray(format="gray").mean())
                else:
                    start = float(item.pts * item.time_base) if start is None else start
                    sound.append(item.to_ndarray()[0])
        return times, np.array(means), start, np.concatenate(sound)


def feed(recorder, frames, first=100, flash=(), lead=30):
    """Sound leads the picture by `lead` frames, as a file does; white frames carry a loud click."""
    for index in range(first, first + frames + lead):
        loud = 0.8 if index in flash else 0.0
        recorder.block(block(SAMPLES_PER_FRAME * index, value=loud, count=SAMPLES_PER_FRAME))
        if index >= first + lead:
            shown = index - lead
            while recorder._queue.full():
                time.sleep(0.002)
            recorder.frame(frame(shown, value=255 if shown in flash else 0))


def test_flash_and_click_are_at_the_same_time(tmp_path):
    reports = []
    recorder = Recorder(reports.append)
    recorder.start(tmp_path / "a.mp4")
    feed(recorder, 72, flash=(124, 160))
    recorder.stop()
    times, means, start, sound = read_back(tmp_path / "a.mp4")
    assert len(times) == 72 and times[0] == 0.0
    assert np.allclose(np.diff(times), 1 / 24, atol=1e-4)
    assert list(np.flatnonzero(means > 128)) == [24, 60]
    loud = np.flatnonzero(np.abs(sound) > 0.4) / SAMPLE_RATE + start
    assert abs(loud[0] - 1.0) < 0.003 and abs(loud[loud > 2][0] - 2.5) < 0.003
    assert reports[-1].state == "off" and reports[-1].seconds == 3.0 and reports[-1].error is None


def test_missing_frames_are_repeated_and_old_ones_ignored():
    take = Take(Sound())
    written = [len(list(take.add(frame(i)))) for i in (10, 11, 14, 12, 15)]
    assert written == [1, 1, 3, 0, 1]
    assert take.frames == 6 and take.repeated == 2


def test_a_new_epoch_and_a_pause_follow_directly():
    sound = Sound()
    take = Take(sound)
    sound.add(block(20_000, epoch=1, value=0.1, count=8_000))  # sent ahead, never heard
    sound.add(block(60_000, epoch=2, value=0.2, count=4_000))
    first = list(take.add(frame(10, epoch=1)))
    second = list(take.add(frame(30, epoch=2)))
    assert np.allclose(first[0][1], 0.1) and np.allclose(second[0][1], 0.2)
    take.cut()
    third = list(take.add(frame(500, epoch=2)))
    assert len(third) == 1 and not third[0][1].any() and take.frames == 3


def test_sound_is_bounded():
    sound = Sound()
    for k in range(4_000):
        sound.add(block(960 * k))
    assert sound._held <= 30 * SAMPLE_RATE


def test_a_folder_that_is_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises((EngineError, OSError)):
        Recorder(print).start(tmp_path / "x" / "a.mp4")


def test_snapshot_is_exactly_the_frame(tmp_path):
    picture = frame(1)
    picture.pixels[:, :, 0], picture.pixels[5, 7] = 200, (1, 2, 3, 255)
    save_snapshot(picture, tmp_path / "s.png")
    with Image.open(tmp_path / "s.png") as image:
        assert image.size == (704, 1088) and image.mode == "RGB"
        assert image.getpixel((7, 5)) == (3, 2, 1) and image.getpixel((0, 0)) == (0, 0, 200)


KILLED = """
import sys, time
from pathlib import Path
from studio.recorder import Recorder
from tests.studio.test_recorder import block, frame
recorder = Recorder(lambda report: None)
recorder.start(Path(sys.argv[1]))
for index in range(100_000):
    recorder.block(block(2000 * index, value=0.1, count=2000))
    while recorder._queue.full():
        time.sleep(0.001)
    recorder.frame(frame(index, value=index % 250))
    if index % 24 == 0:
        print(index, recorder._queue.qsize(), flush=True)
"""


def test_kill_9_loses_at_most_two_seconds(tmp_path):
    path = tmp_path / "killed.mp4"
    root = Path(__file__).resolve().parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True, cwd=root
    )
    written = 0
    for line in child.stdout:
        index, waiting = map(int, line.split())
        written = index - waiting
        if written > 120:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    times, _, _, sound = read_back(path)
    assert len(times) >= written - 48
    assert len(sound) / SAMPLE_RATE >= (written - 48) / 24
