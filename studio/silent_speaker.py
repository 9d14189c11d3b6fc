"""SilentSpeaker: the clock of a machine without any speaker, so that files play there too.

It "plays" at 48 kHz of the monotonic clock and is used exactly like a Speaker: one clock still.
"""

from __future__ import annotations

import time

import numpy as np

from engine.clock import SAMPLE_RATE
from studio.heard import Marks


class SilentSpeaker:
    """Position advances while something is queued and stands still when all is played."""

    def __init__(self) -> None:
        self._marks = Marks()
        self._written = 0
        self._base = 0  # played when the present run began
        self._since_ns: int | None = None

    def open(self) -> None:
        self.flush()

    def write(self, samples: np.ndarray, first_sample: int, next_sample: int) -> None:
        self._write(samples, first_sample, next_sample, time.monotonic_ns())

    def _write(self, samples: np.ndarray, first: int, following: int, now_ns: int) -> None:
        if self._since_ns is None or self._played(now_ns) >= self._written:
            self._base, self._since_ns = self._written, now_ns
        self._marks.add(self._written, first)
        self._written += len(samples)
        self._marks.add(self._written, following)

    def queued(self, now_ns: int) -> int:
        return self._written - self._played(now_ns)

    def position(self, now_ns: int) -> int | None:
        return None if self._since_ns is None else self._marks.sample_at(self._played(now_ns))

    def flush(self) -> None:
        self._marks.clear()
        self._written = self._base = 0
        self._since_ns = None

    def is_alive(self, now_ns: int) -> bool:
        return True

    def close(self) -> None:
        self.flush()

    def _played(self, now_ns: int) -> int:
        if self._since_ns is None:
            return self._base
        elapsed = (now_ns - self._since_ns) * SAMPLE_RATE // 1_000_000_000
        return min(self._base + max(elapsed, 0), self._written)
