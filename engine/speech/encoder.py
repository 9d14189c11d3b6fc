"""Microphone samples in, phone posteriors a frame out: the streaming speech encoder.

Frame n is answered as soon as sample 2,000n + 4,839 is in (centre + 80 ms) and depends on no later
one. numpy alone: no torch, no GPU. Knows nothing of lips, devices or wall time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.clock import SAMPLES_PER_FRAME
from engine.errors import EngineError
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONES, EncodedSpeech
from engine.speech.features import InputStream, MelStream, step_of_frame
from engine.speech.gate import SpeechGate
from engine.speech.net import NetStream, load_weights
from engine.speech.pitch import PITCH_WINDOW, SHRINK, pitch_hz
from engine.speech.resample import Halver

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "speech" / "encoder.safetensors"
HEARD_BEYOND_START = 4_840  # 48 kHz samples from a frame's start until its answer is known
_PITCH_HALF = PITCH_WINDOW * SHRINK // 2  # 48 kHz samples each side of the centre
_SILENCE_DB = -120.0


class SpeechEncoder:
    """One voice stream. Pieces of any size give the same frames as one piece."""

    def __init__(self, weights: Path | None = None) -> None:
        """
        Args:
            weights: safetensors file; the shipped one by default.

        Raises:
            EngineError: missing_asset when it cannot be used.
        """
        self._weights = load_weights(weights or SHIPPED)
        self.notes = self._weights.notes
        self._net = NetStream(self._weights)
        self._inputs = InputStream(self._weights.mean)
        self._mel, self._halver, self._gate = MelStream(), Halver(), SpeechGate()
        self.reset()

    def reset(self) -> None:
        """Forget the stream: the next sample is sample 0 of frame 0."""
        for part in (self._net, self._inputs, self._mel, self._halver, self._gate):
            part.reset()
        self._steps, self._frame, self._samples = 0, 0, 0
        self._unheard: list[np.ndarray] = []
        self._logits: dict[int, np.ndarray] = {}
        # samples from 440 before the current frame, for its loudness and pitch
        self._pcm = np.zeros(_PITCH_HALF - SAMPLES_PER_FRAME // 2, np.float32)

    def push(self, pcm_48k: np.ndarray) -> EncodedSpeech:
        """[n] float32 mono at 48 kHz, -1..1 -> every frame whose look-ahead is now complete.

        Raises:
            EngineError: bad_audio when the samples are not one row of finite numbers.
        """
        pcm = np.asarray(pcm_48k, np.float32)
        if pcm.ndim != 1:
            raise EngineError(
                "bad_audio", f"Audio has {pcm.ndim} axes, 1 expected.", "Mix to mono."
            )
        if not np.isfinite(pcm).all():
            raise EngineError(
                "bad_audio", "Audio holds NaN or infinity.", "Check the sound source."
            )
        self._samples += len(pcm)
        self._pcm = np.concatenate([self._pcm, pcm])
        self._unheard.append(pcm)
        if not self._due():
            return _joined([])  # nothing to answer yet: one long piece costs less than two short
        self._hear(np.concatenate(self._unheard))
        self._unheard.clear()
        return self._answer()

    def flush(self) -> EncodedSpeech:
        """Answers every frame that began, silence following the last sample. Then `reset`."""
        frames = -(-self._samples // SAMPLES_PER_FRAME)
        missing = (
            frames * SAMPLES_PER_FRAME - SAMPLES_PER_FRAME + HEARD_BEYOND_START - self._samples
        )
        rest = (
            self.push(np.zeros(max(0, missing), np.float32))
            if frames > self._frame
            else _joined([])
        )
        self.reset()
        return rest

    def _hear(self, pcm: np.ndarray) -> None:
        for row in self._net.push(self._inputs.push(self._mel.push(self._halver.push(pcm)))):
            if self._steps >= step_of_frame(0) and self._steps % 2 == 0:
                self._logits[(self._steps - step_of_frame(0)) // 2] = row
            self._steps += 1

    def _answer(self) -> EncodedSpeech:
        rows = []
        while self._frame in self._logits and self._due():
            rows.append(self._one_frame(self._logits.pop(self._frame)))
            self._frame += 1
            self._pcm = self._pcm[SAMPLES_PER_FRAME:]
        return _joined(rows)

    def _due(self) -> bool:
        return self._samples >= self._frame * SAMPLES_PER_FRAME + HEARD_BEYOND_START

    def _one_frame(self, logits: np.ndarray) -> tuple[np.ndarray, float, float, float]:
        heads = logits[:-1].reshape(len(HEAD_OFFSETS_MS), len(PHONES))
        heads = np.exp(heads - heads.max(1, keepdims=True))
        margin = _PITCH_HALF - SAMPLES_PER_FRAME // 2
        frame = self._pcm[margin : margin + SAMPLES_PER_FRAME]
        power = float(frame @ frame) / SAMPLES_PER_FRAME
        loudness = max(_SILENCE_DB, 10 * float(np.log10(power + 1e-12)))
        speech = self._gate.push(float(logits[-1]), loudness)
        return (
            heads / heads.sum(1, keepdims=True),
            speech,
            loudness,
            pitch_hz(self._pcm[: 2 * _PITCH_HALF]),
        )


def _joined(rows: list[tuple[np.ndarray, float, float, float]]) -> EncodedSpeech:
    if not rows:
        empty = np.zeros(0, np.float32)
        shape = (0, len(HEAD_OFFSETS_MS), len(PHONES))
        return EncodedSpeech(np.zeros(shape, np.float32), empty, empty, empty)
    heads, speech, loudness, pitch = zip(*rows, strict=True)
    return EncodedSpeech(
        np.stack(heads).astype(np.float32),
        np.array(speech, np.float32),
        np.array(loudness, np.float32),
        np.array(pitch, np.float32),
    )


def encode_all(pcm_48k: np.ndarray, weights: Path | None = None) -> EncodedSpeech:
    """A whole recording at once: every frame that began."""
    encoder = SpeechEncoder(weights)
    first, rest = encoder.push(pcm_48k), encoder.flush()
    return EncodedSpeech(
        np.concatenate([first.posteriors, rest.posteriors]),
        np.concatenate([first.speech, rest.speech]),
        np.concatenate([first.loudness_db, rest.loudness_db]),
        np.concatenate([first.pitch_hz, rest.pitch_hz]),
    )
