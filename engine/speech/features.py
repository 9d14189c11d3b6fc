"""Log-mel features on a grid that divides a 24 fps frame: 4 hops a frame, 2 steps a frame.

The grid is pushed as late as 80 ms of look-ahead allows: the step that answers frame n ends at
48 kHz sample 2,000n + 4,839, the last one before centre + 80 ms. Causal and streaming: `MelStream`
and `mel_power` give the same numbers. Knows nothing of phones or nets.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from engine.speech.resample import ENCODER_RATE

HOP = 250  # 24 kHz samples, 10.42 ms; 4 hops = one frame
WINDOW = 600  # 25 ms Hann
FFT = 768  # 31.25 Hz bins
HEARD_BINS = 245  # up to 7,625 Hz: no band listens above
MELS = 40
LOWEST_HZ, HIGHEST_HZ = 60.0, 7_600.0
# Hop k hears 24 kHz samples up to HOP*(k+1) + GRID_OFFSET (exclusive). 163 makes the last 48 kHz
# sample heard for frame n 2,000n + 4,839: 2*(HOP*(4n+9) + 163 - 1) + 15 filter taps.
GRID_OFFSET = 163
INPUTS = 2 * (MELS + 1)  # two hops stacked, each 40 bands and its energy
POWER_FLOOR = 2e-6
MEAN_FIRST, MEAN_LONG = 40.0, 300.0  # hops: the running mean's first and long-run time constants
BAND_SCALE = 0.4
# A quiet microphone is lifted by up to 12 dB. Training heard speech whose loudest hops lie 3 dB
# above LOUD_DB at full level and up to 22 dB lower. A stream starts without lift: lifting its first
# noise made mouths open at the start. The loudest hop so far is forgotten ever more slowly.
LOUD_DB, MOST_LIFT_DB = 2.0, 12.0
LOUD_FIRST, LOUD_LONG = 96.0, 1_440.0  # hops: 1 s at first, 15 s in the long run


def step_of_frame(frame: int) -> int:
    """The 48 Hz step whose audio ends just before frame centre + 80 ms."""
    return 2 * frame + 4


def mel_edges_hz() -> np.ndarray:
    """[MELS + 2] band edges in Hz, even on the mel scale 2595 log10(1 + f/700)."""
    low, high = (2595 * np.log10(1 + f / 700) for f in (LOWEST_HZ, HIGHEST_HZ))
    return 700 * (10 ** (np.linspace(low, high, MELS + 2) / 2595) - 1)


@cache
def mel_matrix() -> np.ndarray:
    """[HEARD_BINS, MELS] float32 triangles over the FFT bins, divided by the window's length."""
    edges = mel_edges_hz()
    hz = np.arange(HEARD_BINS) * ENCODER_RATE / FFT
    rise = (hz[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[None, 2:] - hz[:, None]) / (edges[2:] - edges[1:-1])
    return (np.maximum(0, np.minimum(rise, fall)) / WINDOW).astype(np.float32)


@cache
def hann() -> np.ndarray:
    """[WINDOW] float32."""
    return np.hanning(WINDOW).astype(np.float32)


def window_power(windows: np.ndarray) -> np.ndarray:
    """[n, WINDOW] samples -> [n, MELS] mel power, float32."""
    spectrum = np.fft.rfft(windows * hann(), FFT, axis=1)[:, :HEARD_BINS]
    power = spectrum.real**2 + spectrum.imag**2
    return power @ mel_matrix() + np.float32(1e-9)


class MelStream:
    """Cuts a 24 kHz stream into overlapping windows and gives each hop's mel power."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Before the first sample lies silence: window 0 ends at HOP + GRID_OFFSET."""
        self._tail = np.zeros(WINDOW - HOP - GRID_OFFSET, np.float32)

    def push(self, pcm_24k: np.ndarray) -> np.ndarray:
        """[n] float32 -> [hops completed, MELS] mel power."""
        self._tail = np.concatenate([self._tail, pcm_24k])
        count = max(0, (len(self._tail) - WINDOW) // HOP + 1)
        if count == 0:
            return np.zeros((0, MELS), np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(self._tail, WINDOW)[::HOP][:count]
        power = window_power(windows)
        self._tail = self._tail[count * HOP :]
        return power


def mel_power(pcm_24k: np.ndarray) -> np.ndarray:
    """[n] -> [hops, MELS]: the batch truth."""
    return MelStream().push(np.asarray(pcm_24k, np.float32))


class InputStream:
    """Mel power -> net inputs: lifted, log, running mean removed per band, energy, hops paired.

    Steps pair hops (2s-1, 2s), so that the step of frame n ends exactly where its look-ahead does.
    """

    def __init__(self, mean: np.ndarray) -> None:
        self._first_mean = np.asarray(mean, np.float32)  # [MELS] mean log power of the training set
        self.reset()

    def reset(self) -> None:
        self._mean = self._first_mean.copy()
        self._hops = 0
        self._loudest = 10 ** (LOUD_DB / 10)
        self._waiting = np.zeros((1, MELS + 1), np.float32)  # hop -1: as if at the mean

    def push(self, power: np.ndarray) -> np.ndarray:
        """[hops, MELS] -> [steps, INPUTS] float32."""
        rows = np.concatenate([self._waiting, self._hop_features(self._lifted(power))])
        steps = len(rows) // 2
        self._waiting = rows[2 * steps :]
        return rows[: 2 * steps].reshape(steps, INPUTS)

    def _lifted(self, power: np.ndarray) -> np.ndarray:
        """Causal and instant on attack: what is loud is never lifted."""
        least, enough = 10 ** ((LOUD_DB - MOST_LIFT_DB) / 10), 10 ** (LOUD_DB / 10)
        lift = np.empty((len(power), 1), np.float32)
        for i, loudness in enumerate(power.sum(1).tolist()):
            kept = 1 - 1 / min(self._hops + i + LOUD_FIRST, LOUD_LONG)
            self._loudest = max(loudness, self._loudest * kept, least)
            lift[i] = max(1.0, enough / self._loudest)
        return power * lift

    def _hop_features(self, power: np.ndarray) -> np.ndarray:
        log_power = np.log(power + np.float32(POWER_FLOOR))
        out = np.empty((len(power), MELS + 1), np.float32)
        for i, row in enumerate(log_power):
            rate = max(1 / (self._hops + MEAN_FIRST), 1 / MEAN_LONG)
            self._mean += np.float32(rate) * (row - self._mean)
            out[i, :MELS] = (row - self._mean) * np.float32(BAND_SCALE)
            self._hops += 1
        out[:, MELS] = (np.log(power.sum(1) + np.float32(1e-5)) + 4) * np.float32(0.25)
        return out
