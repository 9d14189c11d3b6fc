"""Microphone: a device callback that only copies into a ring, and 10 ms blocks out of it.

Every block carries its first sample's position and the moment it was at the microphone. Loss is
seen as silence of the callback. Knows nothing of sessions, gates or who listens.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError
from studio.audio_devices import Device, chosen, load_portaudio
from studio.audio_ring import AudioRing
from studio.sample_clock import SampleClock

SILENT_AFTER_NS = 1_500_000_000  # the callback comes every 10 ms: 1.5 s without it is a lost device
FIRST_CALLBACK_NS = 4_000_000_000  # PulseAudio took up to 2 s to send the first block (measured)
RING_S = 2
CALLBACK_S = 0.010
MICROPHONE_BLOCK = SAMPLE_RATE // 100  # 20 ms cost 15 ms of latency at p50, 26 at p95 (measured)
MAX_AGE_S = 1.0  # PortAudio's time of capture is believed within this (0.5 s on a null sink)


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
        self._stream: Any = None
        self._ring = AudioRing(RING_S * SAMPLE_RATE)
        self._stamp = (0, 0)  # (device sample, monotonic ns), replaced whole by the callback
        self._stamped = 0
        self._called_ns = self._opened_ns = 0
        self._resampler: soxr.ResampleStream | None = None
        self._rest = np.zeros(0, np.float32)
        self._produced = 0

    def open(self) -> None:
        """Start capturing. EngineError("device_lost") if the device cannot be opened."""
        portaudio = load_portaudio()
        if portaudio is None:
            raise EngineError("device_lost", "PortAudio is not installed", "install libportaudio2")
        self._opened_ns = time.monotonic_ns()
        try:
            with chosen(self.device):
                self.rate = _supported_rate(portaudio, self.device)
                self._stream = portaudio.InputStream(
                    device=self.device.port, samplerate=self.rate, channels=1, dtype="float32",
                    blocksize=int(self.rate * CALLBACK_S), latency="low", callback=self._callback,
                )  # fmt: skip
                self._stream.start()
        except (portaudio.PortAudioError, ValueError) as error:
            self.close()
            raise EngineError(
                "device_lost", f"microphone {self.device.name or 'default'!r} cannot be opened",
                "plug it in again or choose another",
            ) from error  # fmt: skip
        if self.rate != SAMPLE_RATE:
            self._resampler = soxr.ResampleStream(self.rate, SAMPLE_RATE, 1, dtype="float32")

    def _callback(self, indata: np.ndarray, frames: int, when: Any, status: Any) -> None:
        """Device thread: copy, stamp, nothing else."""
        now = time.monotonic_ns()
        age_s = min(max(when.currentTime - when.inputBufferAdcTime, 0.0), MAX_AGE_S)
        first = self._ring.written
        self._ring.write(indata[:, 0])
        self._stamp = (first, now - int(age_s * 1e9))
        self._called_ns = now
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
        if self._stream is None or not self._stream.active:
            return False
        if self._called_ns == 0:
            return now_ns - self._opened_ns < FIRST_CALLBACK_NS
        return now_ns - self._called_ns < SILENT_AFTER_NS

    @property
    def has_spoken(self) -> bool:
        """True once the first samples have come."""
        return self._called_ns != 0

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)


def _supported_rate(portaudio: Any, device: Device) -> int:
    """48 kHz where the device takes it, else its own rate."""
    try:
        portaudio.check_input_settings(
            device=device.port, channels=1, dtype="float32", samplerate=SAMPLE_RATE
        )
    except portaudio.PortAudioError:
        return int(portaudio.query_devices(device.port)["default_samplerate"])
    return SAMPLE_RATE
