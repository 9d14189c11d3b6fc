"""Forced alignment: words and audio -> phone times, by pocketsphinx in two passes.

Other languages are spelled in ARPAbet through espeak-ng and aligned with the English acoustic
model: boundaries within a frame or so. Knows nothing of where audio comes from.
Needs the `pocketsphinx` package and the espeak-ng program: training tools, never shipped.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from engine.speech.corpus.clip import Clip, Segment, normalised
from engine.speech.corpus.phone_maps import ipa_to_arpabet
from engine.speech.corpus.texts import words_of
from engine.speech.encoded import PHONE_INDEX
from engine.speech.resample import ENCODER_RATE

MOST_AT_FLOOR = 0.25  # share of phones at the 30 ms minimum above which an alignment is rejected


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word where it was found, or (empty text) a pause between words."""

    text: str
    segments: list[Segment]


class Aligner:
    """One pocketsphinx decoder whose dictionary grows with foreign words."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder: Any = Decoder(loglevel="FATAL", lm=None, bestpath=False)

    def align(self, pcm: np.ndarray, text: str, language: str) -> list[Segment] | None:
        """24 kHz audio and what is said -> segments, or None where it does not fit."""
        found = self.align_words(pcm, text, language)
        segments = [segment for word in found or [] for segment in word.segments]
        return segments if segments and floor_share(segments) <= MOST_AT_FLOOR else None

    def align_words(self, pcm: np.ndarray, text: str, language: str) -> list[SpokenWord] | None:
        """The same, word by word and however badly it fits; None where nothing was found."""
        words = self.spelled(text, language)
        if not words:
            return None
        pcm16 = soxr.resample(normalised(pcm), ENCODER_RATE, 16_000)
        codes = (np.clip(pcm16, -1, 1) * 32767).astype("<i2").tobytes()
        try:
            return self._two_passes(codes, words)
        except RuntimeError:
            return None

    def spelled(self, text: str, language: str) -> list[tuple[str, str]]:
        """(name in the dictionary, word) of each word; [] where one cannot be spelled."""
        words = words_of(text)
        if language.split("-")[0] == "en":
            missing = [w for w in words if self._decoder.lookup_word(w) is None]
            self._add_foreign(missing, "en-us", plain=True)
            return [(w, w) for w in words]
        return self._add_foreign(words, language, plain=False)

    def phones_of(self, name: str) -> str | None:
        """The dictionary's first pronunciation, phones parted by spaces."""
        return self._decoder.lookup_word(name)

    def _two_passes(self, codes: bytes, words: list[tuple[str, str]]) -> list[SpokenWord] | None:
        self._decoder.set_align_text(" ".join(name for name, _ in words))
        self._decode(codes)
        if self._decoder.hyp() is None:
            return None
        self._decoder.set_alignment()
        self._decode(codes)
        texts = dict(words)
        return [
            SpokenWord(
                texts.get(re.sub(r"\(\d+\)$", "", word.name), ""),
                [
                    (
                        p.name if p.name in PHONE_INDEX else "SIL",
                        p.start * 0.01,
                        (p.start + p.duration) * 0.01,
                    )
                    for p in word
                ],
            )
            for word in self._decoder.get_alignment()
        ]

    def _decode(self, codes: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(codes, full_utt=True)
        self._decoder.end_utt()  # hyp() after the second pass would crash: ask only after the first

    def _add_foreign(self, words: list[str], language: str, plain: bool) -> list[tuple[str, str]]:
        if not words:
            return []
        spoken = ipa_of(words, language)
        if len(spoken) != len(words):
            return []
        pairs = []
        for word, ipa in zip(words, spoken, strict=True):
            phones = " ".join(ipa_to_arpabet(ipa))
            if not phones:
                continue
            name = word if plain else foreign_name(phones)
            if self._decoder.lookup_word(name) is None:
                self._decoder.add_word(name, phones, True)
            pairs.append((name, word))
        return pairs


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
