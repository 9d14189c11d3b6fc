"""What the voice does that the face answers to: phrases, pauses and accents.

Causal: a phrase end is known only after 0.2 s of pause, an accent at its peak. Knows nothing of
phones or of coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.clock import FPS

PAUSE_FRAMES = 5  # 0.21 s without speech ends a phrase
ACCENT_GAP_FRAMES = 9  # heads do not nod faster than every 0.38 s
ACCENT_SCORE = 0.55
LEVEL_DB, PITCH_SEMITONES = 6.0, 4.0  # above the speaker's usual that make a score of 0.5 each
SPEAKING = 0.45


@dataclass(frozen=True, slots=True)
class Prosody:
    """Of one frame."""

    speaking: bool  # through short gaps too
    phrase_start: bool
    phrase_end: bool
    accent: float  # 0 but at an accent's peak, where it is its strength 0..1
    above_db: float  # level over the speaker's usual; 0 outside speech
    silent_frames: int  # since the last frame of speech


class ProsodyTracker:
    def __init__(self) -> None:
        self._silent_frames = 10 * FPS
        self._speaking = False
        self._level = self._usual_level = -30.0
        self._tone = self._usual_tone = 0.0
        self._heard = self._voiced = 0
        self._score = 0.0
        self._since_accent = ACCENT_GAP_FRAMES

    def step(self, speech: float, loudness_db: float, pitch_hz: float) -> Prosody:
        talks = speech > SPEAKING
        self._silent_frames = 0 if talks else self._silent_frames + 1
        was = self._speaking
        self._speaking = talks or (was and self._silent_frames < PAUSE_FRAMES)
        accent = self._accent(talks, loudness_db, pitch_hz)
        return Prosody(
            speaking=self._speaking,
            phrase_start=self._speaking and not was,
            phrase_end=was and not self._speaking,
            accent=accent,
            above_db=self._level - self._usual_level if talks else 0.0,
            silent_frames=self._silent_frames,
        )

    def _accent(self, talks: bool, loudness_db: float, pitch_hz: float) -> float:
        before, self._score = self._score, self._prominence(talks, loudness_db, pitch_hz)
        self._since_accent += 1
        peak = before > ACCENT_SCORE and self._score <= before
        if not peak or self._since_accent < ACCENT_GAP_FRAMES:
            return 0.0
        self._since_accent = 0
        return min(1.0, before)

    def _prominence(self, talks: bool, loudness_db: float, pitch_hz: float) -> float:
        """How far level and pitch stand out from the speaker's usual; 0 outside speech."""
        if not talks:
            return 0.0
        self._heard += 1
        self._usual_level += (loudness_db - self._usual_level) / min(self._heard, 2 * FPS)
        self._level += 0.55 * (loudness_db - self._level)
        if pitch_hz > 0:
            tone = 12 * math.log2(pitch_hz / 100)
            self._voiced += 1
            self._usual_tone += (tone - self._usual_tone) / min(self._voiced, 2 * FPS)
            jump = abs(tone - self._tone) > 9 and self._voiced > 1  # octave error of the tracker
            self._tone += (0.2 if jump else 0.6) * (tone - self._tone)
        above = 0.5 * (self._level - self._usual_level) / LEVEL_DB
        higher = 0.5 * (self._tone - self._usual_tone) / PITCH_SEMITONES
        return max(0.0, above) + max(0.0, higher)
