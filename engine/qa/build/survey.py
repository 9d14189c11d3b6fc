"""Aligns every candidate, asks the second opinions, and says which are fit to choose from.

Knows nothing of how many are wanted or of characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from engine.motion.phone_track import Phone
from engine.qa.alignment import Alignment, alignment_of
from engine.qa.build.candidates import Candidate
from engine.qa.build.cross_check import SoundSwallower, Whisper, at_16k, disagreement
from engine.qa.forced import as_alignment
from engine.speech.corpus.align import MOST_AT_FLOOR, Aligner, floor_share
from engine.speech.resample import ENCODER_RATE

LIPS, ROUNDED = ("P", "B", "M"), ("UW", "UH", "OW", "AO", "OY")
MOST_APART_MS = 150.0  # of a word's start between two aligners
LEAST_HEARD = 0.5  # of our words by Whisper base, whose own error is up to .27 (Czech: .82)


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A candidate with its phones and what is in it."""

    candidate: Candidate
    alignment: Alignment

    @property
    def bilabials(self) -> int:
        return len(self.alignment.spans(LIPS))

    @property
    def rounded(self) -> int:
        return len(self.alignment.spans(ROUNDED))

    @property
    def longest_pause_ms(self) -> int:
        """Inside the speech: silence before the first and after the last word does not count."""
        words = self.alignment.words
        inner = [
            end - start
            for start, end in self.alignment.pauses(0)
            if words[0].start < start and end < words[-1].end
        ]
        return round(max(inner, default=0) * 1000 / SAMPLE_RATE)

    @property
    def lacking(self) -> str:
        """Too little in it to measure, or an empty string."""
        if self.bilabials >= 3 and self.rounded >= 1:
            return ""
        return f"{self.bilabials} bilabials, {self.rounded} rounded vowels"

    @property
    def objection(self) -> str:
        """Why it is unfit, or an empty string."""
        if self.lacking:
            return self.lacking
        checks = self.alignment.cross_check or {}
        if self.alignment.exact:
            return ""  # the others measure less well than the synthesiser knows
        worst = checks["soundswallower"]["worst_ms"]
        if worst is None or worst > MOST_APART_MS:
            return f"soundswallower {worst} ms apart"
        heard = checks["whisper"]
        if self.candidate.language != "cs":
            if heard["heard"] < LEAST_HEARD:
                return f"Whisper heard {heard['heard']} of the words"
            if heard["p80_ms"] > MOST_APART_MS:  # its words' edges are loose: 80 % must agree
                return f"Whisper: 80 % of the words within {heard['p80_ms']} ms"
        return ""


class Surveyor:
    """Three aligners; the two that remember the loudness of earlier clips are made anew for each,
    so that a clip's times do not depend on its neighbours."""

    def __init__(self, cache: Path) -> None:
        self._aligner = Aligner()
        self._whisper = Whisper(cache)

    def survey(self, found: Iterable[Candidate]) -> Iterator[Surveyed]:
        """Those that could be aligned at all."""
        for candidate in found:
            if (row := self.one(candidate)) is not None:
                yield row

    def one(self, candidate: Candidate) -> Surveyed | None:
        self._aligner = Aligner()
        pcm, rate = candidate.sound()
        heard = soxr.resample(pcm, rate, ENCODER_RATE)
        words = self._aligner.align_words(heard, candidate.text, candidate.espeak_language)
        if not words:
            return None
        segments = [segment for word in words for segment in word.segments]
        if floor_share(segments) > MOST_AT_FLOOR:
            return None
        measured = as_alignment(words, round(len(pcm) * SAMPLE_RATE / rate))
        if (first := Surveyed(candidate, measured)).lacking:
            return first  # the second opinions cost ten times the alignment
        checks = self._checks(candidate, at_16k(pcm, rate), measured)
        if candidate.exact is not None:
            checks["pocketsphinx"] = against_truth(measured, candidate.exact)
            measured = replace(
                exact_alignment(candidate.exact, measured),
                aligner="flite -psdur",
                aligner_version="2.2",
                exact=True,
            )
        return Surveyed(candidate, replace(measured, cross_check=checks))

    def _checks(self, candidate: Candidate, pcm: np.ndarray, found: Alignment) -> dict[str, Any]:
        spelled = [
            (name, word, self._aligner.phones_of(name) or "")
            for name, word in self._aligner.spelled(candidate.text, candidate.espeak_language)
        ]
        second = SoundSwallower().starts(pcm, spelled)
        third = self._whisper.starts(pcm, candidate.language)
        return {
            "soundswallower": disagreement(found.words, second),
            "whisper": disagreement(found.words, third),
        }


def exact_alignment(phones: list[Phone], measured: Alignment) -> Alignment:
    """The synthesiser's phones, with the words where the aligner found them."""
    rows = [(p.name, round(p.start_s * SAMPLE_RATE), round(p.end_s * SAMPLE_RATE)) for p in phones]
    return alignment_of(rows, measured.words, measured.samples)


def against_truth(measured: Alignment, truth: list[Phone]) -> dict[str, Any]:
    """Share of the clip's 1 ms steps that carry the same phone, and how many phones each has."""
    steps = np.arange(0, measured.samples, SAMPLE_RATE // 1000)
    right = exact_alignment(truth, measured).at(steps) == measured.at(steps)
    return {
        "same_phone_share": round(float(right.mean()), 3),
        "phones": len(measured.names),
        "true_phones": len(truth),
    }
