"""The two model contracts, Generator and Decoder, and the plain data between them.

Every model, from the CPU portrait to the 57B Transformer, is a Generator (audio -> latents) and a
Decoder (latents -> frames). Knows nothing of sockets, processes or widgets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from engine.protocol.messages import RankTime

Progress = Callable[[float, str], None]  # (fraction 0..1, what is being done)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one model step consumes: the audio newly needed to draw `frame_count` frames.

    `pcm` [samples] float32 mono 48 kHz follows the previous chunk's without gap or overlap. Chunk 0
    of an epoch carries `frame_count * 2000 + lookahead_samples`, later ones `frame_count * 2000`:
    the model keeps its own audio state between steps.
    """

    epoch: int
    index: int  # counts from 0 within an epoch
    first_frame: int  # session-wide frame index of its first frame (pts = 2000 * index)
    frame_count: int
    pcm: np.ndarray


@dataclass(frozen=True, slots=True)
class Latents:
    """What a Generator yields for one chunk. `values` is a numpy array or a torch tensor."""

    epoch: int
    chunk_index: int
    first_frame: int
    frame_count: int
    values: Any  # portrait: [frames, COUNT] float32 motion tokens; video: [C, 1, H/16, W/16]
    stage_ms: dict[str, float] = field(default_factory=dict)  # "encode", "denoise", ...
    comm_ms: float = 0.0  # of "denoise", between several ranks
    rank_times: list[RankTime] = field(default_factory=list)  # with several ranks, of each


class Generator(Protocol):
    """Audio -> latents, autoregressively. One instance serves one session."""

    frames_per_chunk: int
    lookahead_samples: int  # audio needed beyond the last frame of a chunk

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        """Take on a character (see `engine.character.Character`). May be slow; reports progress."""
        ...

    def step(self, chunk: Chunk) -> Latents: ...

    def set_settings(self, settings: dict[str, float]) -> None:
        """Intensities and the like, live, between two steps."""
        ...

    def interrupt(self) -> None:
        """The epoch was raised: roll back the open chunk and restart audio state, keep the pose."""
        ...

    def reset(self) -> None:
        """Back to the state right after `prepare`, bit for bit: same audio, same latents."""
        ...


class Decoder(Protocol):
    """Latents -> pictures, on its own thread, process or GPU."""

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None: ...

    def decode(self, latents: Latents, out: list[np.ndarray]) -> None:
        """Write frame i of the chunk into `out[i]` [1088, 704, 4] uint8 BGRA, in place."""
        ...

    def set_settings(self, settings: dict[str, float]) -> None: ...

    def reset(self) -> None: ...
