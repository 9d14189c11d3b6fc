"""Everything of a face that is not articulation: lids, gaze, head, brows, breath.

Deterministic for a seed and blind to chunk sizes: each part has a generator of its own and is
stepped frame by frame. Knows nothing of phones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.motion.blinks import Blinks
from engine.motion.breath import Breath
from engine.motion.expression import Expression
from engine.motion.gaze import Gaze
from engine.motion.head import Head
from engine.motion.prosody import Prosody
from engine.portrait.coefficients import INDEX

_HEAD = [INDEX[name] for name in ("headYaw", "headPitch", "headRoll", "headX", "headY")]
_LIDS = [INDEX["eyeBlinkL"], INDEX["eyeBlinkR"]]
_GAZE = [INDEX["gazeX"], INDEX["gazeY"]]
DEGREES_PER_GAZE = 32.0  # eyes turn back by the head's turn and stay on the viewer


class Life:
    def __init__(self, seed: int) -> None:
        def stream(number: int) -> np.random.Generator:
            return np.random.default_rng([seed, number])

        self._blinks = Blinks(stream(1))
        self._gaze = Gaze(stream(2))
        self._head = Head(stream(3))
        self._expression = Expression(stream(4))
        self._breath = Breath()

    def step(self, prosody: Prosody, rounding: float, amount: Mapping[str, float]) -> np.ndarray:
        """[COUNT] of one frame; `amount` holds the intensities head, blink, gaze, expression."""
        token = self._expression.step(prosody, rounding) * amount["expression"]
        pose = self._head.step(prosody) * amount["head"]
        token[_HEAD] = pose
        look, glance = self._gaze.step(prosody.speaking)
        turned = np.array([pose[0], pose[1]]) / DEGREES_PER_GAZE
        token[_GAZE] = np.clip((look - turned) * amount["gaze"], -0.45, 0.45)
        lid = self._blinks.step(amount["blink"], prosody.phrase_end, glance)
        token[_LIDS] = lid * min(1.0, amount["blink"])
        token[INDEX["breath"]] = self._breath.step(prosody) * min(1.0, amount["head"])
        return token
