"""The opening that phones let a viewer expect, on the 24 fps grid: the ruler's own table.

Coarse on purpose (seven heights) and apart from the motion targets of any engine: it says how open
lips usually are in a phone, nothing of rounding, effort or style.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.clock import FPS
from engine.motion.phone_track import Phone

OPENING: dict[str, float] = {
    **dict.fromkeys(("AA", "AE", "AW", "AY"), 1.0),
    **dict.fromkeys(("AO", "EH", "AH", "EY", "OY"), 0.75),
    **dict.fromkeys(("OW", "IH", "ER", "HH", "L"), 0.5),
    **dict.fromkeys(("IY", "UH", "Y", "K", "G", "NG", "DH", "TH", "R"), 0.35),
    **dict.fromkeys(("T", "D", "N", "S", "Z", "SH", "ZH", "CH", "JH", "UW", "W"), 0.25),
    **dict.fromkeys(("F", "V"), 0.1),
    **dict.fromkeys(("P", "B", "M", "SIL"), 0.0),
}
BILABIAL = ("P", "B", "M")
OPEN_VOWELS = ("AA", "AE", "AY", "AW", "AO", "EH")
SPREAD, ROUND = ("IY", "EY", "AE"), ("UW", "OW", "W", "UH")
KERNEL_MS = 60.0  # half width of the Hann window that rounds the steps: jaws have mass
FINE_MS = 5.0


def frame_times(count: int) -> np.ndarray:
    """[count] middles of 24 fps frames in seconds."""
    return (np.arange(count) + 0.5) / FPS


def of_phones(phones: Sequence[Phone], table: dict[str, float], times_s: np.ndarray) -> np.ndarray:
    """[n] the table's value of the phone heard at each time, 0 where there is none."""
    starts = np.array([p.start_s for p in phones])
    ends = np.array([p.end_s for p in phones])
    values = np.array([table.get(p.name, 0.0) for p in phones])
    at = np.searchsorted(starts, times_s, side="right") - 1
    inside = (at >= 0) & (times_s < ends[np.maximum(at, 0)])
    return np.where(inside, values[np.maximum(at, 0)], 0.0)


def expected_opening(phones: Sequence[Phone], times_s: np.ndarray) -> np.ndarray:
    """[n] 0..1: the table, rounded by a Hann window of 2 x KERNEL_MS, symmetric in time."""
    steps = np.arange(-KERNEL_MS, KERNEL_MS + 1e-6, FINE_MS) / 1000
    window = np.hanning(len(steps) + 2)[1:-1]
    values = of_phones(phones, OPENING, (times_s[:, None] + steps).ravel())
    return values.reshape(len(times_s), -1) @ (window / window.sum())
