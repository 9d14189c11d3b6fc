"""Rounding, range, pauses and steadiness of a mouth: pure arrays at 24 fps.

Each gives (value, count) or None where the clip has nothing to measure. Knows nothing of limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.clock import FPS
from engine.motion.phone_track import Phone
from engine.qa.closures import SHUT
from engine.qa.expected import ROUND, SPREAD, frame_times

FIRST_S = 2.0  # the start of a clip is scored apart: models warm up there
PAUSE_S = 0.2
INTO_PAUSE_S, BEFORE_SPEECH_S = 0.2, 0.1  # a mouth may take this long to close, to prepare
LEAST_PAUSE_FRAMES = 3
AT_REST = 0.1  # more open than the picture's own mouth, which is a mouth at rest too
AROUND_S = 0.125  # silence kept on both sides of the speech that is compared with its sound


def rounding(width: np.ndarray, phones: Sequence[Phone]) -> tuple[float, int] | None:
    """Mouth width in S of spread vowels minus that of rounded ones, means over phones."""
    spread = _over(width, phones, SPREAD)
    rounded = _over(width, phones, ROUND)
    if not spread or not rounded:
        return None
    return float(np.mean(spread) - np.mean(rounded)), min(len(spread), len(rounded))


def _over(values: np.ndarray, phones: Sequence[Phone], names: tuple[str, ...]) -> list[float]:
    """The value in the middle of each phone of these names."""
    middles = [(p.start_s + p.end_s) / 2 * FPS - 0.5 for p in phones if p.name in names]
    grid = np.arange(len(values))
    return [float(np.interp(m, grid, values)) for m in middles if m < len(values)]


def dynamics(opening: np.ndarray, phones: Sequence[Phone] | None) -> tuple[float, int] | None:
    """95th minus 5th percentile of the opening while somebody speaks (all of it without phones)."""
    spoken = opening if phones is None else opening[~_silent(phones, len(opening), 0.0, 0.0)]
    if len(spoken) < FPS // 2:
        return None
    low, high = np.percentile(spoken, (5, 95))
    return float(high - low), len(spoken)


def _silent(phones: Sequence[Phone], frames: int, after_s: float, before_s: float) -> np.ndarray:
    """[frames] bool: inside a pause of PAUSE_S and more, without its first and last moments. A
    pause that begins the clip has no first moment."""
    times = frame_times(frames)
    inside = np.zeros(frames, bool)
    for phone in phones:
        if phone.name == "SIL" and phone.end_s - phone.start_s >= PAUSE_S:
            start = phone.start_s + (after_s if phone.start_s > 0 else 0.0)
            last = phone is phones[-1]
            end = np.inf if last else phone.end_s - before_s
            inside |= (times >= start) & (times < end)
    return inside


def rest_frames(phones: Sequence[Phone], frames: int) -> np.ndarray:
    """[frames] bool: where a mouth should be at rest."""
    return _silent(phones, frames, INTO_PAUSE_S, BEFORE_SPEECH_S)


def spoken(phones: Sequence[Phone], frames: int) -> slice:
    """Frames from the first sound to the last and a little more. Silence before and after is left
    to the scores of pauses: a picture's own smile is no fault of lip-sync."""
    said = [p for p in phones if p.name != "SIL"]
    if not said:
        return slice(0, frames)
    first = max(0, int((said[0].start_s - AROUND_S) * FPS))
    return slice(first, min(frames, int(np.ceil((said[-1].end_s + AROUND_S) * FPS))))


def pauses_shut(
    opening: np.ndarray, phones: Sequence[Phone], first: bool, own_rest: float = 0.0
) -> tuple[float, int] | None:
    """Share of rest frames with a mouth that is shut or no more open than the picture's own: those
    of the first two seconds, or the later ones."""
    rest = rest_frames(phones, len(opening))
    rest &= (frame_times(len(opening)) < FIRST_S) == first
    if rest.sum() < LEAST_PAUSE_FRAMES:
        return None
    return float(np.mean(opening[rest] <= max(SHUT, own_rest + AT_REST))), int(rest.sum())


def jump(points: np.ndarray, s: np.ndarray) -> tuple[float, int] | None:
    """Largest move of stable points [n, k, 2] from one frame to the next, in S [n]."""
    if len(points) < 2:
        return None
    moves = np.linalg.norm(np.diff(points.mean(1), axis=0), axis=1) / s[1:]
    known = moves[np.isfinite(moves)]
    return (float(known.max()), len(known)) if len(known) else None


def jitter(values: np.ndarray, rest: np.ndarray) -> tuple[float, int] | None:
    """Root mean square of the second difference of [n] over runs of three rest frames."""
    bends = values[2:] - 2 * values[1:-1] + values[:-2]
    still = rest[2:] & rest[1:-1] & rest[:-2] & np.isfinite(bends)
    if still.sum() < LEAST_PAUSE_FRAMES:
        return None
    return float(np.sqrt(np.mean(bends[still] ** 2))), int(still.sum())
