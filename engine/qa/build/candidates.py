"""Recordings that may enter the QA set: what is said, by whom, from which package.

Nothing that the audio encoder was trained on: a text that occurs in the training clips is left out,
and so are texts that training could have had from the same recording. Knows nothing of alignment.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import av
import numpy as np
import soundfile

from engine.motion.phone_track import Phone, parse_flite
from engine.speech.corpus.held_out import may_train
from engine.speech.corpus.texts import PROMPT_VOICES, dialogues, is_reserved, words_of

SHORTEST_S, LONGEST_S = 2.0, 12.0
ESPEAK_NAME = {"en": "en-us", "es": "es-419", "fr": "fr", "it": "it", "ru": "ru", "cs": "cs"}
DIGITS = {
    "en": "zero one two three four five six seven eight nine",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
}
LICENCES = {
    "en": "CC-BY-SA-3.0",
    "es": "CC-BY-SA-3.0",
    "fr": "CC-BY-SA-3.0",
    "it": "CC-BY-3.0",
    "ru": "CC-BY-3.0",
}
# What is said where the sheet says something else: the Spanish speaker adds "número" to digits.
SPOKEN = {
    "es/vm-tempgreeting": "Marque número uno para grabar su saludo temporal",
    "es/vm-tocallback": "Marque número dos para llamar a la persona que ha enviado este mensaje",
    "es/vm-opts": "Marque número dos para cambiar de carpeta, número tres para opciones avanzadas, "
    "o cero para opciones del correo",
    "es/vm-undelete": "Marque el número siete para recuperar el mensaje",
}
# Written for this set; flite puts a pause at each comma and full stop.
SPOKEN_BY_FLITE = {
    "slt": (
        "Maybe Bob's mother, who bakes plum pie, will move to a warm room by the window.",
        "Please bring the blue umbrella, and put my old brown boots above the pump.",
    ),
    "awb": ("A very brave man walked home, past the frozen pool, before the moon came up.",),
    "rms": ("My uncle buys five purple plums, but you should only pay for one of them.",),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One recording, read when asked for; `exact` where the synthesiser told the phones' times."""

    id: str
    language: str
    speaker: str
    source: str
    licence: str
    text: str
    seconds: float
    sound: Callable[[], tuple[np.ndarray, int]]  # -> [n] float32 and its own rate
    exact: list[Phone] | None = None

    @property
    def espeak_language(self) -> str:
        return ESPEAK_NAME[self.language]

    @property
    def heard_in_training(self) -> str:
        """Whether training had other recordings of this voice."""
        return "speaker" if may_train(self.speaker, self.language) else "no"


def trained_texts(folder: Path) -> set[str]:
    """Every text of the clips that `engine.speech.corpus.build` made and training may have had."""
    texts: set[str] = set()
    for path in folder.glob("*.npz"):
        with np.load(path) as data:
            rows = json.loads(data["rows"].tobytes())
        for row in rows:
            english = row["language"].startswith("en")
            if may_train(row["speaker"], row["language"]) and not (
                english and is_reserved(row["text"])
            ):
                texts.add(plain(row["text"]))
    return texts


def plain(text: str) -> str:
    return " ".join(words_of(text))


def fits(candidate: Candidate, trained: set[str]) -> bool:
    """Long enough, short enough, never trained on."""
    return SHORTEST_S <= candidate.seconds <= LONGEST_S and plain(candidate.text) not in trained


def candidates(root: Path) -> Iterator[Candidate]:
    """All of them; `root` is / where the Debian packages are installed."""
    yield from librivox(root)
    for language in PROMPT_VOICES:
        yield from prompts(root, language)
    yield from game(root)
    yield from flite()


def prompts(root: Path, language: str) -> Iterator[Candidate]:
    """Asterisk's wideband prompts, digits spelled out."""
    voice = PROMPT_VOICES[language]
    sounds = root / "usr/share/asterisk/sounds" / voice
    for name, text in spoken_texts(root, language).items():
        path = sounds / f"{name}.g722"
        if path.exists() and SHORTEST_S <= path.stat().st_size / 8000 <= LONGEST_S:
            yield Candidate(
                id=f"{language}-{voice.rsplit('_', 1)[1].lower()}-{name.replace('/', '-')}",
                language=language,
                speaker=voice,
                source=f"Debian asterisk-core-sounds-{language}-g722 1.6.1-1: {name}.g722",
                licence=LICENCES[language],
                text=SPOKEN.get(f"{language}/{name}", text),
                seconds=path.stat().st_size / 8000,
                sound=partial(g722, path),
            )


