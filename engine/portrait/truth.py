"""Slow truth of the warp: float64, one point at a time, no grid; for tests of the fast path.

Evaluates the splines directly and inverts by many rounds. Knows nothing of eyes or mouths.
"""

from __future__ import annotations

import numpy as np

from engine.portrait.fields import FADE, fit, oval_radius
from engine.portrait.grid import smooth
from engine.portrait.headframe import HeadFrame
from engine.portrait.spline import kernel

ROUNDS = 200


class Truth:
    """Field U of one face for one set of coefficients, without head motion or breath."""

    def __init__(
        self, frame: HeadFrame, landmarks: np.ndarray, bases: np.ndarray, amounts: np.ndarray
    ) -> None:
        """`bases` [K, 468, 3] px, `amounts` [K]."""
        self._frame, self._landmarks = frame, landmarks
        self._fit = fit(frame, landmarks, bases)
        k = len(bases)
        self._weight = np.stack(
            [self._fit.weight[:, axis : 2 * k : 2] @ amounts for axis in (0, 1)], 1
        )

    def displacement(self, px: np.ndarray) -> np.ndarray:
        """[n, 2] px by which canvas points [n, 2] move."""
        knots = self._fit.knots
        at = (px - self._frame.center[:2]) / self._frame.s
        radial = kernel(((at[:, None] - knots[None]) ** 2).sum(-1))
        system = np.concatenate([radial, np.ones((len(px), 1)), at], 1)
        fade = 1 - smooth(oval_radius(self._frame, self._landmarks, px), *FADE)
        return system @ self._weight * fade[:, None]

    def source(self, px: np.ndarray) -> np.ndarray:
        """[n, 2]: where the frame's points [n, 2] come from; halved steps, so that it settles
        wherever the warp does not fold."""
        back = px.astype(np.float64)
        for _ in range(ROUNDS):
            back += 0.5 * (px - self.displacement(back) - back)
        return back
