"""Level of the voice in dBFS and the noise gate. Pure: blocks in, numbers and blocks out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.clock import ms_to_samples

FLOOR_DB = -100.0
HOLD_SAMPLES = ms_to_samples(240)  # the tail of a word, and the pauses within one, stay
CLOSE_SAMPLES = ms_to_samples(80)  # from open to shut
OPEN_SAMPLES = ms_to_samples(2)  # keeps plosives
HYSTERESIS_DB = 6.0  # closes this far below where it opens


@dataclass(frozen=True, slots=True)
class Level:
    """rms and peak in dBFS; `clipped` when a sample reached full scale."""

    rms_db: float
    peak_db: float
    clipped: bool
    gate_open: bool = True


def measure(samples: np.ndarray) -> Level:
    """Level of `samples` [n] float32 in -1..1."""
    if len(samples) == 0:
        return Level(FLOOR_DB, FLOOR_DB, False)
    peak = float(np.abs(samples).max())
    rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    return Level(_db(rms), _db(peak), peak >= 0.999)


class NoiseGate:
    """Silence below `threshold_db`. Opens within a block by a ramp, holds, then closes softly."""

    def __init__(self, threshold_db: float = -60.0) -> None:
        self.threshold_db = threshold_db
        self._gain = 0.0
        self._hold = 0

    @property
    def is_open(self) -> bool:
        return self._gain > 0.5

    def process(self, samples: np.ndarray) -> np.ndarray:
        """A gated copy of one block of any length."""
        if self.threshold_db <= FLOOR_DB:
            self._gain = 1.0
            return samples
        level = measure(samples).rms_db
        limit = self.threshold_db - (HYSTERESIS_DB if self._hold else 0.0)
        self._hold = HOLD_SAMPLES if level >= limit else max(self._hold - len(samples), 0)
        before = self._gain
        self._gain = 1.0 if self._hold else max(before - len(samples) / CLOSE_SAMPLES, 0.0)
        if before == self._gain:
            return samples * np.float32(before)
        ramp = np.full(len(samples), self._gain, np.float32)
        turn = OPEN_SAMPLES if self._gain > before else len(samples)
        ramp[:turn] = np.linspace(before, self._gain, turn, dtype=np.float32)[: len(samples)]
        return samples * ramp


def _db(amplitude: float) -> float:
    return max(20.0 * float(np.log10(max(amplitude, 1e-9))), FLOOR_DB)
