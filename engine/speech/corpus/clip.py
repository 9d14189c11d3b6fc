"""One utterance with phone times, and the file that holds many of them.

Knows nothing of where speech comes from. Audio is mono float32 at 24 kHz, peak 0.7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.speech.corpus.held_out import may_train
from engine.speech.resample import ENCODER_RATE

Segment = tuple[str, float, float]  # ARPAbet phone or SIL, start and end in seconds


@dataclass(frozen=True, slots=True)
class Clip:
    source: str  # which script made it
    speaker: str
    language: str
    pcm: np.ndarray  # [n] float32 at 24 kHz
    phones: list[Segment]
    text: str = ""

    @property
    def seconds(self) -> float:
        return len(self.pcm) / ENCODER_RATE

    @property
    def may_train(self) -> bool:
        return may_train(self.speaker, self.language)


def normalised(pcm: np.ndarray) -> np.ndarray:
    """Peak 0.7, mean removed."""
    pcm = np.asarray(pcm, np.float32)
    pcm = pcm - pcm.mean()
    return pcm * np.float32(0.7 / (np.abs(pcm).max() + 1e-6))


def save_clips(path: Path, clips: list[Clip]) -> None:
    """One .npz: all samples as int16 in a row, and a JSON list beside them."""
    rows = [
        {
            "source": c.source,
            "speaker": c.speaker,
            "language": c.language,
            "samples": len(c.pcm),
            "phones": [(p, round(a, 4), round(b, 4)) for p, a, b in c.phones],
            "text": c.text,
        }
        for c in clips
    ]
    pcm = np.concatenate([c.pcm for c in clips]) if clips else np.zeros(0, np.float32)
    codes = (np.clip(pcm, -1, 1) * 32767).astype(np.int16)
    text = np.frombuffer(json.dumps(rows).encode(), np.uint8)
    np.savez(path, pcm=codes, rows=text)


def load_clips(path: Path) -> Iterator[Clip]:
    """The clips of one file, in order."""
    with np.load(path) as data:
        pcm, rows = data["pcm"], json.loads(data["rows"].tobytes())
    start = 0
    for row in rows:
        end = start + row["samples"]
        audio = pcm[start:end].astype(np.float32) / 32767
        phones = [tuple(p) for p in row["phones"]]
        yield Clip(row["source"], row["speaker"], row["language"], audio, phones, row["text"])
        start = end
