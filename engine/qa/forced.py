"""Phones of a recording whose words are known, by forced alignment at run time.

Needs the optional `pocketsphinx` package (extra `qa`), and the espeak-ng program for other
languages than English and for English words outside the dictionary. Boundaries are within one
frame for 97 to 99 % of phones on synthetic voices; noise, music and overlapping voices were not
tried. Knows nothing of lips.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
from dataclasses import replace

import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError
from engine.qa.alignment import Alignment, Word, alignment_of
from engine.qa.silences import without_voice_in_pauses
from engine.speech.corpus.align import MOST_AT_FLOOR, Aligner, SpokenWord, floor_share
from engine.speech.corpus.texts import words_of
from engine.speech.resample import ENCODER_RATE

REMEDY = "pip install 'avatar-studio[qa]'"
SAMPLES_A_STEP = SAMPLE_RATE // 100  # the aligner's frames are 10 ms
# What espeak-ng calls the languages that a user may name; anything else is handed on as it is.
ESPEAK_NAME = {"en": "en-us", "es": "es-419", "pt": "pt-br"}


def unavailable(language: str) -> str:
    """Why nothing can be aligned here, or an empty string."""
    if importlib.util.find_spec("pocketsphinx") is None:
        return f"forced alignment needs the package pocketsphinx: {REMEDY}"
    if language.split("-")[0] != "en" and shutil.which("espeak-ng") is None:
        return f"aligning {language} needs the program espeak-ng: apt install espeak-ng"
    return ""


def forced_alignment(pcm: np.ndarray, text: str, language: str = "en") -> Alignment:
    """Phones of [n] float32 at 48 kHz that says `text`.

    Raises:
        EngineError: "bad_config" where a package or program is missing, "bad_input" where the
            text does not fit the sound or has no words.
    """
    if why := unavailable(language):
        raise EngineError("bad_config", why)
    if not words_of(text):
        raise EngineError("bad_input", "the text has no words", "write down what is said")
    at_encoder_rate = soxr.resample(np.asarray(pcm, np.float32), SAMPLE_RATE, ENCODER_RATE)
    # A new one each time (0.2 s): it remembers the loudness of what it heard before.
    found = Aligner().align_words(at_encoder_rate, text, ESPEAK_NAME.get(language, language))
    segments = [segment for word in found or [] for segment in word.segments]
    if not found or not segments or floor_share(segments) > MOST_AT_FLOOR:
        raise EngineError(
            "bad_input",
            f"the text does not fit the sound ({len(words_of(text))} words)",
            "check the text and its language",
        )
    return without_voice_in_pauses(as_alignment(found, len(pcm)), pcm)


def as_alignment(found: list[SpokenWord], samples: int) -> Alignment:
    """The aligner's words and phones on our clock."""
    rows = [
        (name, _samples(start), _samples(end))
        for word in found
        for name, start, end in word.segments
    ]
    words = tuple(
        Word(w.text, _samples(w.segments[0][1]), min(samples, _samples(w.segments[-1][2])))
        for w in found
        if w.text
    )
    version = importlib.metadata.version("pocketsphinx")
    return replace(
        alignment_of(rows, words, samples), aligner="pocketsphinx", aligner_version=version
    )


def _samples(seconds: float) -> int:
    return round(seconds * 100) * SAMPLES_A_STEP
