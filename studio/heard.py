"""Which sample of the session a listener hears: marks that tie what was written to what is played.

The sound played may be stretched a little against the session's samples (two devices, two clocks);
each write leaves a mark and positions between marks are interpolated. Knows nothing of devices.
"""

from __future__ import annotations

from collections import deque

MARKS = 512  # 10 s of 20 ms writes


class Marks:
    """Pairs (played position, session sample), both rising; one writer, one reader."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque(maxlen=MARKS)

    def add(self, played: int, sample: int) -> None:
        self._marks.append((played, sample))

    def clear(self) -> None:
        self._marks.clear()

    def sample_at(self, played: int) -> int | None:
        """Session sample at the played position; None before the first mark and after a clear."""
        marks = list(self._marks)
        if len(marks) < 2 or played < marks[0][0]:
            return None
        for (p0, s0), (p1, s1) in zip(reversed(marks[:-1]), reversed(marks[1:]), strict=True):
            if played >= p0:
                played = min(played, p1)  # the sound cannot be ahead of what was written
                return s0 + (played - p0) * (s1 - s0) // max(p1 - p0, 1)
        return None
