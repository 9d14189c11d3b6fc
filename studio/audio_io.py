"""Microphone: a device callback that only copies into a ring, and 10 ms blocks out of it.

Every block carries its first sample's position and the moment it was at the microphone. Knows
nothing of sessions, gates or who listens.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from studio.audio_devices import Device
from studio.audio_ring import AudioRing
from studio.device_stream import MAX_AGE_S, DeviceStream
from studio.sample_clock import SampleClock

RING_S = 2
CALLBACK_S = 0.010
MICROPHONE_BLOCK = SAMPLE_RATE // 100  # 20 ms cost 15 ms of latency at p50, 26 at p95 (measured)


@dataclass(frozen=True, slots=True)
class CapturedBlock:
    """`samples` [480] float32 at 48 kHz from `first` on; `captured_ns` is monotonic."""

    first: int
    captured_ns: int
    samples: np.ndarray


class Microphone:
    """`open`, then `read` until None, again and again from one thread; `close`."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.clock = SampleClock()  # in samples at 48 kHz
        self.overflows = 0
        self.rate = SAMPLE_RATE
        self._device = DeviceStream(device, "microphone")
        self._ring = AudioRing(RING_S * SAMPLE_RATE)
        self._stamp = (0, 0)  # (device sample, monotonic ns), replaced whole by the callback
        self._stamped = 0
        self._resampler: soxr.ResampleStream | None = None
        self._rest = np.zeros(0, np.float32)
        self._produced = 0

    def open(self) -> None:
        """Start capturing. EngineError("device_lost") if the device cannot be opened."""
        self._device.open(self._make_stream)
        if self.rate != SAMPLE_RATE:
            self._resampler = soxr.ResampleStream(self.rate, SAMPLE_RATE, 1, dtype="float32")

    def _make_stream(self, portaudio: Any) -> Any:
        self.rate = _supported_rate(portaudio, self.device)
        return portaudio.InputStream(
            device=self.device.port, samplerate=self.rate, channels=1, dtype="float32",
            blocksize=int(self.rate * CALLBACK_S), latency="low", callback=self._callback,
        )  # fmt: skip

    def _callback(self, indata: np.ndarray, frames: int, when: Any, status: Any) -> None:
        """Device thread: copy, stamp, nothing else."""
        now = time.monotonic_ns()
        age_s = min(max(when.currentTime - when.inputBufferAdcTime, 0.0), MAX_AGE_S)
        first = self._ring.written
        self._ring.write(indata[:, 0])
        self._stamp = (first, now - int(age_s * 1e9))
        self._device.called(now)
        if status:
            self.overflows += 1

    def read(self) -> CapturedBlock | None:
        """The next 10 ms, or None if they are not there yet."""
        self._take_stamp()
        while len(self._rest) < MICROPHONE_BLOCK:
            step = int(self.rate * CALLBACK_S)
            got = self._ring.read(step)
            if got is None:
                return None
            self._append(got[0], got[1])
        samples, self._rest = self._rest[:MICROPHONE_BLOCK], self._rest[MICROPHONE_BLOCK:]
        first = self._produced
        self._produced += MICROPHONE_BLOCK
        captured = self.clock.time_of(first)
        return CapturedBlock(first, captured or time.monotonic_ns(), samples)

    def _append(self, position: int, samples: np.ndarray) -> None:
        """Samples of the device to samples at 48 kHz; what was lost becomes silence."""
        expected = self._produced + len(self._rest)
        missing = position * SAMPLE_RATE // self.rate - expected
        if missing > SAMPLE_RATE // 10:
            self._rest = np.concatenate((self._rest, np.zeros(missing, np.float32)))
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples)
        self._rest = np.concatenate((self._rest, samples))

    def _take_stamp(self) -> None:
        sample, at_ns = self._stamp
        if at_ns > self._stamped:
            self._stamped = at_ns
            self.clock.stamp(sample * SAMPLE_RATE // self.rate, at_ns)

    def is_alive(self, now_ns: int) -> bool:
        """False once the device has said nothing for 1.5 s, or its stream has ended."""
        return self._device.is_alive(now_ns)

    @property
    def has_spoken(self) -> bool:
        """True once the first samples have come."""
        return self._device.called_ns != 0

    def close(self) -> None:
        self._device.close()


def _supported_rate(portaudio: Any, device: Device) -> int:
    """48 kHz where the device takes it, else its own rate."""
    try:
        portaudio.check_input_settings(
            device=device.port, channels=1, dtype="float32", samplerate=SAMPLE_RATE
        )
    except portaudio.PortAudioError:
        return int(portaudio.query_devices(device.port)["default_samplerate"])
    return SAMPLE_RATE
