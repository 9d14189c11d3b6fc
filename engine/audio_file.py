"""Any common audio file as 48 kHz mono float32, a piece at a time. Knows nothing of models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.error import FFmpegError

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError

REMEDY = "choose a WAV, MP3, M4A, FLAC, OGG or Opus file"


def _open(path: Path) -> Any:
    """The container, whatever the encoding of its tags."""
    try:
        return av.open(str(path), metadata_errors="ignore")
    except TypeError:  # PyAV 19 has no such argument any more
        return av.open(str(path))


class AudioFile:
    """`pieces()` yields [n] float32 arrays; `duration_s` is an estimate, 0 when unknown."""

    def __init__(self, path: Path) -> None:
        """Raises EngineError("bad_audio") when there is no sound in it."""
        self.path = path
        if not path.is_file():
            raise EngineError("bad_audio", f"{path} is not a file", REMEDY)
        if path.stat().st_size == 0:
            raise EngineError("bad_audio", f"{path.name} is empty (0 bytes)", REMEDY)
        try:
            self._container: Any = _open(path)
        except (FFmpegError, OSError, ValueError) as error:
            raise self._unreadable(error) from error
        if not self._container.streams.audio:
            self.close()
            raise EngineError("bad_audio", f"{path.name} has no audio stream", REMEDY)
        self._stream = self._container.streams.audio[0]
        duration = self._container.duration
        self.duration_s = duration / av.time_base if duration and duration > 0 else 0.0

    def pieces(self) -> Iterator[np.ndarray]:
        """Samples in order. Raises EngineError("bad_audio") at once or where it is broken."""
        resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
        total = 0
        try:
            for frame in self._container.decode(self._stream):
                frame.pts = None  # streams with holes or odd starts: sample count is the clock
                for piece in _samples(resampler.resample(frame)):
                    total += len(piece)
                    yield piece
            for piece in _samples(resampler.resample(None)):
                total += len(piece)
                yield piece
        except (FFmpegError, OSError, ValueError) as error:
            if total == 0:
                raise self._unreadable(error) from error
            at = total / SAMPLE_RATE
            raise EngineError(
                "bad_audio", f"{self.path.name} is damaged after {at:.1f} s ({error})",
                "repair it or cut it there",
            ) from error  # fmt: skip
        if total == 0:
            raise EngineError("bad_audio", f"{self.path.name} holds no sound (0 samples)", REMEDY)

    def close(self) -> None:
        self._container.close()

    def _unreadable(self, error: BaseException) -> EngineError:
        reason = getattr(error, "strerror", None) or str(error)
        text = f"{self.path.name} cannot be read as audio ({reason})"
        return EngineError("bad_audio", text, REMEDY)


def read_whole(path: Path) -> np.ndarray:
    """All of a file's (or video's) sound, [n] float32. Raises EngineError("bad_audio")."""
    audio = AudioFile(path)
    try:
        return np.concatenate(list(audio.pieces()))
    finally:
        audio.close()


def _samples(frames: list[Any]) -> Iterator[np.ndarray]:
    for frame in frames:
        samples = frame.to_ndarray().reshape(-1)
        # A float file may hold anything; the models want finite -1..1.
        yield np.clip(np.nan_to_num(samples, posinf=1.0, neginf=-1.0), -1.0, 1.0)
