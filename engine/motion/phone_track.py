"""Phones with exact times, and the posteriors that an encoder of a given quality would give them.

For measuring and tuning without any encoder, and for labels under pictures. Knows nothing of
lips; reads the times that speech synthesisers print.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.clock import FPS
from engine.errors import EngineError
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONE_INDEX, PHONES, EncodedSpeech

# flite's phones that are not ARPAbet's.
_FLITE = {"pau": "SIL", "ax": "AH", "axr": "ER", "ah0": "AH", "el": "L", "em": "M", "en": "N"}
# Phones that an encoder takes for one another.
CONFUSABLE: tuple[tuple[str, ...], ...] = (
    ("P", "B", "M", "V"),
    ("T", "D", "N", "K", "G", "L", "NG"),
    ("F", "V", "TH", "S", "P"),
    ("S", "Z", "TH", "T", "SH"),
    ("SH", "CH", "JH", "ZH", "S"),
    ("IY", "IH", "EY", "Y"),
    ("EH", "AE", "AH", "IH", "EY"),
    ("AA", "AO", "AH", "AY", "AW"),
    ("UW", "UH", "OW", "W", "L"),
    ("ER", "R", "AH", "UH"),
    ("DH", "D", "V", "TH", "L"),
    ("OY", "OW", "AO"),
    ("HH", "SIL", "AH"),
)


@dataclass(frozen=True, slots=True)
class Phone:
    name: str  # of PHONES
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the imitated encoder is, head by head."""

    blur_ms: tuple[float, ...] = (14.0, 16.0, 20.0, 30.0)  # of edges, standard deviation
    doubt: tuple[float, ...] = (0.12, 0.15, 0.20, 0.32)  # always given to other phones
    miss: float = 0.12  # share of phones heard mostly as another one


EXACT = Quality(blur_ms=(6.0, 6.0, 6.0, 6.0), doubt=(0.0, 0.0, 0.0, 0.0), miss=0.0)


def parse_flite(text: str) -> list[Phone]:
    """What `flite -psdur` prints: `name:end` in seconds, in order."""
    phones: list[Phone] = []
    start = 0.0
    for item in text.split():
        name, _, end = item.partition(":")
        name = _FLITE.get(name, name.upper())
        if name not in PHONE_INDEX or not end:
            raise EngineError("bad_input", f"{item!r} is no phone with its end", "use flite -psdur")
        phones.append(Phone(name, start, float(end)))
        start = float(end)
    return phones


def read_phones(path: Path) -> list[Phone]:
    """A text file as `flite -psdur` prints it."""
    return parse_flite(path.read_text("utf-8"))


def phone_at(phones: list[Phone], time_s: float) -> str:
    return next((p.name for p in phones if p.start_s <= time_s < p.end_s), "SIL")


def frame_count(phones: list[Phone]) -> int:
    return int(np.ceil(phones[-1].end_s * FPS))


def imitate(phones: list[Phone], seed: int = 1, quality: Quality | None = None) -> EncodedSpeech:
    """Encoded speech of the whole track, as an encoder of `quality` might give it.

    Loudness and pitch are crude: vowels louder than consonants, a falling line of pitch.
    """
    quality = quality or Quality()
    rng = np.random.default_rng(seed)
    centres = (np.arange(frame_count(phones)) + 0.5) / FPS
    heard = [_heard_as(phone.name, rng, quality.miss) for phone in phones]  # rows [P]
    posteriors = np.zeros((len(centres), len(HEAD_OFFSETS_MS), len(PHONES)))
    for h, offset_ms in enumerate(HEAD_OFFSETS_MS):
        presence = _presence(phones, centres + offset_ms / 1000, quality.blur_ms[h] / 1000)
        wrong = np.stack([_confusion(phone.name) for phone in phones])
        rows = (1 - quality.doubt[h]) * np.stack(heard) + quality.doubt[h] * wrong
        posteriors[:, h] = presence @ rows
    posteriors /= posteriors.sum(2, keepdims=True)
    silent = _presence(phones, centres, 0.02)[:, [p.name == "SIL" for p in phones]].sum(1)
    vowel = _presence(phones, centres, 0.02)[:, [p.name[0] in "AEIOU" for p in phones]].sum(1)
    pitch = np.where(silent < 0.5, 190 - 40 * (centres / centres[-1]), 0)
    return EncodedSpeech(
        posteriors=posteriors.astype(np.float32),
        speech=(1 - silent).astype(np.float32),
        loudness_db=(-70 + 45 * (1 - silent) + 7 * vowel).astype(np.float32),
        pitch_hz=pitch.astype(np.float32),
    )


def _presence(phones: list[Phone], times_s: np.ndarray, blur_s: float) -> np.ndarray:
    """[frames, phones of the track]: soft membership; rows sum to 1 inside the track."""
    edges = np.array([p.start_s for p in phones] + [phones[-1].end_s])
    edges[0], edges[-1] = -1e3, 1e3
    steps = np.clip(1.7 * (times_s[:, None] - edges) / blur_s, -50, 50)
    passed = 1 / (1 + np.exp(-steps))
    return passed[:, :-1] - passed[:, 1:]


def _confusion(name: str) -> np.ndarray:
    """[P] even over the phones confusable with this one."""
    row = np.zeros(len(PHONES))
    for group in CONFUSABLE:
        if name in group:
            row[[PHONE_INDEX[other] for other in group]] += 1
    row[PHONE_INDEX[name]] += 1e-6
    return row / row.sum()


def _heard_as(name: str, rng: np.random.Generator, miss: float) -> np.ndarray:
    row = np.zeros(len(PHONES))
    row[PHONE_INDEX[name]] = 1
    if name != "SIL" and rng.random() < miss:
        other = rng.choice(len(PHONES), p=_confusion(name))
        row *= 0.35
        row[other] += 0.65
    return row
