"""48 kHz -> 16 kHz, streaming: a centred windowed sinc, so that sample n of the result is time 3n.

Chunks may be cut anywhere: the result is the same to the last bit. Before the first sample there is
silence. Knows nothing of what is heard.
"""

from __future__ import annotations

import numpy as np

FACTOR = 3
REACH = 96  # samples at 48 kHz to each side: 2 ms, passes 7.2 kHz, stops 8.4 kHz by 80 dB


def low_pass() -> np.ndarray:
    """[2 * REACH + 1] float32, unit gain at 0 Hz, half of it at 7.8 kHz."""
    at = np.arange(-REACH, REACH + 1)
    taps = np.sinc(at * 2 * 7_800 / 48_000) * np.kaiser(2 * REACH + 1, 8.0)
    return (taps / taps.sum()).astype(np.float32)


class Downsampler:
    """`push(pcm)` gives every 16 kHz sample that can be told by now."""

    def __init__(self) -> None:
        self._taps = low_pass()
        self.reset()

    def reset(self) -> None:
        self._held = np.zeros(REACH, np.float32)  # from the first sample the next result needs

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """pcm [n] float32 at 48 kHz -> [about n / 3] float32; REACH samples are held back."""
        held = np.concatenate((self._held, pcm.astype(np.float32)))
        count = max(0, (len(held) - len(self._taps)) // FACTOR + 1)
        if count == 0:
            self._held = held
            return np.zeros(0, np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(held, len(self._taps))
        result = np.einsum("nk,k->n", windows[: FACTOR * count : FACTOR], self._taps)
        self._held = held[FACTOR * count :]
        return result.astype(np.float32)
