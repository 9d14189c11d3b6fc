"""Motion of a whole sound: the generator of the `portrait` model run over a file, for looking and
measuring.

Knows nothing of pictures.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.audio_file import read_whole
from engine.clock import SAMPLES_PER_FRAME, ms_to_samples
from engine.models.base import Chunk
from engine.models.portrait import PortraitGenerator
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONES
from engine.speech.encoder import SpeechEncoder

SILENCE_AFTER_MS = 500  # shown after the sound, so that one sees the mouth come to rest


def sound(path: Path) -> np.ndarray:
    """[samples] float32 mono 48 kHz of a file, and half a second of silence.

    Raises EngineError("bad_audio").
    """
    return np.concatenate([read_whole(path), np.zeros(ms_to_samples(SILENCE_AFTER_MS), np.float32)])


def motion_of(pcm: np.ndarray, settings: dict[str, float]) -> tuple[np.ndarray, list[str]]:
    """Tokens [n, COUNT] of 48 kHz mono sound, and the phone heard at each frame's centre."""
    generator = PortraitGenerator(1)
    generator.prepare(None, settings, lambda fraction, what: None)
    frames = len(pcm) // SAMPLES_PER_FRAME
    pcm = np.concatenate([pcm, np.zeros(generator.lookahead_samples, np.float32)])
    first = SAMPLES_PER_FRAME + generator.lookahead_samples
    edges = [0, *range(first, len(pcm) + 1, SAMPLES_PER_FRAME)]
    chunks = [Chunk(0, i, i, 1, pcm[edges[i] : edges[i + 1]]) for i in range(frames)]
    tokens = np.concatenate([generator.step(chunk).values for chunk in chunks])
    heard = SpeechEncoder().push(pcm).posteriors[:, HEAD_OFFSETS_MS.index(0)]
    return tokens, [PHONES[i] for i in heard.argmax(1)]
