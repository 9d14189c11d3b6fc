"""The position in a clip: playing with its sound, stepping by frames, looping on a second.

The speaker's position is the clock, or the silent clock's where there is no speaker. Knows nothing
of pictures: whoever shows them follows `moved`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError
from studio.file_audio import FileAudio
from studio.sound_out import SoundOut

FPS = 24
TICK_MS = 12
AHEAD = SAMPLE_RATE // 5  # samples in hand: 0.2 s
WRITE = SAMPLE_RATE // 100
OPENING_NS = 2_000_000_000  # 0.3 to 1.3 s measured with PulseAudio


class Playback(QObject):
    """`moved(seconds)` at every change of the position, `changed()` when it starts or stops."""

    moved = Signal(float)
    changed = Signal()

    def __init__(
        self, make_sound: Callable[[], SoundOut] | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._make_sound = make_sound or (lambda: SoundOut("", lambda _: False, lambda: False))
        self._sound: SoundOut | None = None
        self._audio: FileAudio | None = None
        self.end = 0  # samples
        self.position = 0
        self.loop: tuple[int, int] | None = None  # samples
        self.is_playing = False
        self._waits_until_ns = 0
        self._written = 0  # the next sample to be written
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(lambda: self.tick(time.monotonic_ns()))

    @property
    def seconds(self) -> float:
        return self.position / SAMPLE_RATE

    def open(self, video: Path, length_s: float) -> None:
        """Another clip, at its beginning and still; without sound when it has none."""
        self.pause()
        try:
            self._audio = FileAudio(video)
        except EngineError:
            self._audio = None
        self.end = round(length_s * SAMPLE_RATE)
        self.loop = None
        self._move(0)

    @property
    def audio(self) -> FileAudio | None:
        return self._audio

    def play(self) -> None:
        if self.end <= 0 or self.is_playing:
            return
        if self.position >= self.end - SAMPLE_RATE // FPS:
            self._move(0)
        if self.loop is not None and not self.loop[0] <= self.position < self.loop[1]:
            self._move(self.loop[0])
        if self._sound is None:
            self._sound = self._make_sound()
        self.is_playing = True
        self._waits_until_ns = time.monotonic_ns() + OPENING_NS
        self._written = self.position
        self._sound.sink.flush()
        self._timer.start(TICK_MS)
        self.changed.emit()

    def pause(self) -> None:
        if not self.is_playing:
            return
        self.is_playing = False
        self._timer.stop()
        if self._sound is not None:
            self._sound.sink.flush()
        self.changed.emit()

    def toggle(self) -> None:
        self.pause() if self.is_playing else self.play()

    def seek(self, seconds: float) -> None:
        """Anywhere; while playing, the sound follows."""
        self._move(round(seconds * SAMPLE_RATE))
        if self.is_playing and self._sound is not None:
            self._written = self.position
            self._sound.sink.flush()

    def step(self, frames: int) -> None:
        """To the start of the frame that is `frames` away; stops playing."""
        self.pause()
        here = int(self.seconds * FPS + 1e-3)
        self.seek((here + frames) / FPS)

    def set_loop(self, begin_s: float, end_s: float) -> None:
        self.loop = round(begin_s * SAMPLE_RATE), round(end_s * SAMPLE_RATE)
        self.seek(begin_s)

    def clear_loop(self) -> None:
        self.loop = None

    def close(self) -> None:
        """Idempotent; the speaker is given back."""
        self.pause()
        if self._sound is not None:
            self._sound.close()
            self._sound = None

    def tick(self, now_ns: int) -> None:
        """Keep the speaker fed and follow it."""
        sound = self._sound
        if sound is None or not self.is_playing:
            return
        if sound.check(now_ns):  # a speaker came or went: go on from here in it
            self._written = self.position
            sound.sink.flush()
        if sound.is_opening and now_ns < self._waits_until_ns:
            return  # begin with the speaker, not a moment before it in silence
        self._feed(sound, now_ns)
        heard = sound.sink.position(now_ns)
        if heard is not None:
            self._move(heard)
        if self.loop is None and self.position >= self.end:
            self.pause()

    def _feed(self, sound: SoundOut, now_ns: int) -> None:
        while sound.sink.queued(now_ns) < AHEAD:
            stop = self.loop[1] if self.loop else self.end
            if self._written >= stop:
                if self.loop is None:
                    return
                self._written = self.loop[0]
            count = min(WRITE, stop - self._written)
            sound.sink.write(self._samples(count), self._written, self._written + count)
            self._written += count

    def _samples(self, count: int) -> np.ndarray:
        """[count] float32 from the next sample to be written on."""
        if self._audio is None:
            return np.zeros(count, np.float32)
        return self._audio.samples(self._written, count)

    def _move(self, sample: int) -> None:
        self.position = min(max(sample, 0), self.end)
        self.moved.emit(self.seconds)
