"""Pitch of a frame by autocorrelation: cheap, good enough for head and brow motion.

Knows nothing of speech or phones; a hum has a pitch too.
"""

from __future__ import annotations

import numpy as np

PITCH_RATE = 8_000  # Hz: six 48 kHz samples averaged
SHRINK = 6
PITCH_WINDOW = 480  # 60 ms at 8 kHz
LOWEST_HZ, HIGHEST_HZ = 65.0, 420.0
LEAST_PERIODICITY = 0.5  # normalised autocorrelation below which a frame is unvoiced
LEAST_RMS = 10 ** (-55 / 20)
_FFT = 1_024
_MEAN = np.full(SHRINK, 1 / SHRINK, np.float32)


def pitch_hz(pcm_48k: np.ndarray) -> float:
    """[2880] float32 around the frame's centre -> Hz, 0 where unvoiced or too quiet."""
    x = pcm_48k.reshape(-1, SHRINK) @ _MEAN
    x = x - x.mean()
    if float(x @ x) < LEAST_RMS**2 * len(x):
        return 0.0
    spectrum = np.fft.rfft(x, _FFT)
    shortest, longest = int(PITCH_RATE / HIGHEST_HZ), int(PITCH_RATE / LOWEST_HZ)
    like = np.fft.irfft(spectrum.real**2 + spectrum.imag**2)[: longest + 2]
    like = like / like[0] * (len(x) / (len(x) - np.arange(len(like))))
    return _best_lag(like, shortest, longest)


def _best_lag(like: np.ndarray, shortest: int, longest: int) -> float:
    """First peak within 85 % of the best one (the best may lie an octave down)."""
    inner = like[shortest : longest + 1]
    peak = (inner >= like[shortest - 1 : longest]) & (inner >= like[shortest + 1 : longest + 2])
    good = np.flatnonzero(peak & (inner >= max(LEAST_PERIODICITY, 0.85 * inner.max())))
    if len(good) == 0:
        return 0.0
    lag = shortest + int(good[0])
    left, here, right = like[lag - 1], like[lag], like[lag + 1]
    curve = left - 2 * here + right
    shift = 0.5 * (left - right) / curve if curve < 0 else 0.0
    return float(PITCH_RATE / (lag + shift))
