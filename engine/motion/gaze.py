"""Gaze: small saccades around the viewer, a glance aside now and then.

Returns where the eyes look in the world; `life.py` subtracts the head's turn so that they stay on
the viewer. Knows nothing of the picture.
"""

from __future__ import annotations

import numpy as np

from engine.clock import FPS

SHORTEST_S, LONGEST_S = 0.5, 2.0
SMALL = (0.045, 0.03)  # standard deviation of a fixation near the viewer, x and y
ASIDE = (0.22, 0.10)  # of a glance
ASIDE_S = (0.5, 1.1)
ASIDE_WHEN_SILENT, ASIDE_WHEN_TALKING = 0.10, 0.12  # share of the saccades
LIMIT = 0.3
JUMP = (0.62, 1.0)  # a saccade takes two frames


class Gaze:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._origin = np.zeros(2)
        self._target = np.zeros(2)
        self._frame = len(JUMP)
        self._aside = False
        self._wait = self._frames(SHORTEST_S, LONGEST_S)

    def step(self, talking: bool) -> tuple[np.ndarray, bool]:
        """(direction [2], a large glance begins in this frame)."""
        glance = False
        self._wait -= 1
        if self._wait <= 0:
            glance = self._jump(talking)
        part = JUMP[self._frame] if self._frame < len(JUMP) else 1.0
        self._frame += 1
        return self._origin + part * (self._target - self._origin), glance

    def _jump(self, talking: bool) -> bool:
        share = ASIDE_WHEN_TALKING if talking else ASIDE_WHEN_SILENT
        back, luck = self._aside, float(self._rng.random())
        self._aside = not back and luck < share
        spread = ASIDE if self._aside else SMALL
        span = ASIDE_S if self._aside else (SHORTEST_S, LONGEST_S)
        self._origin = self._target
        self._target = np.clip(self._rng.normal(0, spread), -LIMIT, LIMIT)
        self._frame = 0
        self._wait = self._frames(*span)
        return self._aside or back

    def _frames(self, shortest_s: float, longest_s: float) -> int:
        return max(3, round(FPS * float(self._rng.uniform(shortest_s, longest_s))))
