"""How late the mouth is: the lag at which what is seen fits what is expected, to a part of a frame.

Pure arrays on one grid. Positive = the mouth comes late. Knows nothing of mouths or phones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST_LAG = 12  # frames: half a second both ways
LEAST_FRAMES = 36  # 1.5 s: fewer have as many lags as frames
LEAST_SPREAD = 1e-4  # standard deviation below which a mouth does not move


@dataclass(frozen=True, slots=True)
class Lag:
    """`late` frames at the best fit, the mouth after the sound when positive; `r0` the correlation
    at lag 0, `best` at the best lag; `confidence` best minus the median over all lags."""

    late: float
    r0: float
    best: float
    confidence: float


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's r of two [n]; 0 where one of them does not move."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > LEAST_SPREAD**2 * len(a) else 0.0


def curve(seen: np.ndarray, wanted: np.ndarray, most_lag: int = MOST_LAG) -> np.ndarray:
    """[2 * most_lag + 1] correlation of the mouth with what is wanted, for each lateness."""
    n = len(seen)
    lags = range(-most_lag, most_lag + 1)
    pairs = (
        (seen[max(0, k) : n + min(0, k)], wanted[max(0, -k) : n - max(0, k)]) for k in lags
    )  # fmt: skip
    return np.array([correlation(a, b) for a, b in pairs])


def lag_of_curve(values: np.ndarray) -> Lag:
    """The peak by a parabola through its three highest points."""
    middle = len(values) // 2
    top = int(values.argmax())
    shift = 0.0
    if 0 < top < len(values) - 1:
        left, peak, right = values[top - 1 : top + 2]
        bend = left - 2 * peak + right
        shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    best = float(values[top])
    return Lag(
        top - middle + float(shift), float(values[middle]), best, best - float(np.median(values))
    )


def lag(seen: np.ndarray, wanted: np.ndarray, least_move: float = LEAST_SPREAD) -> Lag | None:
    """None where the clip is too short or one of the two does not move: the standard deviation of
    `seen` is below `least_move`."""
    if len(seen) < LEAST_FRAMES or seen.std() < least_move or wanted.std() < LEAST_SPREAD:
        return None
    return lag_of_curve(curve(seen, wanted))
