"""Vertex bases: where each of the 468 vertices goes for each coefficient, without any data set.

A few landmark groups are told where to go (`rig_lips.py`, `rig_face.py`), others are pinned, the
rest of the mesh follows smoothly (mostly biharmonic on the mesh graph). Knows nothing of pixels.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.portrait.headframe import HeadFrame
from engine.portrait.mesh import (
    EYES,
    LEFT_BROW,
    LOWER_INNER,
    RIGHT_BROW,
    UPPER_INNER,
    VERTICES,
    edges,
)

Goals = dict[int, np.ndarray]  # vertex -> displacement [3] in units of S, head frame

# What never follows the mouth: eyes, brows, forehead, temples, nose bridge.
PINNED = (
    *EYES, *RIGHT_BROW, *LEFT_BROW, 10, 338, 297, 332, 284, 251, 389, 356, 109, 67, 103, 54, 21,
    162, 127, 234, 454, 93, 323, 168, 6, 197, 195,
)  # fmt: skip
AVERAGE_HALF_MOUTH = 0.28  # S
SHORTEST_EDGE = 0.01  # S: keeps weights finite where landmarks coincide


class Mesh:
    """The graph of one face and its smooth solver."""

    def __init__(self, frame: HeadFrame) -> None:
        self.v = frame.local
        laplacian = _laplacian(self.v)
        even = (laplacian + laplacian.T) / 2
        # Biharmonic, a little harmonic so that far regions settle at zero instead of overshooting.
        self._energy = 0.657 * laplacian.T @ laplacian + 0.0175 * even

    def solve(self, goals: Goals, pinned: Iterable[int] = ()) -> np.ndarray:
        """[468, 3]: exactly `goals`, zero at `pinned` (goals win), smooth elsewhere."""
        ids = np.array(list(goals) + sorted(set(pinned) - set(goals)))
        values = np.zeros((len(ids), 3))
        values[: len(goals)] = list(goals.values())
        free = np.setdiff1d(np.arange(VERTICES), ids)
        out = np.zeros((VERTICES, 3))
        out[ids] = values
        pull = -self._energy[np.ix_(free, ids)] @ values
        out[free] = np.linalg.solve(self._energy[np.ix_(free, free)], pull)
        return out


def _laplacian(v: np.ndarray) -> np.ndarray:
    """Row-normalised graph Laplacian [468, 468], edges weighted by 1 / length."""
    a, b = edges().T
    weight = 1 / np.maximum(np.linalg.norm(v[a] - v[b], axis=1), SHORTEST_EDGE)
    graph = np.zeros((VERTICES, VERTICES))
    graph[a, b] = graph[b, a] = weight
    degree = graph.sum(1)
    return np.eye(VERTICES) - graph / degree[:, None]


class MouthShape:
    """Measures of the picture's mouth that the lip bases need, in the head frame."""

    def __init__(self, v: np.ndarray) -> None:
        self.v = v
        self.center_x = (v[61, 0] + v[291, 0]) / 2
        self.half = max((v[291, 0] - v[61, 0]) / 2, 0.02)
        # Small drawn mouths must not be moved by an adult's lengths, or they collapse.
        k = float(np.clip(self.half / AVERAGE_HALF_MOUTH, 0.55, 1.25))
        self.scale = np.array([k, k**0.5, k**0.5])
        self.gap = v[list(LOWER_INNER)] - v[list(UPPER_INNER)]  # [11, 3]
        line = (v[list(UPPER_INNER), 1] + v[list(LOWER_INNER), 1]) / 2
        self._line_t = np.maximum.accumulate([self.t(i) for i in UPPER_INNER])
        self._line_y = line

    def t(self, vertex: int) -> float:
        """-1 at the right corner, 1 at the left."""
        return float(np.clip((self.v[vertex, 0] - self.center_x) / self.half, -1, 1))

    def flatten(self, t: float) -> float:
        """Downward move that takes three quarters of the lip line's bend away: a smiling picture
        would otherwise purse its lips in a V."""
        middle = self._line_y[5]
        return 0.75 * float(middle - np.interp(t, self._line_t, self._line_y))
