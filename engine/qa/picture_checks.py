"""Is the file itself sound? Counts, rate, starts, faces, black and repeated frames, sharpness.

Each gives a number; limits live in `limits.py`. Knows nothing of mouths.
"""

from __future__ import annotations

import numpy as np

from engine.qa.measured import Measured
from engine.qa.video_file import VideoFacts

BLACK = 6.0  # mean luma at or below it (video black is 0 here, 16 in the file)
SAME = 0.02  # mean grey levels between frames that count as one picture shown twice


def count_error(frames: int, fps: float, sound_s: float) -> float:
    """Frames too many (+) or too few (-) for the sound."""
    return float(frames - round(sound_s * fps))


def rate_error_ms(facts: VideoFacts) -> float | None:
    """Largest departure of a frame interval from the median one."""
    gaps = facts.intervals_s
    return float(np.abs(gaps - np.median(gaps)).max() * 1000) if len(gaps) else None


def start_gap_ms(facts: VideoFacts) -> float | None:
    """Start of the picture after the sound's."""
    if not np.isfinite(facts.sound_start_s) or not len(facts.starts_s):
        return None
    return float(facts.starts_s[0] - facts.sound_start_s) * 1000


def black_frames(measured: Measured) -> int:
    return int((measured.luma <= BLACK).sum())


def repeated_share(measured: Measured) -> float:
    """Share of frames that repeat the one before."""
    return float((measured.change[1:] <= SAME).mean()) if len(measured) > 1 else 0.0


def longest_still(measured: Measured) -> int:
    """Most repeated frames in a row."""
    longest = run = 0
    for same in measured.change[1:] <= SAME:
        run = run + 1 if same else 0
        longest = max(longest, run)
    return longest


def sharpness_share(measured: Measured, of_picture: float) -> float | None:
    """Median sharpness of the face in shares of the still picture's; None without either."""
    sharp = measured.sharp[np.isfinite(measured.sharp)]
    if not len(sharp) or not np.isfinite(of_picture) or of_picture <= 0:
        return None
    return float(np.median(sharp)) / of_picture
