"""Encoded speech -> motion tokens: the one face of this package.

A rule-driven map with the phone targets as data; a learned autoregressive model is trained
against what it yields. Knows nothing of audio, pictures or sockets.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.errors import EngineError
from engine.motion.coarticulation import Coarticulation
from engine.motion.life import Life
from engine.motion.prosody import ProsodyTracker
from engine.motion.targets import Targets, load_targets
from engine.portrait.coefficients import COUNT, INDEX, clip
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONES, EncodedSpeech

INTENSITIES = ("mouth", "head", "blink", "gaze", "expression")
HIGHEST_INTENSITY = 2.0
MOUTH = slice(INDEX["jawOpen"], INDEX["tongue"] + 1)
# Contacts are made or not: they fade with the mouth's intensity below 1 but do not grow above it.
_CONTACTS = [INDEX[n] for n in ("mouthClose", "seal", "mouthRollUpper", "mouthRollLower")]
_ROUND = [INDEX["mouthFunnel"], INDEX["mouthPucker"]]
_JAW_HIGHEST = 0.55  # above it the picture's chin and corners are dragged


class SpeechToMotion:
    """One speaker's motion. Same seed, settings and speech: same tokens, bit for bit."""

    def __init__(
        self, settings: Mapping[str, float], seed: int = 1, targets: Targets | None = None
    ) -> None:
        self._amount: dict[str, float] = dict.fromkeys(INTENSITIES, 1.0)
        self._seed = seed
        self._targets = targets or load_targets()
        self.set_settings(settings)
        self.reset()

    def set_settings(self, settings: Mapping[str, float]) -> None:
        """Intensities by name, 0 off to 2; names that are not intensities are ignored.

        A changed `seed` takes effect at the next `reset`. Raises EngineError("bad_config").
        """
        for name in INTENSITIES:
            value = float(settings.get(name, self._amount[name]))
            if not 0 <= value <= HIGHEST_INTENSITY:
                raise EngineError(
                    "bad_config",
                    f"intensity {name} is {value:g}, allowed 0 to {HIGHEST_INTENSITY:g}",
                    "choose a value in that range",
                )
            self._amount[name] = value
        self._seed = int(settings.get("seed", self._seed))

    def reset(self) -> None:
        """Back to the first frame."""
        self._mouth = Coarticulation(self._targets)
        self._prosody = ProsodyTracker()
        self._life = Life(self._seed)

    def interrupt(self) -> None:
        """Audio restarts: the mouth glides to rest, head, eyes and brows carry on."""
        self._mouth.forget()
        self._prosody = ProsodyTracker()

    def step(self, speech: EncodedSpeech) -> np.ndarray:
        """Tokens [n, COUNT] float32 for n frames; the split into calls does not matter."""
        assert speech.posteriors.shape[1:] == (len(HEAD_OFFSETS_MS), len(PHONES))
        tokens = np.zeros((len(speech), COUNT))
        for i in range(len(speech)):
            tokens[i] = self._frame(
                speech.posteriors[i],
                float(speech.speech[i]),
                float(speech.loudness_db[i]),
                float(speech.pitch_hz[i]),
            )
        return clip(tokens).astype(np.float32)

    def _frame(
        self, posteriors: np.ndarray, speech: float, loudness_db: float, pitch_hz: float
    ) -> np.ndarray:
        prosody = self._prosody.step(speech, loudness_db, pitch_hz)
        mouth = self._mouth.step(posteriors, speech, loudness_db)
        rounding = min(1.0, float(mouth[_ROUND].sum()))
        return self._scaled(mouth) + self._life.step(prosody, rounding, self._amount)

    def _scaled(self, mouth: np.ndarray) -> np.ndarray:
        amount = self._amount["mouth"]
        scaled = mouth * amount
        scaled[_CONTACTS] = mouth[_CONTACTS] * min(1.0, amount)
        scaled[INDEX["jawOpen"]] = min(scaled[INDEX["jawOpen"]], _JAW_HIGHEST)
        return scaled
