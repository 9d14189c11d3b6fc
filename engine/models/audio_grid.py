"""Which speech features belong to which video frame, in integers alone.

Three rates meet: features of the encoder at 50 Hz (one per 320 samples at 16 kHz, each from 400),
the 30 Hz grid that the published models were conditioned on, and the frames of the video. Frame n
takes the nearest point of the 30 Hz grid (halves to the even one), and that point lies between two
features. Nothing is summed up, so nothing drifts. Knows nothing of audio or of models.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from engine.clock import SAMPLE_RATE

SPEECH_RATE = 16_000  # samples a second of what the encoder hears
HOP, SIGHT = 320, 400  # samples from feature to feature; samples that a feature sees
FEATURE_RATE = SPEECH_RATE // HOP  # 50 Hz
BUCKET_RATE = 30
PERIODS = 240  # chunks after which every pattern of the rates has come round


@dataclass(frozen=True, slots=True)
class Place:
    """Between feature `index` and the next: value = (1 - share) * this + share * next."""

    index: int
    share: Fraction

    @property
    def last(self) -> int:
        """The newest feature that is needed."""
        return self.index + (self.share != 0)


def bucket(frame: int, fps: Fraction) -> int:
    """Index on the 30 Hz grid of a video frame."""
    return round(Fraction(BUCKET_RATE * frame) / fps)  # exact, halves to even


def place(frame: int, fps: Fraction) -> Place:
    """Where on the 50 Hz grid a video frame's features lie."""
    exact = Fraction(bucket(frame, fps) * FEATURE_RATE, BUCKET_RATE)
    index = exact.numerator // exact.denominator
    return Place(index, exact - index)


def samples_for(feature: int) -> int:
    """Samples at 16 kHz, from the very first, that feature `feature` needs."""
    return HOP * feature + SIGHT


def features_in(samples: int) -> int:
    """How many features `samples` at 16 kHz give."""
    return max(0, (samples - SIGHT) // HOP + 1)


def lookahead(fps: Fraction, frames: int, ahead: int, reach: int) -> int:
    """Samples at 48 kHz beyond its last frame that a chunk of `frames` must bring, at most.

    `ahead` features are wanted after the last needed one, and a 16 kHz sample needs `reach` more
    samples at 48 kHz than its own time (the half-width of the filter).
    """
    per_frame = Fraction(SAMPLE_RATE) / fps
    worst = 0
    for chunk in range(PERIODS):
        last = place(frames * (chunk + 1) - 1, fps).last + ahead
        needed = SAMPLE_RATE // SPEECH_RATE * (samples_for(last) - 1) + reach + 1
        brought = per_frame * frames * (chunk + 1)
        worst = max(worst, -((brought - needed) // 1))
    return worst
