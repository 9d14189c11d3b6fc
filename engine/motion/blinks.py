"""Blinks: six frames each, every 1.8 to 4.4 s, and readily where a phrase ends.

Knows nothing of the picture's lids; 1 is shut.
"""

from __future__ import annotations

import numpy as np

from engine.clock import FPS

SHAPE = (0.35, 0.95, 1.0, 0.75, 0.40, 0.12)  # at 24 fps: shuts in two frames, opens in four
SHORTEST_S, LONGEST_S = 1.8, 4.4
AT_PHRASE_END, AT_GLANCE = 0.65, 0.5  # probabilities
REST_FRAMES = FPS  # never two within a second


class Blinks:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._frame = len(SHAPE)  # within SHAPE; past its end: eyes open
        self._since = 0
        self._wait = self._draw(1.0)

    def step(self, rate: float, phrase_end: bool, glance: bool) -> float:
        """Lid of this frame. `rate` > 1 blinks more often."""
        self._since += 1
        luck = float(self._rng.random())  # one draw a frame keeps seeds comparable
        invited = (phrase_end and luck < AT_PHRASE_END) or (glance and luck < AT_GLANCE)
        if self._since >= self._wait or (invited and self._since > REST_FRAMES):
            self._frame, self._since = 0, 0
            self._wait = self._draw(rate)
        lid = SHAPE[self._frame] if self._frame < len(SHAPE) else 0.0
        self._frame += 1
        return lid

    def _draw(self, rate: float) -> int:
        return round(FPS * float(self._rng.uniform(SHORTEST_S, LONGEST_S)) / max(1.0, rate))
