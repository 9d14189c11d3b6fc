"""AudioBlock on the audio lane: a fixed header and float32 samples, one message part.

Knows nothing of sockets or devices.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from engine.errors import EngineError

MAGIC = b"AVAB"
# magic, session, epoch, flags, first_sample, capture_time_ns, sample_count, reserved
HEADER = struct.Struct("<4sIIIqqII")
FLAG_LAST = 1  # the stream ends with this block (a file); the engine pads and drains
MAX_SAMPLES = 4_800  # 100 ms


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """Mono PCM `samples` [n] float32 in -1..1 at 48 kHz; `first_sample` counts from its start."""

    session: int
    epoch: int
    first_sample: int
    capture_time_ns: int  # time.monotonic_ns() of the first sample at the microphone; 0 for a file
    samples: np.ndarray
    last: bool = False


def encode(block: AudioBlock) -> bytes:
    samples = np.ascontiguousarray(block.samples, np.float32)
    assert samples.ndim == 1 and len(samples) <= MAX_SAMPLES, samples.shape
    header = HEADER.pack(
        MAGIC,
        block.session,
        block.epoch,
        FLAG_LAST if block.last else 0,
        block.first_sample,
        block.capture_time_ns,
        len(samples),
        0,
    )
    return header + samples.tobytes()


def decode(data: bytes | memoryview) -> AudioBlock:
    """Raises EngineError("bad_message") on anything that is not a well-formed block."""
    if len(data) < HEADER.size:
        raise EngineError(
            "bad_message", f"audio block of {len(data)} bytes, header is {HEADER.size}"
        )
    magic, session, epoch, flags, first, captured, count, _ = HEADER.unpack_from(data)
    expected = HEADER.size + 4 * count
    if magic != MAGIC or count > MAX_SAMPLES or len(data) != expected or first < 0:
        raise EngineError(
            "bad_message", f"malformed audio block ({len(data)} bytes, count {count})"
        )
    samples = np.frombuffer(data, np.float32, count, HEADER.size)
    if not np.isfinite(samples).all():
        raise EngineError("bad_message", "audio block holds samples that are not finite")
    return AudioBlock(session, epoch, first, captured, samples, bool(flags & FLAG_LAST))
