"""A finished video in memory, small enough to step through at will, with the time of each frame.

Decoded whole on a thread of its own: a seek in H.264 costs tens of frames, and two films must be
stepped together. Knows nothing of sound, scores or widgets.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from engine.errors import EngineError

MOST_BYTES = 160e6  # of one film; 8 s at 704 x 1088 is scaled to 428 x 660
MOST_WIDTH = 704
DEFAULT_FPS = 24.0


@dataclass(frozen=True, slots=True)
class Film:
    """`frames` [height, width, 3] RGB each; `starts_s` [n], 0 is the sound's first sample."""

    frames: list[np.ndarray] = field(repr=False)
    starts_s: np.ndarray

    def index_at(self, seconds: float) -> int:
        """The frame that is shown then; half a millisecond of rounding is forgiven."""
        found = int(np.searchsorted(self.starts_s, seconds + 5e-4, side="right")) - 1
        return min(max(found, 0), len(self.frames) - 1)

    @property
    def end_s(self) -> float:
        gap = np.median(np.diff(self.starts_s)) if len(self.frames) > 1 else 1 / DEFAULT_FPS
        return float(self.starts_s[-1] + gap)

    def image(self, index: int) -> QImage:
        """Shares the film's memory: keep the film while it is shown."""
        pixels = self.frames[index]
        height, width = pixels.shape[:2]
        return QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)


def read_film(path: Path, most_bytes: float = MOST_BYTES) -> Film:
    """Raises EngineError("bad_input"), one line, for what is no readable video."""
    import av  # here: a studio that never opens the panel does not pay for it
    from av.error import FFmpegError

    frames: list[np.ndarray] = []
    times: list[float] = []
    try:
        with av.open(str(path)) as source:
            if not source.streams.video:
                raise EngineError("bad_input", f"{path.name} holds no picture", "run the clip anew")
            picture = source.streams.video[0]
            width, height = _size(picture, most_bytes)
            for i, frame in enumerate(source.decode(picture)):
                small = frame.reformat(width, height, "rgb24", interpolation="AREA")
                frames.append(np.ascontiguousarray(small.to_ndarray()))
                times.append(frame.time if frame.time is not None else i / DEFAULT_FPS)
            begun = _sound_start(source)
    except (FFmpegError, OSError, ValueError) as error:
        if not frames:
            reason = str(error).splitlines()[0][:100]
            raise EngineError(
                "bad_input", f"{path.name} cannot be played ({reason})", "run the clip anew"
            ) from error
        begun = 0.0  # a film that breaks off is shown as far as it goes
    if not frames:
        raise EngineError("bad_input", f"{path.name} has no frame", "run the clip anew")
    return Film(frames, np.array(times) - begun)


class FilmLoader(QObject):
    """`load(path)` answers with `loaded(path, Film)` or `failed(path, EngineError)` in the GUI
    thread; an answer that nobody waits for any more is dropped by whoever gets it."""

    loaded = Signal(object, object)
    failed = Signal(object, object)

    def load(self, path: Path) -> None:
        threading.Thread(target=self._read, args=(path,), name="qa-film", daemon=True).start()

    def _read(self, path: Path) -> None:
        try:
            film = read_film(path)
        except EngineError as error:
            self._tell(self.failed, path, error)
        else:
            self._tell(self.loaded, path, film)

    def _tell(self, signal: Any, path: Path, answer: object) -> None:
        try:
            signal.emit(path, answer)
        except RuntimeError:
            return  # the window went meanwhile


def _size(picture: Any, most_bytes: float) -> tuple[int, int]:
    """(width, height) that keep all frames within the memory; even, as scalers like it."""
    width, height = picture.codec_context.width, picture.codec_context.height
    fps = float(picture.average_rate or DEFAULT_FPS)
    length_s = float(picture.duration * picture.time_base) if picture.duration else 10.0
    count = max(picture.frames or length_s * fps, 1)
    scale = min(1.0, MOST_WIDTH / width, (most_bytes / (count * width * height * 3)) ** 0.5)
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)


def _sound_start(source: Any) -> float:
    sound = next(iter(source.streams.audio), None)
    if sound is None or sound.start_time is None:
        return 0.0
    return float(sound.start_time * sound.time_base)
