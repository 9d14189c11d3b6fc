"""How right lip classes are against known phone times, in the terms a viewer would use.

Knows nothing of encoders: it compares two rows of classes at 24 fps frame centres.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.clock import FPS
from engine.speech.classes import CLOSED, LABIO, LIP_OF_PHONE, OPEN, REST

Segment = tuple[str, float, float]  # phone, start and end in seconds
FRAME = 1 / FPS
FAR_FROM_SPEECH = 0.1  # s: rest frames nearer to a phone than this are not judged as pauses


@dataclass(frozen=True, slots=True)
class Marked:
    """One clip: what was said when, and what a system showed at each frame centre."""

    phones: list[Segment]
    shown: np.ndarray  # [frames] int lip classes


@dataclass(frozen=True, slots=True)
class Score:
    """Pooled over clips; rates are nan where nothing was there to count."""

    accuracy: float
    low: float  # 95 % interval of accuracy over clips
    high: float
    kappa: float
    closure_recall: float
    closure_precision: float
    labio_recall: float
    pause_open: float  # share of pause frames shown as anything but rest or closed
    lag_ms: int  # shift of the shown row that fits best, + = late
    clips: int
    closures: int
    labials: int


def centres(count: int) -> np.ndarray:
    """[count] seconds: where frames are sampled."""
    return (np.arange(count) + 0.5) * FRAME


def true_classes(phones: list[Segment], times: np.ndarray) -> np.ndarray:
    """Lip class at each instant; rest where no phone is."""
    out = np.full(len(times), REST)
    for phone, start, end in phones:
        out[(times >= start) & (times < end)] = LIP_OF_PHONE.get(phone, REST)
    return out


def kappa(truth: np.ndarray, shown: np.ndarray) -> float:
    """Cohen's: agreement beyond what the two classes' shares alone would give."""
    by_chance = sum(np.mean(truth == k) * np.mean(shown == k) for k in range(6))
    return float((np.mean(truth == shown) - by_chance) / (1 - by_chance)) if by_chance < 1 else 1.0


def found(marked: Marked, lip: int) -> list[bool]:
    """For each phone of a class: shown in a frame within one frame of it?"""
    times = centres(len(marked.shown))
    hits = []
    for phone, start, end in marked.phones:
        if LIP_OF_PHONE.get(phone) == lip:
            near = (times >= start - FRAME) & (times < end + FRAME)
            if near.any():
                hits.append(bool((marked.shown[near] == lip).any()))
    return hits


def justified(marked: Marked, lip: int) -> list[bool]:
    """For each run of shown frames of a class: truly so within one frame of it?"""
    truth = true_classes(marked.phones, centres(len(marked.shown))) == lip
    shown = np.concatenate([[0], (marked.shown == lip).astype(int), [0]])
    starts, ends = np.flatnonzero(np.diff(shown) == 1), np.flatnonzero(np.diff(shown) == -1)
    return [bool(truth[max(0, a - 1) : b + 1].any()) for a, b in zip(starts, ends, strict=True)]


def pauses(marked: Marked) -> np.ndarray:
    """Shown classes of frames that rest, 0.1 s or more from any phone."""
    times = centres(len(marked.shown))
    far = np.ones(len(times), bool)
    for phone, start, end in marked.phones:
        if LIP_OF_PHONE.get(phone, REST) != REST:
            far &= (times < start - FAR_FROM_SPEECH) | (times > end + FAR_FROM_SPEECH)
    return marked.shown[far]


def lag_ms(clips: Sequence[Marked], step_ms: int = 10, furthest_ms: int = 160) -> int:
    """Shift of the truth that the shown rows fit best: + where what is shown is late."""
    shifts = np.arange(-furthest_ms, furthest_ms + 1, step_ms)
    fits = [
        np.mean(
            [
                np.mean(true_classes(c.phones, centres(len(c.shown)) - shift / 1000) == c.shown)
                for c in clips
            ]
        )
        for shift in shifts
    ]
    best = np.flatnonzero(np.isclose(fits, max(fits), atol=1e-9))
    return int(shifts[best[np.argmin(np.abs(shifts[best]))]])


def score(clips: Sequence[Marked]) -> Score:
    """All measures over a set of clips."""
    truths = [true_classes(c.phones, centres(len(c.shown))) for c in clips]
    each = np.array([np.mean(t == c.shown) for t, c in zip(truths, clips, strict=True)])
    truth, shown = np.concatenate(truths), np.concatenate([c.shown for c in clips])
    rng = np.random.default_rng(0)
    spread = [each[rng.integers(0, len(each), len(each))].mean() for _ in range(1_000)]
    closures = [hit for c in clips for hit in found(c, CLOSED)]
    labials = [hit for c in clips for hit in found(c, LABIO)]
    right = [ok for c in clips for ok in justified(c, CLOSED)]
    still = np.concatenate([pauses(c) for c in clips])
    return Score(
        accuracy=float(np.mean(truth == shown)),
        low=float(np.percentile(spread, 2.5)),
        high=float(np.percentile(spread, 97.5)),
        kappa=kappa(truth, shown),
        closure_recall=_rate(closures),
        closure_precision=_rate(right),
        labio_recall=_rate(labials),
        pause_open=_rate(list(still > CLOSED)),
        lag_ms=lag_ms(clips),
        clips=len(clips),
        closures=len(closures),
        labials=len(labials),
    )


def open_share(shown: np.ndarray, wide_only: bool = False) -> float:
    """Share of frames with an open mouth: anything but rest or closed, or only open and round."""
    return float(np.mean(shown >= OPEN if wide_only else shown > CLOSED))


def _rate(hits: Sequence[bool]) -> float:
    return float(np.mean(hits)) if len(hits) else float("nan")
