"""The head: a posture that changes with phrases, nods on accents, sways and never freezes.

Degrees, and units of S for the shifts; knows nothing of the picture or of phones.
"""

from __future__ import annotations

import math

import numpy as np

from engine.clock import FPS
from engine.motion.prosody import Prosody
from engine.motion.spring import Spring

# Standard deviations of a posture (yaw, pitch, roll in degrees).
TALKING, LISTENING = (2.7, 1.1, 1.5), (1.5, 0.6, 0.8)
LIMIT = (5.5, 3.0, 3.0)
POSTURE_S = (1.0, 2.8)
POSTURE_RATE, NOD_RATE, LIFT_RATE, BEAT_RATE = 3.4, 13.0, 5.0, 9.0
NOD_DEGREES, NOD_FRAMES = 4.2, 4  # target held for 4 frames: the spring reaches about half
# Between accents the head beats a little with the voice, or it looks screwed on.
BEAT_DEGREES_PER_DB, BEAT_LIMIT = 0.13, 1.0
LIFT_DEGREES = -1.3  # the chin rises as a phrase begins ...
SETTLE_DEGREES = 0.9  # ... and sinks where it ends
SWAY_HZ = ((0.13, 0.31), (0.17, 0.41), (0.11, 0.27), (0.09, 0.23), (0.21, 0.35))
SWAY = (1.0, 0.6, 0.6, 0.014, 0.009)  # yaw, pitch, roll (degrees), x, y (S)


class Head:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._phases = rng.uniform(0, 2 * math.pi, (len(SWAY), 2))
        self._posture = [Spring(POSTURE_RATE) for _ in range(3)]
        self._aim = np.zeros(3)
        self._nod, self._tilt, self._lift = Spring(NOD_RATE), Spring(NOD_RATE), Spring(LIFT_RATE)
        self._beat = Spring(BEAT_RATE)
        self._nod_aim = self._tilt_aim = self._lift_aim = 0.0
        self._nod_left = 0
        self._wait = self._draw_wait()
        self._frame = 0

    def step(self, prosody: Prosody) -> np.ndarray:
        """[5]: yaw, pitch, roll (degrees), x, y (S)."""
        self._wait -= 1
        if self._wait <= 0 or prosody.phrase_start:
            self._new_posture(prosody.speaking)
        self._answer(prosody)
        yaw, pitch, roll = (s.step(a) for s, a in zip(self._posture, self._aim, strict=True))
        pitch += self._nod.step(self._nod_aim) + self._lift.step(self._lift_aim)
        beat = BEAT_DEGREES_PER_DB * prosody.above_db
        pitch += self._beat.step(min(BEAT_LIMIT, max(-BEAT_LIMIT, beat)))
        tilt = self._tilt.step(self._tilt_aim)
        pose = self._sway()
        # Turning about the neck also carries the face: 0.012 S a degree looked attached, not slid.
        pose += (yaw + 0.5 * tilt, pitch, roll + tilt, 0.012 * yaw + 0.010 * roll, 0.008 * pitch)
        self._frame += 1
        return pose

    def _answer(self, prosody: Prosody) -> None:
        if prosody.accent > 0:
            self._nod_left = NOD_FRAMES
            self._nod_aim = NOD_DEGREES * (0.35 + 0.65 * prosody.accent)
            self._tilt_aim = float(self._rng.normal(0, 1.2))
        elif self._nod_left > 0:
            self._nod_left -= 1
        if self._nod_left == 0:
            self._nod_aim = self._tilt_aim = 0.0
        if prosody.phrase_start:
            self._lift_aim = LIFT_DEGREES
        if prosody.phrase_end:
            self._lift_aim = SETTLE_DEGREES
        # Both fade towards level: declination within a phrase, recovery after it.
        self._lift_aim *= 1 - 0.5 / FPS

    def _new_posture(self, talking: bool) -> None:
        spread = np.array(TALKING if talking else LISTENING)
        # Half the old posture stays: people drift about a place, they do not jump across it.
        aim = 0.35 * self._aim + self._rng.normal(0, spread)
        self._aim = np.clip(aim, -np.array(LIMIT), LIMIT)
        self._wait = self._draw_wait()

    def _draw_wait(self) -> int:
        return round(FPS * float(self._rng.uniform(*POSTURE_S)))

    def _sway(self) -> np.ndarray:
        angles = 2 * math.pi * np.array(SWAY_HZ) * (self._frame / FPS) + self._phases
        return np.array(SWAY) * np.sin(angles).mean(1)
