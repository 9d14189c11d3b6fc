"""A finished video of any program: its facts, its frames with their times, its sound.

Frames keep their own times: a clip at 25 or 30 fps is measured where its frames are shown, never
re-labelled. Knows nothing of faces or scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.error import FFmpegError

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError

REMEDY = "choose an MP4, MOV, MKV or WebM file that plays in a video player"
MOST_PIXELS = 8_000_000  # of a frame: 4K is 8.3 million
SHORTEST_S = 0.5
DAMAGE = (FFmpegError, OSError, ValueError, MemoryError)


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """Times in seconds of the file's own clock. `said_frames` is the header's count, 0 unknown;
    `starts_s` [n] when each decoded frame appears; sound start and length are nan without one."""

    said_fps: float
    said_frames: int
    starts_s: np.ndarray
    sound_start_s: float
    sound_s: float
    width: int
    height: int
    damage: str = ""  # why decoding stopped early

    @property
    def intervals_s(self) -> np.ndarray:
        return np.diff(self.starts_s)

    @property
    def fps(self) -> float:
        """From the frames' own times."""
        gaps = self.intervals_s
        return 1 / float(np.median(gaps)) if len(gaps) and np.median(gaps) > 0 else self.said_fps

    @property
    def shown_s(self) -> float:
        """From the first frame to the end of the last."""
        return float(np.ptp(self.starts_s)) + 1 / max(self.fps, 1e-6)

    @property
    def middles_s(self) -> np.ndarray:
        """[n] the middle of each frame's time on screen; 0 = the sound's first sample."""
        start = self.sound_start_s if np.isfinite(self.sound_start_s) else 0.0
        return self.starts_s - start + 0.5 / max(self.fps, 1e-6)


def _bad(path: Path, why: str) -> EngineError:
    return EngineError("bad_input", f"{path.name} {why}", REMEDY)


def open_video(path: Path) -> Any:
    """The container. Raises EngineError("bad_input") in one line."""
    if not path.is_file():
        raise _bad(path, "is not a file")
    if path.stat().st_size == 0:
        raise _bad(path, "is empty (0 bytes)")
    try:
        container = av.open(str(path))
    except DAMAGE as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _bad(path, f"cannot be read as a video ({reason})") from error
    if not container.streams.video:
        container.close()
        raise _bad(path, "has no picture stream")
    return container


class VideoFile:
    """`frames()` yields BGR pictures once, in order; `facts()` is complete after it."""

    def __init__(self, path: Path) -> None:
        """Raises EngineError("bad_input")."""
        self.path = path
        self._container = open_video(path)
        self._stream = self._container.streams.video[0]
        self._stream.thread_type = "NONE"  # whole clips run in parallel, not frames
        context = self._stream.codec_context
        if not 0 < context.width * context.height <= MOST_PIXELS:
            size = f"{context.width}x{context.height}"
            self._container.close()
            raise _bad(path, f"is {size}, more than {MOST_PIXELS // 1_000_000} million pixels")
        self._starts: list[float] = []
        self._damage = ""

    def frames(self) -> Iterator[np.ndarray]:
        """uint8 [h, w, 3]. A broken file simply ends; `facts().damage` says so."""
        try:
            for frame in self._container.decode(self._stream):
                last = self._starts[-1] if self._starts else 0.0
                self._starts.append(last if frame.time is None else float(frame.time))
                yield frame.to_ndarray(format="bgr24")
        except DAMAGE as error:
            self._damage = getattr(error, "strerror", None) or str(error)
        finally:
            self._container.close()
        if not self._starts:
            raise _bad(self.path, f"holds no picture that can be decoded ({self._damage or '0'})")

    def facts(self) -> VideoFacts:
        context, stream = self._stream.codec_context, self._stream
        # MPEG streams carry no count; what is read there is not even a number of frames.
        said = int(stream.frames or 0) if "mp4" in self._container.format.name else 0
        sound_start, sound_s = _sound_times(self.path)
        return VideoFacts(
            float(stream.average_rate or 0), said, np.array(self._starts),
            sound_start, sound_s, context.width, context.height, self._damage,
        )  # fmt: skip


def _sound_times(path: Path) -> tuple[float, float]:
    """(start, length) in seconds of the first sound stream, nan without one."""
    container = open_video(path)
    try:
        if not container.streams.audio:
            return float("nan"), float("nan")
        stream = container.streams.audio[0]
        base = float(stream.time_base or 0)
        start = (stream.start_time or 0) * base
        length = (stream.duration or 0) * base
        if not length and container.duration:
            length = container.duration / av.time_base - start
        return start, length
    finally:
        container.close()


def samples_s(pcm: np.ndarray) -> float:
    return len(pcm) / SAMPLE_RATE