def spoken_texts(root: Path, language: str) -> dict[str, str]:
    """Prompt name -> words, where the sheet is plain text with at most single digits in it."""
    path = root / f"usr/share/doc/asterisk-core-sounds-{language}/core-sounds-{language}.txt.gz"
    raw = gzip.decompress(path.read_bytes())
    try:
        sheet = raw.decode("utf-8")
    except UnicodeDecodeError:
        sheet = raw.decode("latin-1")
    digits = DIGITS.get(language, "").split()
    out: dict[str, str] = {}
    for line in sheet.splitlines():
        name, colon, text = line.partition(":")
        if not colon or line.startswith(";") or re.search(r"[\[\]<>()*#:]|\d\d|\d\.\d", text):
            continue
        if digits:
            text = re.sub(r"\d", lambda m: f" {digits[int(m.group())]} ", text)
        if not re.search(r"\d", text) and len(words_of(text)) >= 4:
            out[name.strip()] = re.sub(r"\s+", " ", text).strip(" .…")
    return out


def g722(path: Path) -> tuple[np.ndarray, int]:
    """[n] float32 at 16 kHz."""
    with av.open(str(path), format="g722") as container:
        frames = [f.to_ndarray().reshape(-1) for f in container.decode(audio=0)]
    return np.concatenate(frames).astype(np.float32) / 32768, 16_000


def plain_file(path: Path) -> tuple[np.ndarray, int]:
    """[n] float32, channels averaged."""
    pcm, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return pcm.mean(1), rate


def game(root: Path) -> Iterator[Candidate]:
    """Czech dialogues of the fillets game; an actor is the middle of a dialogue's name."""
    for (level, name), text in dialogues(root, "cs").items():
        path = root / f"usr/share/games/fillets-ng/sound/{level}/cs/{name}.ogg"
        if not path.exists() or re.search(r"\d", text) or len(words_of(text)) < 4:
            continue
        yield Candidate(
            id=f"cs-fillets-{level}-{name}",
            language="cs",
            speaker=f"fillets-cs-{name.split('-')[1] if '-' in name else level}",
            source=f"Debian fillets-ng-data-cs 1.0.1-1.1: sound/{level}/cs/{name}.ogg",
            licence="GPL-2.0-or-later",
            text=text,
            seconds=soundfile.info(path).duration,
            sound=partial(plain_file, path),
        )


def librivox(root: Path) -> Iterator[Candidate]:
    """Five sentences of Sense and Sensibility."""
    folder = root / "usr/share/pocketsphinx/test/data/librivox"
    for line in (folder / "transcription").read_text().splitlines():
        text, name = line.rsplit("(", 1)
        name = name.strip(") ")
        path = folder / f"{name}.wav"
        yield Candidate(
            id=f"en-librivox-{name.rsplit('-', 1)[1]}",
            language="en",
            speaker="librivox-austen",
            source=f"Debian pocketsphinx-testdata 0.8+5prealpha+1-15: librivox/{name}.wav",
            licence="BSD-2-Clause (recording: LibriVox, public domain)",
            text=re.sub(r"</?s>", "", text).strip(),
            seconds=soundfile.info(path).duration,
            sound=partial(plain_file, path),
        )


def flite() -> Iterator[Candidate]:
    """Sentences of ours in voices that training never heard, with exact phone times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "say.wav"
        for voice, texts in SPOKEN_BY_FLITE.items():
            for number, text in enumerate(texts):
                command = ["flite", "-voice", voice, "-psdur", "-t", text, "-o", str(path)]
                told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                spoken = plain_file(path)
                yield Candidate(
                    id=f"en-flite-{voice}-{number}",
                    language="en",
                    speaker=voice,
                    source=f"flite 2.2 (Debian 2.2-5), voice {voice}, a sentence of this project",
                    licence="Apache-2.0 (voice: flite, BSD-like)",
                    text=text,
                    seconds=len(spoken[0]) / spoken[1],
                    sound=partial(tuple, spoken),
                    exact=parse_flite(told),
                )
