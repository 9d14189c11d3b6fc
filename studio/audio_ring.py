"""Preallocated ring of mono float32 samples with absolute positions: one writer, one reader.

The writer is a device callback: it copies and moves one integer, nothing else. An overrun loses the
oldest samples and is reported by `read`, never hidden. Knows nothing of devices, rates or time.
"""

from __future__ import annotations

import numpy as np


class AudioRing:
    """`capacity` samples; positions are absolute and start at 0."""

    def __init__(self, capacity: int) -> None:
        self._data = np.zeros(capacity, np.float32)
        self.capacity = capacity
        self.written = 0  # absolute position after the newest sample
        self.read_position = 0
        self.lost = 0  # samples overwritten before they were read

    def write(self, samples: np.ndarray) -> None:
        """Append `samples` [n], n <= capacity."""
        count = len(samples)
        assert count <= self.capacity, f"{count} samples into a ring of {self.capacity}"
        start = self.written % self.capacity
        first = min(count, self.capacity - start)
        self._data[start : start + first] = samples[:first]
        self._data[: count - first] = samples[first:]
        self.written += count

    @property
    def waiting(self) -> int:
        """Samples not read yet (more than the capacity after an overrun)."""
        return self.written - self.read_position

    def read(self, count: int) -> tuple[int, np.ndarray] | None:
        """(absolute position, copy [count]) of the oldest samples, or None if fewer are waiting.

        After an overrun the position jumps forward by what was lost, with a quarter of the ring
        as room, since the writer goes on while we copy.
        """
        if self.waiting > self.capacity:
            kept = max(count, 3 * self.capacity // 4)
            skipped = self.waiting - kept
            self.read_position += skipped
            self.lost += skipped
        if self.waiting < count:
            return None
        position = self.read_position
        samples = self.peek(position, count)
        self.read_position = position + count
        return position, samples

    def peek(self, position: int, count: int) -> np.ndarray:
        """Copy of `count` samples from the absolute `position` (must still be in the ring)."""
        start = position % self.capacity
        first = min(count, self.capacity - start)
        return np.concatenate((self._data[start : start + first], self._data[: count - first]))
