"""Human speech that packages carry: asterisk prompts, fillets dialogues, LibriVox, LibriSpeech.

Licences: asterisk CC-BY(-SA) 3.0, fillets GPL-2+, pocketsphinx test data BSD, LibriSpeech
CC-BY 4.0.
Knows nothing of features. Yields (speaker, espeak language, 24 kHz audio, text).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
import soxr

from engine.speech.corpus.texts import PROMPT_VOICES, dialogues, prompt_texts, words_of
from engine.speech.resample import ENCODER_RATE

Utterance = tuple[str, str, np.ndarray, str]
ESPEAK_NAME = {
    "en": "en-us",
    "es": "es-419",
    "fr": "fr",
    "it": "it",
    "ru": "ru",
    "cs": "cs",
    "nl": "nl",
}
SHORTEST, LONGEST = 1.2, 17.0  # seconds


def read_audio(path: Path) -> np.ndarray:
    """Any format of soundfile, and G.722 through PyAV -> mono float32 at 24 kHz."""
    if path.suffix == ".g722":
        import av

        with av.open(str(path), format="g722") as container:
            frames = [f.to_ndarray().reshape(-1) for f in container.decode(audio=0)]
        pcm, rate = np.concatenate(frames).astype(np.float32) / 32768, 16_000
    else:
        pcm, rate = soundfile.read(path, dtype="float32", always_2d=True)
        pcm = pcm.mean(1)
    return soxr.resample(pcm, rate, ENCODER_RATE).astype(np.float32)


def prompts(root: Path, language: str) -> Iterator[Utterance]:
    """Asterisk's wideband prompts: one speaker a language."""
    voice = PROMPT_VOICES[language]
    texts = prompt_texts(root, language)
    for path in sorted((root / "usr/share/asterisk/sounds" / voice).rglob("*.g722")):
        name = str(path.relative_to(root / "usr/share/asterisk/sounds" / voice).with_suffix(""))
        if len(words_of(texts.get(name, ""))) >= 2:
            yield from _fitting(voice, ESPEAK_NAME[language], path, texts[name])


def game_dialogues(root: Path, language: str) -> Iterator[Utterance]:
    """Fillets: speaker is told by the dialogue id's part (level actor), a dozen actors in all."""
    for (level, name), text in dialogues(root, language).items():
        path = root / f"usr/share/games/fillets-ng/sound/{level}/{language}/{name}.ogg"
        if path.exists() and len(words_of(text)) >= 2:
            actor = name.split("-")[1] if "-" in name else level
            yield from _fitting(f"fillets-{language}-{actor}", language, path, text)


def librivox(root: Path) -> Iterator[Utterance]:
    """Five LibriVox clips of one reader (held out)."""
    folder = root / "usr/share/pocketsphinx/test/data/librivox"
    for line in (folder / "transcription").read_text().splitlines():
        text, name = line.rsplit("(", 1)
        spoken = text.replace("<s>", "").replace("</s>", "").strip()
        yield from _fitting("librivox-austen", "en-us", folder / f"{name.strip(') ')}.wav", spoken)


def librispeech(folder: Path, transcripts: Path) -> Iterator[Utterance]:
    """LibriSpeech clips (READER-CHAPTER-UTTERANCE.flac) with texts from a speech recogniser.

    transcripts: JSON lines {"path", "text", "lp"}; lines below -0.6 mean log probability are left.
    """
    for line in transcripts.read_text().splitlines():
        row = json.loads(line)
        path = folder / row["path"]
        if row["lp"] > -0.6 and len(words_of(row["text"])) >= 4:
            yield from _fitting(f"libri-{path.name.split('-')[0]}", "en-us", path, row["text"])


def _fitting(speaker: str, language: str, path: Path, text: str) -> Iterator[Utterance]:
    if not path.exists() or any(c.isdigit() for c in text):
        return
    pcm = read_audio(path)
    if SHORTEST <= len(pcm) / ENCODER_RATE <= LONGEST:
        yield speaker, language, pcm, text
