"""A critically damped spring: the one way in which anything slow moves.

Exact for a constant target, so the frame's length does not matter; never overshoots.
"""

from __future__ import annotations

import math

from engine.clock import FPS

FRAME_S = 1 / FPS


class Spring:
    """A value that follows its target; `rate` in 1/s (90 % there after about 4 / rate)."""

    __slots__ = ("_keep", "rate", "value", "velocity")

    def __init__(self, rate: float, value: float = 0.0) -> None:
        self.rate = rate
        self.value = value
        self.velocity = 0.0
        self._keep = math.exp(-rate * FRAME_S)

    def step(self, target: float) -> float:
        """One frame towards `target`."""
        away = self.value - target
        drift = (self.velocity + self.rate * away) * FRAME_S
        self.velocity = (self.velocity - self.rate * drift) * self._keep
        self.value = target + (away + drift) * self._keep
        return self.value
