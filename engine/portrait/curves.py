"""Smooth curves through lip and lid points. Linear in the points: one small matrix, made once.

Knows nothing of faces.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=8)
def open_spline(points: int, samples: int) -> np.ndarray:
    """[samples, points]: a natural cubic spline with evenly spaced knots."""
    n = points
    second = np.zeros((n, n))  # second derivatives from values: tridiagonal system
    system, right = np.eye(n), np.zeros((n, n))
    for i in range(1, n - 1):
        system[i, i - 1 : i + 2] = 1, 4, 1
        right[i, i - 1 : i + 2] = 6, -12, 6
    second = np.linalg.solve(system, right)
    return _sampled(np.eye(n), second, np.linspace(0, n - 1, samples))


@lru_cache(maxsize=8)
def closed_spline(points: int, samples: int) -> np.ndarray:
    """[samples, points]: a periodic cubic spline; the last sample is the first point again."""
    n = points
    system, right = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for k, a, b in ((-1, 1, 6), (0, 4, -12), (1, 1, 6)):
            system[i, (i + k) % n] += a
            right[i, (i + k) % n] += b
    second = np.linalg.solve(system, right)
    value = np.eye(n)
    wrapped = (np.concatenate([value, value[:1]]), np.concatenate([second, second[:1]]))
    return _sampled(*wrapped, np.linspace(0, n, samples))


def _sampled(value: np.ndarray, second: np.ndarray, at: np.ndarray) -> np.ndarray:
    i = np.minimum(at.astype(int), len(value) - 2)
    t = (at - i)[:, None]
    s = 1 - t
    bend = ((s**3 - s) * second[i] + (t**3 - t) * second[i + 1]) / 6
    return s * value[i] + t * value[i + 1] + bend


def lip_gap(upper: np.ndarray, lower: np.ndarray, roundness: float) -> tuple[np.ndarray, ...]:
    """41 points each of the gap's upper and lower edge, from 11 + 11 inner lip points [11, 2].

    `roundness` 0: pointed corners; 1: one rounded closed curve, as a wide open mouth has it.
    """
    matrix = open_spline(11, 41)
    up, low = matrix @ upper, matrix @ lower
    if roundness > 0.01:
        ring = closed_spline(20, 81) @ np.concatenate([upper, lower[-2:0:-1]])
        up = up * (1 - roundness) + ring[:41] * roundness
        low = low * (1 - roundness) + ring[:39:-1] * roundness
    return up, low
