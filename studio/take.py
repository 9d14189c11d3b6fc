"""Take: puts frames and sound of a recording on one unbroken timeline. Pure: no files, no threads.

Frame n of the file is n/24 s and carries its own 2,000 samples. A missing frame is its predecessor
once more. A new epoch or session, or the end of a pause, continues right behind what is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME
from engine.protocol.audio_block import AudioBlock
from engine.protocol.frame import Frame

PREROLL_SAMPLES = 30 * SAMPLE_RATE  # sound waits here for its picture: 5.8 MB at the most
LONGEST_REPEAT = 10 * 24  # frames: a longer hole is cut out


class Sound:
    """Blocks sent lately, by session and epoch; reading what was never sent gives silence."""

    def __init__(self) -> None:
        self._blocks: deque[AudioBlock] = deque()
        self._held = 0

    def add(self, block: AudioBlock) -> None:
        self._blocks.append(block)
        self._held += len(block.samples)
        while self._held > PREROLL_SAMPLES:
            self._held -= len(self._blocks.popleft().samples)

    def take(self, session: int, epoch: int, first: int, count: int) -> np.ndarray:
        """[count] float32 from sample `first`; blocks wholly before it are let go."""
        out = np.zeros(count, np.float32)
        for block in self._blocks:
            if (block.session, block.epoch) != (session, epoch):
                continue
            start = block.first_sample - first
            low, high = max(start, 0), min(start + len(block.samples), count)
            if low < high:
                out[low:high] = block.samples[low - start : high - start]
        self._let_go(session, epoch, first + count)
        return out

    def _let_go(self, session: int, epoch: int, until: int) -> None:
        while self._blocks:
            block = self._blocks[0]
            older = (block.session, block.epoch) < (session, epoch)
            done = block.first_sample + len(block.samples) <= until
            if not older and not ((block.session, block.epoch) == (session, epoch) and done):
                return
            self._held -= len(self._blocks.popleft().samples)


class Take:
    """`add` a frame -> the (pixels, samples) pairs to write for it, repeats first."""

    def __init__(self, sound: Sound) -> None:
        self._sound = sound
        self._last: Frame | None = None
        self._cut = False
        self.frames = 0
        self.repeated = 0

    def cut(self) -> None:
        """What comes next follows directly (after a pause)."""
        self._cut = True

    def add(self, frame: Frame) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        last = self._last
        if last is not None and not self._cut and _same_run(last, frame):
            missing = (frame.pts - last.pts) // SAMPLES_PER_FRAME - 1
            if missing < 0:
                return  # older than what is written
            for k in range(missing if missing <= LONGEST_REPEAT else 0):
                self.repeated += 1
                yield self._pair(last, last.pts + SAMPLES_PER_FRAME * (k + 1))
        self._last, self._cut = frame, False
        yield self._pair(frame, frame.pts)

    def _pair(self, picture: Frame, pts: int) -> tuple[np.ndarray, np.ndarray]:
        self.frames += 1
        samples = self._sound.take(picture.session, picture.epoch, pts, SAMPLES_PER_FRAME)
        return picture.pixels, samples


def _same_run(a: Frame, b: Frame) -> bool:
    return (a.session, a.epoch) == (b.session, b.epoch)
