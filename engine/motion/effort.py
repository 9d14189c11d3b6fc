"""Vocal effort: how loud this frame is against the speaker's own running level.

Knows nothing of phones; 1 is the speaker's usual, and it adapts to any microphone gain.
"""

from __future__ import annotations

from engine.clock import FPS

LOWEST, HIGHEST = 0.72, 1.22  # of the jaw's opening
DB_PER_DOUBLING = 22.0  # jaw moves little with loudness: 6 dB louder is about a quarter wider
SMOOTH_MS, ADAPT_FRAMES = 110.0, 72  # 3 s of speech to follow a new level
SPEAKING = 0.5


class Effort:
    def __init__(self) -> None:
        self._usual_db = -24.0  # until the speaker is known
        self._level_db = -24.0
        self._heard = 0

    def step(self, loudness_db: float, speech: float) -> float:
        """Factor on the jaw for this frame (dBFS, gate 0..1)."""
        if speech > SPEAKING:
            self._heard += 1
            if self._heard == 1:
                self._usual_db = self._level_db = loudness_db
            rate = 1 / min(self._heard, ADAPT_FRAMES)
            self._usual_db += rate * (loudness_db - self._usual_db)
            self._level_db += (loudness_db - self._level_db) * (1000 / FPS) / SMOOTH_MS
        above_db = self._level_db - self._usual_db
        return min(HIGHEST, max(LOWEST, 2 ** (above_db / DB_PER_DOUBLING)))
