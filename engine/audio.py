"""Cuts a session's PCM into model chunks: a bounded ring, gaps, late samples, stamps.

Knows nothing of sockets, models or wall time. Positions are samples of the session's clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME, frame_pts
from engine.models.base import Chunk

MAX_GAP = SAMPLE_RATE  # a longer hole is not filled: the stream restarts behind it
MAX_JUMP = 3_600 * SAMPLE_RATE  # further ahead than an hour is a broken counter, not a clock
MAX_SAMPLE = 2_000 * 2**31 - 2_000 * 2**16  # frame indices travel as int32: 2.8 years
MAX_BACKLOG = 2 * SAMPLE_RATE  # of a source that may run ahead (a file)
MAX_BACKLOG_LIVE = SAMPLE_RATE // 2  # of a microphone: what is older is not worth showing
CAPACITY = 4 * SAMPLE_RATE  # ring, samples: backlog + one gap + look-ahead, never reallocated
STAMPS = 512  # capture times remembered, one a block: 10 s


@dataclass(slots=True)
class AudioCounts:
    """Samples that were not what the source sent, since the session was opened."""

    gap: int = 0
    late: int = 0
    filled: int = 0
    chunks_dropped: int = 0


@dataclass(frozen=True, slots=True)
class FrameStamp:
    """What is known of the sound under one frame."""

    frame_index: int
    capture_time_ns: int  # of the sample under the middle of the frame; 0 unknown
    idle: bool  # the engine filled all of it


class Chunker:
    """Audio in by `append`, chunks out by `next_chunk`; one epoch at a time."""

    def __init__(self, frames_per_chunk: int, lookahead_samples: int) -> None:
        self.frames_per_chunk = frames_per_chunk
        self.lookahead = lookahead_samples
        self.counts = AudioCounts()
        self._ring = np.zeros(CAPACITY, np.float32)
        self._stamps: deque[tuple[int, int]] = deque(maxlen=STAMPS)
        self._filled: deque[tuple[int, int]] = deque(maxlen=STAMPS)
        self.restart(0, 0)

    def restart(self, epoch: int, first_frame: int) -> None:
        """Forget all audio; the next chunk has index 0 and begins with `first_frame`."""
        self.epoch = epoch
        self.index = 0
        self.next_frame = first_frame
        self.head = self._read = frame_pts(first_frame)  # [_read, head) is in the ring
        self.end: int | None = None  # last sample of the stream + 1, once it is known
        self.live = False
        self._stamps.clear()
        self._filled.clear()

    @property
    def backlog(self) -> int:
        """Samples that wait in the ring."""
        return self.head - self._read

    @property
    def finished(self) -> bool:
        """The stream has ended and every frame of it is in a chunk."""
        return self.end is not None and frame_pts(self.next_frame) >= self.end

    def append(self, first: int, samples: np.ndarray, capture_ns: int = 0) -> bool:
        """Take samples [n] float32 that begin at `first`. False: refused, the clock is broken."""
        if self.end is not None or first - self.head > MAX_JUMP or first > MAX_SAMPLE:
            return False
        self.live = capture_ns != 0
        if first < self.head:
            late = min(self.head - first, len(samples))
            self.counts.late += late
            first, samples = first + late, samples[late:]
            if capture_ns:
                capture_ns += late * 1_000_000_000 // SAMPLE_RATE
        if len(samples) == 0:
            return True
        if first > self.head:
            self._bridge(first)
        if capture_ns:
            self._stamps.append((first, capture_ns))
        self._write(samples)
        self._bound()
        return True

    def fill(self, until: int) -> None:
        """Silence up to `until`, because the source fell silent: its frames are marked idle."""
        count = until - self.head
        if count <= 0 or self.end is not None:
            return
        self.counts.filled += count
        if self._filled and self._filled[-1][1] == self.head:
            self._filled[-1] = (self._filled[-1][0], until)
        else:
            self._filled.append((self.head, until))
        self._silence(count)
        self._bound()

    def finish(self) -> None:
        """No more audio will come: `end_frame` is now known and the rest is padded."""
        if self.end is None:
            self.end = self.head

    @property
    def end_frame(self) -> int | None:
        """First frame that is not to be shown: ceil(samples / 2000); None while unknown."""
        return None if self.end is None else -(-self.end // SAMPLES_PER_FRAME)

    def next_chunk(self) -> Chunk | None:
        """The next chunk if all of its audio is here (or padded, after `finish`), else None."""
        if self.finished:
            return None
        count = self.frames_per_chunk * SAMPLES_PER_FRAME
        count += self.lookahead if self.index == 0 else 0
        if self.end is None and self.backlog < count:
            return None
        if self.backlog < count:
            self._silence(count - self.backlog)
        chunk = Chunk(
            self.epoch, self.index, self.next_frame, self.frames_per_chunk, self._take(count)
        )
        self.index += 1
        self.next_frame += self.frames_per_chunk
        return chunk

    def stamp(self, frame_index: int) -> FrameStamp:
        """Capture time and idleness of one frame, from the blocks that covered it."""
        first = frame_pts(frame_index)
        middle = first + SAMPLES_PER_FRAME // 2
        idle = any(a <= first and first + SAMPLES_PER_FRAME <= b for a, b in self._filled)
        captured = 0
        for start, time_ns in reversed(self._stamps):
            if start <= middle:
                captured = time_ns + (middle - start) * 1_000_000_000 // SAMPLE_RATE
                break
        return FrameStamp(frame_index, 0 if idle else captured, idle)

    def skip_to_newest(self) -> bool:
        """After a worker was lost: keep only what one chunk needs, restart the stream there."""
        need = self.frames_per_chunk * SAMPLES_PER_FRAME + self.lookahead
        return self._drop_to(max(self.head - need, 0))

    def restart_stream(self) -> None:
        """Same epoch and audio, but the next chunk is chunk 0: another model takes over."""
        self._restart_stream(self.next_frame)

    def _bridge(self, first: int) -> None:
        gap = first - self.head
        self.counts.gap += gap
        if gap <= MAX_GAP:
            self._silence(gap)
        else:
            frame = first // SAMPLES_PER_FRAME
            self._restart_stream(frame)
            self.head = self._read = frame_pts(frame)
            self._silence(first - self.head)

    def _bound(self) -> None:
        limit = MAX_BACKLOG_LIVE if self.live else MAX_BACKLOG
        if self.backlog > limit + self.lookahead:
            self._drop_to(self.head - limit // 2 - self.lookahead)

    def _drop_to(self, sample: int) -> bool:
        """Discard whole chunks so that the stream goes on at `sample` or just before."""
        count = (sample // SAMPLES_PER_FRAME - self.next_frame) // self.frames_per_chunk
        if count > 0:
            self.counts.chunks_dropped += count
            self._restart_stream(self.next_frame + count * self.frames_per_chunk)
        else:
            self._restart_stream(self.next_frame)
        return count > 0

    def _restart_stream(self, frame: int) -> None:
        """Same epoch, but chunk 0 again: the model restarts its audio state at `frame`."""
        self.index = 0
        self.next_frame = frame
        # What a chunk 0 already took as look-ahead is still in the ring: read it again.
        self._read = frame_pts(frame)

    def _silence(self, count: int) -> None:
        while count > 0:
            step = min(count, MAX_GAP)
            self._write(np.zeros(step, np.float32))
            count -= step

    def _write(self, samples: np.ndarray) -> None:
        at = self.head % CAPACITY
        first = min(len(samples), CAPACITY - at)
        self._ring[at : at + first] = samples[:first]
        self._ring[: len(samples) - first] = samples[first:]
        self.head += len(samples)

    def _take(self, count: int) -> np.ndarray:
        at = self._read % CAPACITY
        first = min(count, CAPACITY - at)
        out = np.empty(count, np.float32)
        out[:first] = self._ring[at : at + first]
        out[first:] = self._ring[: count - first]
        self._read += count
        return out
