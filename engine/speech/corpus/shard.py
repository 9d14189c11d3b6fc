"""The training shard's format: quantised mel power and phone labels, about 7 MB an hour.

Mel power is kept as 8-bit steps of 0.15 neper from -14 (0.65 dB, far below what augmentation adds),
labels as 8-bit phones four to a hop. Knows nothing of where speech comes from; needs numpy alone,
so that a bare training machine can read it.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from engine.speech.encoded import PHONE_INDEX
from engine.speech.features import HOP
from engine.speech.resample import ENCODER_RATE

CODE_FLOOR, CODE_STEP = -14.0, 0.15  # neper
LABELS_PER_HOP = 4


def codes_of(power: np.ndarray) -> np.ndarray:
    """[hops, MELS] mel power -> uint8."""
    steps = (np.log(np.maximum(power, 1e-9)) - CODE_FLOOR) / CODE_STEP
    return np.clip(np.round(steps), 0, 255).astype(np.uint8)


def labels_of(phones: list[tuple[str, float, float]], hops: int) -> np.ndarray:
    """[hops * 4] uint8: the phone at 24 kHz sample 62.5 * q."""
    out = np.zeros(hops * LABELS_PER_HOP, np.uint8)
    rate = ENCODER_RATE / HOP * LABELS_PER_HOP
    for phone, start, end in phones:
        if (index := PHONE_INDEX.get(phone, 0)) > 0:
            out[int(np.ceil(start * rate)) : int(np.ceil(end * rate))] = index
    return out


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """LZMA over .npz: labels shrink to nothing, mel codes by a third."""
    with lzma.open(path, "wb", preset=3) as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def load_shard(path: Path) -> dict[str, np.ndarray]:
    """The arrays that `write_arrays` wrote."""
    with lzma.open(path) as file, np.load(file) as data:
        return {name: data[name] for name in data.files}
