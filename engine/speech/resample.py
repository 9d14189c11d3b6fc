"""48 kHz to 24 kHz, streaming, with a look-ahead that is known to the sample.

Halving needs one short filter and keeps a 24 fps frame at exactly 1,000 samples; 16 kHz would put
666.67 samples in a frame and the answer would jitter by up to a hop.
Knows nothing of mel bands, frames or devices. Content above 16.4 kHz folds to above 7.6 kHz, where
no mel band listens.
"""

from __future__ import annotations

import numpy as np

ENCODER_RATE = 24_000  # Hz
HALF_TAPS = 15  # 48 kHz samples the filter hears beyond an output sample's instant


def lowpass_taps() -> np.ndarray:
    """[31] float32, sum 1: Kaiser sinc, -0.1 dB at 7.6 kHz, < -80 dB above 16.4 kHz."""
    n = np.arange(-HALF_TAPS, HALF_TAPS + 1)
    taps = np.sinc(n / 2) * np.kaiser(len(n), 8.0)
    return (taps / taps.sum()).astype(np.float32)


class Halver:
    """Zero-phase halving: output sample m sits at input sample 2m and hears up to 2m + 15."""

    def __init__(self) -> None:
        self._taps = lowpass_taps()
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next sample is sample 0, with silence before it."""
        self._tail = np.zeros(HALF_TAPS, np.float32)

    def push(self, pcm_48k: np.ndarray) -> np.ndarray:
        """[n] float32 at 48 kHz -> every 24 kHz sample that is complete, float32."""
        joined = np.concatenate([self._tail, pcm_48k])
        count = max(0, (len(joined) - 2 * HALF_TAPS + 1) // 2)
        if count == 0:
            self._tail = joined
            return np.zeros(0, np.float32)
        # every output at 48 kHz, half thrown away: 4x faster in C than a strided product
        out = np.correlate(joined, self._taps, "valid")[: 2 * count : 2]
        self._tail = joined[2 * count :]
        return out
