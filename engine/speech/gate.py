"""Is somebody speaking? The net's own verdict, held long enough not to chop words.

Noise, modulated noise and music are trained as non-speech, so no second model is needed. Knows
nothing of phones. A crowd of many voices counts as noise.
"""

from __future__ import annotations

import numpy as np

QUIETEST_DB = -64.0  # dBFS of a frame under which nobody is speaking, whatever the net says
RELEASE = 0.72  # a frame; from 1 to 0.27 in 170 ms


class SpeechGate:
    """Rises at once, falls by RELEASE a frame. Causal: one frame in, one value out."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As after a long silence."""
        self._level = 0.0

    def push(self, logit: float, loudness_db: float) -> float:
        """The net's logit and the frame's loudness -> 0..1."""
        heard = 1 / (1 + np.exp(-logit)) if loudness_db > QUIETEST_DB else 0.0
        self._level = max(float(heard), self._level * RELEASE)
        return self._level
