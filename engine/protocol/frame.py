"""Frame on the frames lane: a fixed 64-byte header and BGRA pixels, one message part.

Knows nothing of sockets or screens.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from engine.errors import EngineError

MAGIC = b"AVFR"
# magic, session, epoch, flags, pts, capture_time_ns, publish_time_ns, width, height, stride,
# frame_index, 12 reserved bytes
HEADER = struct.Struct("<4sIIIqqqHHIi12x")
assert HEADER.size == 64
FLAG_SYNTHETIC = 1  # made with synthetic weights: the HUD must say so
FLAG_IDLE = 2  # no audio was behind it: the character at rest


@dataclass(frozen=True, slots=True)
class Frame:
    """Picture `pixels` [h, w, 4] uint8 BGRA with its pts in samples (2000 * frame_index)."""

    session: int
    epoch: int
    frame_index: int
    pts: int
    capture_time_ns: (
        int  # of the audio under the middle of the frame; 0 if unknown (same host only)
    )
    publish_time_ns: int  # time.monotonic_ns() when the engine sent it
    pixels: np.ndarray
    synthetic: bool = False
    idle: bool = False


def encode_header(frame: Frame) -> bytes:
    height, width = frame.pixels.shape[:2]
    flags = FLAG_SYNTHETIC * frame.synthetic | FLAG_IDLE * frame.idle
    return HEADER.pack(
        MAGIC,
        frame.session,
        frame.epoch,
        flags,
        frame.pts,
        frame.capture_time_ns,
        frame.publish_time_ns,
        width,
        height,
        4 * width,
        frame.frame_index,
    )


def encode(frame: Frame) -> bytearray:
    """Header and pixels in one buffer that may be sent with copy=False."""
    size = HEADER.size + frame.pixels.nbytes
    data = bytearray(size)
    data[: HEADER.size] = encode_header(frame)
    body = np.frombuffer(data, np.uint8, frame.pixels.nbytes, HEADER.size)
    body.reshape(frame.pixels.shape)[:] = frame.pixels
    return data


def decode(data: bytes | memoryview) -> Frame:
    """A Frame whose pixels are a view into `data`. Raises EngineError("bad_message")."""
    if len(data) < HEADER.size:
        raise EngineError("bad_message", f"frame of {len(data)} bytes, header is {HEADER.size}")
    (magic, session, epoch, flags, pts, captured, published, width, height, stride, index) = (
        HEADER.unpack_from(data)
    )
    if magic != MAGIC or stride != 4 * width or len(data) != HEADER.size + stride * height:
        raise EngineError("bad_message", f"malformed frame ({len(data)} bytes, {width}x{height})")
    pixels = np.frombuffer(data, np.uint8, stride * height, HEADER.size)
    return Frame(
        session,
        epoch,
        index,
        pts,
        captured,
        published,
        pixels.reshape(height, width, 4),
        bool(flags & FLAG_SYNTHETIC),
        bool(flags & FLAG_IDLE),
    )
