"""Audio file of any common format -> mono float32 at 48 kHz, and its overview for the scrubber.

Decoded whole at opening: an hour is 690 MB as float32, kept as int16 (345 MB) and refused above
two hours. Knows nothing of playing, devices or sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import av.container
import av.error
import numpy as np

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError

MAX_S = 2 * 3600


class FileAudio:
    """`samples(first, count)` anywhere in the file; beyond its end is silence."""

    def __init__(self, path: Path) -> None:
        """Raises EngineError("bad_audio") with one line that names the file and the remedy."""
        self.path = path
        self._pcm = _decode(path)

    def __len__(self) -> int:
        return len(self._pcm)

    def samples(self, first: int, count: int) -> np.ndarray:
        """[count] float32 in -1..1 from sample `first` on."""
        out = np.zeros(count, np.float32)
        part = self._pcm[max(first, 0) : max(first + count, 0)]
        offset = max(-first, 0)
        out[offset : offset + len(part)] = part.astype(np.float32) / 32768.0
        return out

    def overview(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """(low [columns], high [columns]) in -1..1: what a waveform of that width draws."""
        if len(self._pcm) == 0 or columns < 1:
            return np.zeros(max(columns, 0), np.float32), np.zeros(max(columns, 0), np.float32)
        starts = np.linspace(0, len(self._pcm), columns, endpoint=False).astype(np.int64)
        low = np.minimum.reduceat(self._pcm, starts).astype(np.float32) / 32768.0
        high = np.maximum.reduceat(self._pcm, starts).astype(np.float32) / 32768.0
        return low, high


def _decode(path: Path) -> np.ndarray:
    """[n] int16 mono at 48 kHz."""
    name = path.name
    if not path.is_file():
        raise EngineError("bad_audio", f"{name} is not a file", "choose an audio file that exists")
    try:
        with av.open(str(path)) as container:
            if not container.streams.audio:
                raise EngineError("bad_audio", f"{name} holds no sound", "choose a file with sound")
            pcm = _decode_stream(container, name)
    except (av.error.FFmpegError, ValueError) as error:
        reason = str(error).splitlines()[0][:120]
        raise EngineError(
            "bad_audio", f"{name} cannot be read as audio ({reason})",
            "convert it to WAV, FLAC, MP3, Ogg or M4A",
        ) from error  # fmt: skip
    if len(pcm) == 0:
        raise EngineError("bad_audio", f"{name} is empty", "choose a file with sound in it")
    return pcm


def _decode_stream(container: av.container.InputContainer, name: str) -> np.ndarray:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
    parts: list[np.ndarray] = []
    total = 0
    for packet_frame in _frames(container):
        for frame in resampler.resample(packet_frame):
            parts.append(frame.to_ndarray()[0])
            total += len(parts[-1])
        if total > MAX_S * SAMPLE_RATE:
            raise EngineError("bad_audio", f"{name} is longer than {MAX_S // 3600} h", "cut it")
    parts += [frame.to_ndarray()[0] for frame in resampler.resample(None)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int16)


def _frames(container: av.container.InputContainer) -> Iterator[av.AudioFrame]:
    """Decoded frames; a file that breaks off in the middle gives what it has."""
    count = 0
    try:
        for frame in container.decode(audio=0):
            frame.pts = None  # gaps and odd starts in timestamps are not ours to keep
            count += 1
            yield frame
    except av.error.InvalidDataError:
        if count == 0:
            raise
