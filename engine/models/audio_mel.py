"""Log-mel features of a chunk's sound, streaming, for models conditioned on plain audio.

A public checkpoint brings its own encoder (wav2vec2); this is the front end of synthetic ones, with
the right shape and cost of conditioning. Knows nothing of video.
"""

from __future__ import annotations

import numpy as np

from engine.clock import SAMPLE_RATE

WINDOW = 2048  # samples, 42.7 ms
TOP_HZ = 8000.0


def mel_bank(bands: int, size: int = WINDOW) -> np.ndarray:
    """Triangles [bands, size // 2 + 1] float32, evenly spaced on the mel scale up to 8 kHz."""
    top = 2595 * np.log10(1 + TOP_HZ / 700)
    centres = 700 * (10 ** (np.linspace(0, top, bands + 2) / 2595) - 1)
    hertz = np.fft.rfftfreq(size, 1 / SAMPLE_RATE)[None]
    left, middle, right = (centres[i : i + bands, None] for i in range(3))
    rising, falling = (hertz - left) / (middle - left), (right - hertz) / (right - middle)
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


class AudioMel:
    """`features(pcm)` of consecutive chunks; keeps the last window so that chunks join."""

    def __init__(self, tokens: int, bands: int) -> None:
        self.tokens = tokens
        self._bank = mel_bank(bands)
        self._taper = np.hanning(WINDOW).astype(np.float32)
        self.reset()

    def reset(self) -> None:
        """Before the first sample there is silence."""
        self._past = np.zeros(WINDOW, np.float32)

    def features(self, pcm: np.ndarray) -> np.ndarray:
        """pcm [samples] float32 mono 48 kHz -> [tokens, bands] float32, about -2..2."""
        joined = np.concatenate((self._past, pcm.astype(np.float32)))
        ends = WINDOW + (np.arange(1, self.tokens + 1) * len(pcm)) // self.tokens
        pieces = np.stack([joined[end - WINDOW : end] for end in ends]) * self._taper
        power = np.abs(np.fft.rfft(pieces)) ** 2
        self._past = joined[-WINDOW:]
        return ((np.log10(power @ self._bank.T + 1e-6) + 2) / 2).astype(np.float32)
