"""What the audio encoder says of each frame, and its phone alphabet.

Knows nothing of audio, nets or lips: plain data between `engine.speech` and `engine.motion`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PHONES: tuple[str, ...] = (
    "SIL",
    "AA",
    "AE",
    "AH",
    "AO",
    "AW",
    "AY",
    "B",
    "CH",
    "D",
    "DH",
    "EH",
    "ER",
    "EY",
    "F",
    "G",
    "HH",
    "IH",
    "IY",
    "JH",
    "K",
    "L",
    "M",
    "N",
    "NG",
    "OW",
    "OY",
    "P",
    "R",
    "S",
    "SH",
    "T",
    "TH",
    "UH",
    "UW",
    "V",
    "W",
    "Y",
    "Z",
    "ZH",
)  # 40: silence and ARPAbet
PHONE_INDEX: dict[str, int] = {phone: i for i, phone in enumerate(PHONES)}

LOOKAHEAD_MS = 80  # audio heard beyond a frame's centre before its answer is given
# Head h speaks of the instant `centre + HEAD_OFFSETS_MS[h]`; all heads have heard the same audio,
# up to centre + 80 ms, so later instants are less certain.
HEAD_OFFSETS_MS: tuple[int, ...] = (-40, 0, 40, 80)


@dataclass(frozen=True, slots=True)
class EncodedSpeech:
    """For n consecutive frames of 2,000 samples; frame centre = pts + 1,000 samples."""

    posteriors: np.ndarray  # [n, 4 heads, 40 phones] float32, each row sums to 1
    speech: np.ndarray  # [n] float32 0..1: somebody is speaking (gate over noise and music)
    loudness_db: np.ndarray  # [n] float32 dBFS of the frame
    pitch_hz: np.ndarray  # [n] float32, 0 where unvoiced

    def __len__(self) -> int:
        return len(self.posteriors)
