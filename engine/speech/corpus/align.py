"""Forced alignment: words and audio -> phone times, by pocketsphinx in two passes.

Other languages are spelled in ARPAbet through espeak-ng and aligned with the English acoustic
model: boundaries within a frame or so. Knows nothing of where audio comes from.
Needs the `pocketsphinx` package and the espeak-ng program: training tools, never shipped.
"""

from __future__ import annotations

import hashlib
import subprocess
from typing import Any

import numpy as np
import soxr

from engine.speech.corpus.clip import Clip, Segment, normalised
from engine.speech.corpus.phone_maps import ipa_to_arpabet
from engine.speech.corpus.texts import words_of
from engine.speech.encoded import PHONE_INDEX
from engine.speech.resample import ENCODER_RATE

MOST_AT_FLOOR = 0.25  # share of phones at the 30 ms minimum above which an alignment is rejected


class Aligner:
    """One pocketsphinx decoder whose dictionary grows with foreign words."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder: Any = Decoder(loglevel="FATAL", lm=None, bestpath=False)

    def align(self, pcm: np.ndarray, text: str, language: str) -> list[Segment] | None:
        """24 kHz audio and what is said -> segments, or None where it does not fit."""
        words = self._spell(words_of(text), language)
        if not words:
            return None
        pcm16 = soxr.resample(normalised(pcm), ENCODER_RATE, 16_000)
        codes = (np.clip(pcm16, -1, 1) * 32767).astype("<i2").tobytes()
        try:
            segments = self._two_passes(codes, words)
        except RuntimeError:
            return None
        return segments if segments and floor_share(segments) <= MOST_AT_FLOOR else None

    def _two_passes(self, codes: bytes, words: list[str]) -> list[Segment] | None:
        self._decoder.set_align_text(" ".join(words))
        self._decode(codes)
        if self._decoder.hyp() is None:
            return None
        self._decoder.set_alignment()
        self._decode(codes)
        phones = (phone for word in self._decoder.get_alignment() for phone in word)
        return [
            (
                p.name if p.name in PHONE_INDEX else "SIL",
                p.start * 0.01,
                (p.start + p.duration) * 0.01,
            )
            for p in phones
        ]

    def _decode(self, codes: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(codes, full_utt=True)
        self._decoder.end_utt()  # hyp() after the second pass would crash: ask only after the first

    def _spell(self, words: list[str], language: str) -> list[str] | None:
        if language.split("-")[0] == "en":
            missing = [w for w in words if self._decoder.lookup_word(w) is None]
            self._add_foreign(missing, "en-us", plain=True)
            return words
        return self._add_foreign(words, language, plain=False)

    def _add_foreign(self, words: list[str], language: str, plain: bool) -> list[str] | None:
        if not words:
            return words
        spoken = ipa_of(words, language)
        if len(spoken) != len(words):
            return None
        names = []
        for word, ipa in zip(words, spoken, strict=True):
            phones = " ".join(ipa_to_arpabet(ipa))
            if not phones:
                continue
            name = word if plain else foreign_name(phones)
            if self._decoder.lookup_word(name) is None:
                self._decoder.add_word(name, phones, True)
            names.append(name)
        return names


def foreign_name(phones: str) -> str:
    """A dictionary name for a foreign pronunciation: letters only, one for each phone string."""
    return "xx" + "".join(chr(97 + b % 26) for b in hashlib.sha1(phones.encode()).digest())


def ipa_of(words: list[str], language: str) -> list[str]:
    """espeak-ng's pronunciation of each word, one a line."""
    command = ["espeak-ng", "-q", "--ipa=1", "-v", language]
    done = subprocess.run(
        command, input="\n".join(words), capture_output=True, text=True, check=True
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def floor_share(segments: list[Segment]) -> float:
    """Share of phones no longer than 30 ms: high where the text does not fit the audio."""
    lengths = [end - start for phone, start, end in segments if phone != "SIL"]
    return float(np.mean([length <= 0.031 for length in lengths])) if lengths else 1.0


def aligned_clip(
    aligner: Aligner, source: str, speaker: str, language: str, pcm: np.ndarray, text: str
) -> Clip | None:
    """A Clip with times, or None where alignment failed. `language` is espeak-ng's name."""
    phones = aligner.align(pcm, text, language)
    if not phones:
        return None
    return Clip(source, speaker, language, normalised(pcm), phones, text)
