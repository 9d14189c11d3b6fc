"""Brows, cheeks and a held smile: raised on accents, drifting slowly otherwise.

Knows nothing of words or feelings; amounts stay small enough for any picture.
"""

from __future__ import annotations

import math

import numpy as np

from engine.clock import FPS
from engine.motion.prosody import Prosody
from engine.motion.spring import Spring
from engine.portrait.coefficients import COUNT, INDEX

RAISE, FROWN = 0.62, 0.26  # spring targets; reached to about half within an accent
RAISE_SHARE, FROWN_SHARE = 0.55, 0.15  # of the accents; the rest leave the brows alone
RAISE_RATE, MOOD_RATE = 10.0, 1.2
ACCENT_FRAMES = 6
SMILE = (0.03, 0.12)  # held, redrawn every 3 to 7 s
DRIFT = 0.05  # of the brows


class Expression:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._phases = rng.uniform(0, 2 * math.pi, 2)
        self._raise, self._frown = Spring(RAISE_RATE), Spring(RAISE_RATE)
        self._smile, self._uneven = Spring(MOOD_RATE), Spring(MOOD_RATE)
        self._raise_aim = self._frown_aim = 0.0
        self._smile_aim, self._uneven_aim = float(rng.uniform(*SMILE)), 0.0
        self._accent_left = self._frame = 0
        self._mood_left = self._mood_frames()

    def step(self, prosody: Prosody, rounding: float) -> np.ndarray:
        """Brow, cheek and smile coefficients [COUNT]; a rounded mouth smiles less."""
        self._frame += 1
        self._answer(prosody)
        self._mood(prosody)
        time_s = self._frame / FPS
        drift = DRIFT * (1 + math.sin(0.9 * time_s + self._phases[0])) / 2
        inner = self._raise.step(self._raise_aim) + drift
        frown = self._frown.step(self._frown_aim)
        uneven = self._uneven.step(self._uneven_aim)
        smile = self._smile.step(self._smile_aim) * (1 - rounding)
        token = np.zeros(COUNT)
        for side, tip in (("L", 1 + uneven), ("R", 1 - uneven)):
            token[INDEX["browInner" + side]] = 0.8 * inner * tip
            token[INDEX["browOuter" + side]] = inner * tip
            token[INDEX["browDown" + side]] = frown
            token[INDEX["mouthSmile" + side]] = smile * (1 + 0.3 * (tip - 1))
            token[INDEX["cheekSquint" + side]] = 0.6 * smile + 0.5 * frown
        return token

    def _answer(self, prosody: Prosody) -> None:
        if prosody.accent > 0:
            luck = float(self._rng.random())
            self._accent_left = ACCENT_FRAMES
            self._raise_aim = RAISE * prosody.accent if luck < RAISE_SHARE else 0.0
            self._frown_aim = FROWN if luck > 1 - FROWN_SHARE else 0.0
        elif self._accent_left > 0:
            self._accent_left -= 1
        else:
            self._raise_aim = self._frown_aim = 0.0

    def _mood(self, prosody: Prosody) -> None:
        self._mood_left -= 1
        if self._mood_left <= 0 or prosody.phrase_start:
            self._smile_aim = float(self._rng.uniform(*SMILE))
            self._uneven_aim = float(self._rng.normal(0, 0.12))
            self._mood_left = self._mood_frames()

    def _mood_frames(self) -> int:
        return round(FPS * float(self._rng.uniform(3, 7)))
