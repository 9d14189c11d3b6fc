"""Breathing: quick breaths in at pauses, slow ones out while speaking, a calm cycle when idle.

Knows only whether somebody speaks.
"""

from __future__ import annotations

from engine.clock import FPS
from engine.motion.prosody import Prosody
from engine.motion.spring import Spring

IDLE_IN_S, IDLE_OUT_S = 1.6, 2.4
SPEECH_OUT_S = 5.0
DEEP, CALM = 0.8, 0.6
RATE = 4.0


class Breath:
    def __init__(self) -> None:
        self._volume = Spring(RATE)
        self._aim = 0.0
        self._inhaling = True

    def step(self, prosody: Prosody) -> float:
        """Shoulders of this frame, 0..1."""
        if prosody.phrase_start:
            self._inhaling, self._aim = False, max(self._aim, 0.55)
        elif prosody.phrase_end:
            self._inhaling = True
        out_s = SPEECH_OUT_S if prosody.speaking else IDLE_OUT_S
        top = DEEP if prosody.speaking else CALM
        self._aim += top / (IDLE_IN_S * FPS) if self._inhaling else -top / (out_s * FPS)
        if self._aim >= top:
            self._inhaling = False
        elif self._aim <= 0:
            self._aim, self._inhaling = 0.0, not prosody.speaking
        return self._volume.step(self._aim)
