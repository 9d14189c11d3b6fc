"""Do the lips meet where they must and part where they must? Hits corrected for chance.

A mouth that stays shut hits every closure, one that stays open every vowel. So each share is
compared with what the same mouth scores when it is moved in time. Pure arrays at 24 fps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.clock import FPS
from engine.motion.phone_track import Phone
from engine.qa.expected import BILABIAL, OPEN_VOWELS

SHUT = 0.25  # of the full opening: at or below it lips count as met
OPEN = 0.45
LONG_VOWEL_S = 0.08
NEAR_FRAMES = 1  # a closure may be seen in the frame before or after its phone
AWAY_FRAMES = 12  # moved by less than half a second a mouth is not another mouth
# Where chance leaves less room than this nothing is shown: in a clip of long pauses a mouth that is
# shut in 97 % of all windows would score -3.4 for missing one closure of seven.
LEAST_ROOM = 0.15


@dataclass(frozen=True, slots=True)
class Hits:
    """`share` of `count` spans that were hit, `chance` of the moved mouth; `corrected` is 1 for
    always hit, 0 for no better than chance (below 0 is possible), None where chance leaves no
    room to tell."""

    share: float
    chance: float
    count: int

    @property
    def corrected(self) -> float | None:
        room = 1 - self.chance
        return (self.share - self.chance) / room if room > LEAST_ROOM else None


def frame_span(phone: Phone, near: int, frames: int) -> slice:
    """Frames whose time on screen overlaps the phone, and `near` more on both sides."""
    first = max(0, int(phone.start_s * FPS + 1e-6) - near)
    last = min(frames, int(np.ceil(phone.end_s * FPS - 1e-6)) + near)
    return slice(min(first, frames - 1), max(last, min(first, frames - 1) + 1))


def hits(
    opening: np.ndarray, spans: Sequence[slice], hit: Callable[[np.ndarray], bool]
) -> Hits | None:
    """Share of spans that are hit, and of all circular shifts of half a second and more."""
    if not spans:
        return None
    n = len(opening)
    share = float(np.mean([hit(opening[span]) for span in spans]))
    shifts = range(AWAY_FRAMES, n - AWAY_FRAMES + 1)
    moved = (np.roll(opening, shift) for shift in shifts)
    by_chance = [np.mean([hit(other[span]) for span in spans]) for other in moved]
    return Hits(share, float(np.mean(by_chance)) if by_chance else share, len(spans))


def bilabial_hits(opening: np.ndarray, phones: Sequence[Phone]) -> Hits | None:
    """P B M: shut in some frame of the closure, or next to it."""
    spans = [frame_span(p, NEAR_FRAMES, len(opening)) for p in phones if p.name in BILABIAL]
    return hits(opening, spans, lambda part: bool(part.min() <= SHUT))


def long_vowels(phones: Sequence[Phone]) -> list[Phone]:
    return [p for p in phones if p.name in OPEN_VOWELS and p.end_s - p.start_s >= LONG_VOWEL_S]


def open_hits(opening: np.ndarray, phones: Sequence[Phone]) -> Hits | None:
    """Open vowels of 80 ms and more: open in some frame of the vowel. Chance is no fair measure
    here: a mouth that speaks is open in most windows of that length."""
    spans = [frame_span(p, 0, len(opening)) for p in long_vowels(phones)]
    return hits(opening, spans, lambda part: bool(part.max() >= OPEN))


def false_closures(opening: np.ndarray, phones: Sequence[Phone]) -> tuple[float, int] | None:
    """(share, count) of open vowels in whose middle the mouth is shut."""
    middles = [int((p.start_s + p.end_s) / 2 * FPS) for p in long_vowels(phones)]
    middles = [m for m in middles if m < len(opening)]
    if not middles:
        return None
    return float(np.mean(opening[middles] <= SHUT)), len(middles)
