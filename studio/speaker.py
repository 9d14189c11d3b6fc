"""Speaker: plays what is written and says which sample is being heard. Its position is the clock.

The device callback only copies out of a ring and stamps. Silence is played when nothing is there,
and the position stands still meanwhile. Knows nothing of sessions, files or pictures.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np

from engine.clock import SAMPLE_RATE
from studio.audio_devices import Device
from studio.audio_ring import AudioRing
from studio.device_stream import MAX_AGE_S, DeviceStream
from studio.heard import Marks
from studio.sample_clock import SampleClock

RING_S = 2
# A device with less in hand runs dry on a busy machine, and PulseAudio's plugin then needs up to
# 1.5 s to speak again. The position counts it in; a monitor waits for the picture longer anyway.
LATENCY_S = 0.08


class Sink(Protocol):
    """A speaker, or the silent clock that stands in for one on a machine that has none."""

    def open(self) -> None: ...
    def write(self, samples: np.ndarray, first_sample: int, next_sample: int) -> None: ...
    def queued(self, now_ns: int) -> int: ...
    def position(self, now_ns: int) -> int | None: ...
    def flush(self) -> None: ...
    def is_alive(self, now_ns: int) -> bool: ...
    def close(self) -> None: ...


class Speaker:
    """`write` and `position` from any one thread; 48 kHz mono to all channels."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.clock = SampleClock()  # of played samples
        self.underruns = 0
        self._device = DeviceStream(device, "speaker")
        self._ring = AudioRing(RING_S * SAMPLE_RATE)
        self._marks = Marks()
        self._stamp = (0, 0, 0)  # (run, played position, monotonic ns), replaced whole
        self._stamped = (0, 0, 0)
        self._run = 0  # raised by every pause: positions within a run are evenly spaced in time
        self._flush_to = 0

    def open(self) -> None:
        """Start playing silence. EngineError("device_lost") if the device cannot be opened."""
        self._device.open(self._make_stream)

    def _make_stream(self, portaudio: Any) -> Any:
        return portaudio.OutputStream(
            device=self.device.port, samplerate=SAMPLE_RATE, channels=1, dtype="float32",
            blocksize=SAMPLE_RATE // 100, latency=LATENCY_S, callback=self._callback,
        )  # fmt: skip

    def write(self, samples: np.ndarray, first_sample: int, next_sample: int) -> None:
        """Queue `samples`, which are the session's samples from `first_sample` to `next_sample`."""
        self._marks.add(self._ring.written, first_sample)
        self._ring.write(samples)
        self._marks.add(self._ring.written, next_sample)

    def queued(self, now_ns: int) -> int:
        """Samples written and not yet handed to the device."""
        return self._ring.waiting

    def position(self, now_ns: int) -> int | None:
        """The session sample leaving the speaker now; None before anything was played."""
        stamp = self._stamp
        if stamp[2] == 0:
            return None
        if stamp != self._stamped:
            if stamp[0] != self._stamped[0]:
                self.clock.reset()
            self._stamped = stamp
            self.clock.stamp(stamp[1], stamp[2])
        played = self.clock.sample_at(now_ns)
        return None if played is None else self._marks.sample_at(min(played, self._ring.written))

    def flush(self) -> None:
        """Drop what was not played; silence from the next callback on."""
        self._flush_to = self._ring.written
        self._marks.clear()
        self._stamp = (0, 0, 0)

    def is_alive(self, now_ns: int) -> bool:
        return self._device.is_alive(now_ns)

    def close(self) -> None:
        self._device.close()

    def _callback(self, outdata: np.ndarray, frames: int, when: Any, status: Any) -> None:
        """Device thread: copy, stamp, nothing else."""
        now = time.monotonic_ns()
        ring = self._ring
        if ring.read_position < self._flush_to:
            ring.read_position = self._flush_to
        count = min(ring.waiting, frames)
        if count > 0:
            ahead_s = min(max(when.outputBufferDacTime - when.currentTime, 0.0), MAX_AGE_S)
            outdata[:count, 0] = ring.peek(ring.read_position, count)
            self._stamp = (self._run, ring.read_position, now + int(ahead_s * 1e9))
            ring.read_position += count
        outdata[count:, 0] = 0.0
        if count < frames:
            self.underruns += count > 0
            self._run += 1
        self._device.called(now)
