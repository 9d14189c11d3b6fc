"""Thin-plate splines in 2D: exact solve in float64, fast evaluation in float32.

Knows nothing of faces. Evaluation holds to 1e-3 px of float64 (tests/portrait_render).
"""

from __future__ import annotations

import numpy as np

BLOCK = 2048  # points at once: a block of the kernel matrix (4 MB at 500 knots) stays in L2/L3
TINY = 1e-12


def kernel(d2: np.ndarray) -> np.ndarray:
    """r^2 log r from squared distances, in place."""
    np.maximum(d2, TINY, out=d2)
    log = np.log(d2)
    d2 *= log
    d2 *= 0.5
    return d2


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[n, m] by |a|^2 + |b|^2 - 2ab: one matrix product instead of n*m*2 differences."""
    d2 = a @ b.T
    d2 *= -2
    d2 += (a * a).sum(1)[:, None]
    d2 += (b * b).sum(1)
    return d2


def weights(knots: np.ndarray, values: np.ndarray, stiffness: float) -> np.ndarray:
    """[n + 3, channels] float64 for values [n, channels] at knots [n, 2]; 0 passes through all."""
    n = len(knots)
    system = np.zeros((n + 3, n + 3))
    difference = knots[:, None] - knots[None]
    system[:n, :n] = kernel((difference**2).sum(-1)) + stiffness * np.eye(n)
    system[:n, n], system[:n, n + 1 :] = 1, knots
    system[n:, :n] = system[:n, n:].T
    return np.linalg.solve(system, np.concatenate([values, np.zeros((3, values.shape[1]))]))


def evaluate(points: np.ndarray, knots: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[p, channels] float32 at points [p, 2]."""
    points, knots = points.astype(np.float32), knots.astype(np.float32)
    weight = weight.astype(np.float32)
    radial, plane = weight[: len(knots)], weight[len(knots) :]
    out = np.empty((len(points), weight.shape[1]), np.float32)
    for i in range(0, len(points), BLOCK):
        block = points[i : i + BLOCK]
        np.matmul(kernel(squared_distances(block, knots)), radial, out=out[i : i + BLOCK])
        out[i : i + BLOCK] += plane[0] + block @ plane[1:]
    return out
