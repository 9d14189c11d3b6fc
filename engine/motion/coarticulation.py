"""Phone posteriors -> mouth coefficients: dominance-blended targets and closures that close.

One frame at a time, with the window of the four heads (-40 to +80 ms) and its own past. Knows
nothing of audio, eyes or head; deterministic, without any random number.
"""

from __future__ import annotations

import numpy as np

from engine.clock import FPS
from engine.motion.effort import Effort
from engine.motion.targets import CHANNELS, Targets
from engine.portrait.coefficients import COUNT, INDEX
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONE_INDEX

FRAME_MS = 1000 / FPS
_NOW = HEAD_OFFSETS_MS.index(0)
_LATER = HEAD_OFFSETS_MS.index(80)
_SIL = PHONE_INDEX["SIL"]
SHARPNESS = 1.35  # exponent on posteriors: blurred answers made half-formed shapes
GATE_DOUBT, GATE_SURE = 0.4, 0.75  # `speech` below the first keeps the mouth at rest
# Closures arrive at once (14 ms is 95 % in a frame): the last 6 % are given, or lips stay ajar.
FULL_CLOSURE = 0.94
SEAL_RISE_MS, SEAL_FALL_MS = 45.0, 350.0
SEAL_HOLD_FRAMES = 60  # 2.5 s of silence before the picture's own half-open mouth may return


def smoothstep(low: float, high: float, value: float) -> float:
    t = min(1.0, max(0.0, (value - low) / (high - low)))
    return t * t * (3 - 2 * t)


def follow(value: float, target: float, rise_ms: float, fall_ms: float) -> float:
    """One frame of a first-order approach with its own time constant up and down."""
    time_ms = rise_ms if target > value else fall_ms
    return target + (value - target) * float(np.exp(-FRAME_MS / time_ms))


class Coarticulation:
    """The mouth's state between frames."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._up = np.exp(-FRAME_MS / targets.rise_ms)  # [C]
        self._down = np.exp(-FRAME_MS / targets.fall_ms)  # [C]
        self._inertia = targets.inertia[targets.group_of]  # [C]
        self._jaw = targets.channels.index("jawOpen")
        self._slots = [
            (c, [INDEX[n] for n in CHANNELS[name]]) for c, name in enumerate(targets.channels)
        ]
        self.reset()

    def reset(self) -> None:
        """Mouth at rest, nothing heard."""
        self._state = np.zeros(len(self._targets.channels))
        self._closing = dict.fromkeys(self._targets.closures, 0.0)
        self._seal = 0.0
        self.forget()

    def forget(self) -> None:
        """Audio restarts: drop what was heard; the lips glide to rest from where they are."""
        self._silent_frames = 0
        self._effort = Effort()

    def step(self, posteriors: np.ndarray, speech: float, loudness_db: float) -> np.ndarray:
        """Mouth coefficients [COUNT] float64 (the others 0) from one frame's [heads, phones]."""
        gate = smoothstep(GATE_DOUBT, GATE_SURE, speech)
        heard = _gated(posteriors.astype(np.float64), gate)
        effort = self._effort.step(loudness_db, speech)
        closing = {name: self._close(name, heard) for name in self._targets.closures}
        self._move(self._blend(heard), closing, effort)
        return self._token(closing, gate)

    def _close(self, name: str, heard: np.ndarray) -> float:
        """How far this closure is made now, 0..1.

        By the head of the frame itself, which has heard 80 ms beyond it: the head a frame ahead
        finds as many closures, shuts the lips for nothing more often (0.49 a second of speech
        instead of 0.39, QA set), and makes them lead real speakers by 0.9 frame.
        """
        closure = self._targets.closures[name]
        target = smoothstep(closure.doubt, closure.sure, float(heard[_NOW, closure.phones].sum()))
        made = follow(self._closing[name], target, closure.rise_ms, closure.fall_ms)
        self._closing[name] = made
        return min(1.0, made / FULL_CLOSURE)

    def _blend(self, heard: np.ndarray) -> np.ndarray:
        """Where each channel is pulled [C]: phones by dominance and reach, and its own past."""
        targets = self._targets
        sharp = heard**SHARPNESS
        sharp /= sharp.sum(1, keepdims=True)
        weights = np.einsum("ghp,hp->gp", targets.pull, sharp)[targets.group_of]  # [C, P]
        passed = np.clip(0.5 + 0.5 * (sharp[_NOW] - sharp[_LATER]), 0, 1)  # [P] of a diphthong
        amounts = targets.start + (targets.end - targets.start) * passed
        pulled = (weights * amounts).sum(1) + self._inertia * self._state
        return pulled / (weights.sum(1) + self._inertia)

    def _move(self, pulled: np.ndarray, closing: dict[str, float], effort: float) -> None:
        wanted = pulled.copy()
        wanted[self._jaw] *= effort
        for name, made in closing.items():
            cap = self._targets.closures[name].jaw_cap
            over = max(0.0, wanted[self._jaw] - cap)
            wanted[self._jaw] -= made * over
        keep = np.where(wanted > self._state, self._up, self._down)
        self._state = wanted + (self._state - wanted) * keep

    def _token(self, closing: dict[str, float], gate: float) -> np.ndarray:
        token = np.zeros(COUNT)
        for c, slots in self._slots:
            token[slots] = self._state[c]
        shut = max(closing.values())
        # Lips that meet cannot also be lifted apart or funnelled open.
        for name in ("upperLipUp", "lowerLipDown", "mouthFunnel"):
            token[INDEX[name]] *= 1 - shut
        for name, made in closing.items():
            for channel, amount in self._targets.closures[name].amounts.items():
                token[INDEX[channel]] = max(token[INDEX[channel]], made * amount)
        token[INDEX["seal"]] = max(self._sealed(gate), shut)
        return token

    def _sealed(self, gate: float) -> float:
        """The picture's own lip gap stays closed through speech and its pauses."""
        self._silent_frames = 0 if gate > 0.5 else self._silent_frames + 1
        target = gate if self._silent_frames == 0 or self._seal < 0.5 else 1.0
        if self._silent_frames > SEAL_HOLD_FRAMES:
            target = 0.0
        self._seal = follow(self._seal, target, SEAL_RISE_MS, SEAL_FALL_MS)
        return self._seal


def _gated(posteriors: np.ndarray, gate: float) -> np.ndarray:
    """[heads, phones] with the share that nobody spoke given to silence."""
    heard = posteriors * gate
    heard[:, _SIL] += 1 - gate
    return heard
