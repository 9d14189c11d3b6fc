"""How open a mouth is, 0 shut to 1 wide open, from landmarks or from colours: one gauge a face.

Landmark trackers read small openings of drawn mouths as shut; there the rows whose colour only the
open mouth shows are counted instead. Which of the two, and what a reading means, is learnt from a
sweep of the same face whose gaps are known. Knows nothing of sound or time.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from scipy.optimize import isotonic_regression

from engine.qa.measured import EYES, INNER_LIPS, STRIP_PX_PER_S, Measured

BINS = 64  # a colour axis of the palette
SPREAD_BINS = 1.6  # Gaussian over the palette: codecs and light shift colours a little
SEEN_MORE = 1.5  # times as often in open as in shut mouths: a colour of the inside
FULL_GAP_S = 0.12  # of S, where no sweep says better: the widest vowels of ten real speakers
LEAST_SPREAD_S = 0.02  # a clip that moves less has no range of its own
LANDMARKS, COLOURS = "landmarks", "colours"


@dataclass(frozen=True, slots=True)
class Gauge:
    """`measure` is LANDMARKS or COLOURS; `palette` [BINS, BINS, BINS] bool marks colours of the
    inside. A reading is looked up in `readings` (rising) to give the gap in S of `gaps`; `full` is
    the gap in S that counts as 1. `error` is the rms error in S on sweep frames that were not
    fitted, `dead_zone` the smallest share of `full` told from shut; `source` "sweep", "clip" or
    "default"."""

    measure: str
    readings: np.ndarray
    gaps: np.ndarray
    full: float
    palette: np.ndarray | None
    error: float
    dead_zone: float
    source: str
    sharp: float  # of the still picture: the sweep's frames
    rest: float = 0.0  # opening of the picture's own mouth: a smile that shows teeth is open

    def opening(self, measured: Measured) -> np.ndarray:
        """[n] in shares of the full opening, a little over 1 at most; nan without a face."""
        raw = reading(self.measure, measured, self.palette)
        return np.interp(raw, self.readings, self.gaps) / self.full


def lip_gap(landmarks: np.ndarray) -> np.ndarray:
    """[n] mean distance of the inner lips in S, of [n, 478, 2]."""
    s = np.linalg.norm(landmarks[:, EYES[1]] - landmarks[:, EYES[0]], axis=1)
    gaps = [np.linalg.norm(landmarks[:, low] - landmarks[:, up], axis=1) for up, low in INNER_LIPS]
    return np.mean(gaps, axis=0) / np.maximum(s, 1e-6)


def colour_gap(strips: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """[n] rows of the inside's colours in S, mean over the strip's columns."""
    return palette[_codes(strips)].sum(1).mean(1) / STRIP_PX_PER_S


def reading(measure: str, measured: Measured, palette: np.ndarray | None) -> np.ndarray:
    """[n] raw reading in S, nan without a face."""
    if measure == LANDMARKS or palette is None:
        return lip_gap(measured.landmarks)
    return np.where(measured.seen, colour_gap(measured.strips, palette), np.nan)


def _codes(strips: np.ndarray) -> tuple[np.ndarray, ...]:
    """Palette indices of BGR pixels [..., 3]."""
    lab = cv2.cvtColor(strips.reshape(-1, 1, 3), cv2.COLOR_BGR2LAB).reshape(strips.shape)
    return tuple(lab[..., axis] // (256 // BINS) for axis in range(3))


def _counts(strips: np.ndarray) -> np.ndarray:
    """[BINS, BINS, BINS] share of pixels a colour has, blurred over its neighbours."""
    counts = np.zeros((BINS,) * 3)
    np.add.at(counts, _codes(strips), 1.0)
    for axis in range(3):
        rows = np.moveaxis(counts, axis, 0).reshape(BINS, -1)
        rows = cv2.GaussianBlur(
            rows, (1, 11), 0, sigmaY=SPREAD_BINS, borderType=cv2.BORDER_CONSTANT
        )
        counts = np.moveaxis(rows.reshape(BINS, BINS, BINS), 0, axis)
    return counts / max(counts.sum(), 1e-9)


def make_palette(strips: np.ndarray, gaps: np.ndarray, full: float) -> np.ndarray:
    """[BINS, BINS, BINS] bool, from strips [n, ...] of known gaps [n] in S."""
    shut, wide = _counts(strips[gaps < 0.05 * full]), _counts(strips[gaps > 0.45 * full])
    return wide > SEEN_MORE * shut + 1e-5


def fit_gauge(measured: Measured, gaps: np.ndarray, full: float) -> Gauge:
    """The gauge of a sweep whose frames have the true gaps [n] in S; `full` in S.

    Fitted on every second frame, judged on the others; the measure with the smaller error is kept.
    """
    seen = measured.seen
    even = seen & (np.arange(len(gaps)) % 2 == 0)
    odd = seen & ~even
    if even.sum() < 4 or odd.sum() < 4 or np.ptp(gaps[even]) < 0.3 * full:
        return default_gauge(None)
    palette = make_palette(measured.strips[even], gaps[even], full)
    fits = []
    for measure in (LANDMARKS, COLOURS):
        raw = reading(measure, measured, palette)
        x, y = monotone(raw[even], gaps[even])
        error = float(np.sqrt(np.mean((np.interp(raw[odd], x, y) - gaps[odd]) ** 2)))
        fits.append((error, measure, raw))
    error, measure, raw = min(fits, key=lambda fit: fit[0])
    readings, levels = monotone(raw[seen], gaps[seen])
    sharp = float(np.median(measured.sharp[seen]))
    dead = _dead_zone(raw[seen], gaps[seen]) / full
    return Gauge(measure, readings, levels, full, palette, error, dead, "sweep", sharp)


def monotone(raw: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rising steps (readings, gaps) that fit the pairs best; the smallest reading means 0."""
    order = np.argsort(raw, kind="stable")
    fitted = isotonic_regression(gaps[order]).x
    readings, first = np.unique(raw[order], return_index=True)
    return readings, np.maximum(fitted[first], 0.0)


def _dead_zone(raw: np.ndarray, gaps: np.ndarray) -> float:
    """Smallest gap in S from which on every reading exceeds those of a shut mouth."""
    shut = raw[gaps < 1e-3].max(initial=float(raw.min()))
    unseen = gaps[raw <= shut + 1e-4]
    return float(unseen.max(initial=0.0))


def default_gauge(landmarks: np.ndarray | None) -> Gauge:
    """For videos without a sweep: landmarks, and the range of the clip itself if it has one."""
    low, full, source = 0.005, FULL_GAP_S, "default"
    if landmarks is not None:
        gaps = lip_gap(landmarks)
        gaps = gaps[np.isfinite(gaps)]
        if len(gaps):
            bottom, top = np.percentile(gaps, (2, 98))
            if top - bottom >= LEAST_SPREAD_S:
                low, full, source = float(min(bottom, 0.03)), float(top - min(bottom, 0.03)), "clip"
    return Gauge(
        LANDMARKS, np.array([low, low + 2 * full]), np.array([0.0, 2 * full]), full, None,
        float("nan"), float("nan"), source, float("nan"),
    )  # fmt: skip
