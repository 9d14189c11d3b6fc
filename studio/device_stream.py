"""The life of one PortAudio stream: opened with one clear refusal, watched, closed without noise.

Loss is seen as silence of the callback. Knows nothing of samples, rings or directions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from engine.errors import EngineError
from studio.audio_devices import Device, chosen, load_portaudio

SILENT_AFTER_NS = 1_500_000_000  # the callback comes every 10 ms: 1.5 s without it is a lost device
FIRST_CALLBACK_NS = 4_000_000_000  # PulseAudio took up to 2 s to send the first block (measured)
MAX_AGE_S = 1.0  # PortAudio's times are believed within this (0.5 s on a null sink)


class DeviceStream:
    """`open`, `called` from every callback, `is_alive`, `close`."""

    def __init__(self, device: Device, what: str) -> None:
        self.device, self._what = device, what  # "microphone", "speaker"
        self._stream: Any = None
        self._opened_ns = self.called_ns = 0

    def open(self, make: Callable[[Any], Any]) -> None:
        """Start the stream that `make(portaudio)` builds. Raises EngineError("device_lost")."""
        portaudio = load_portaudio()
        if portaudio is None:
            raise EngineError("device_lost", "PortAudio is not installed", "install libportaudio2")
        self._opened_ns = time.monotonic_ns()
        try:
            with chosen(self.device):
                self._stream = make(portaudio)
                self._stream.start()
        except (portaudio.PortAudioError, ValueError) as error:
            self.close()
            raise EngineError(
                "device_lost", f"{self._what} {self.device.name or 'default'!r} cannot be opened",
                "plug it in again or choose another",
            ) from error  # fmt: skip

    def called(self, now_ns: int) -> None:
        """Device thread: the callback has run."""
        self.called_ns = now_ns

    def is_alive(self, now_ns: int) -> bool:
        """False once the device has said nothing for 1.5 s, or its stream has ended."""
        if self._stream is None or not self._stream.active:
            return False
        if self.called_ns == 0:
            return now_ns - self._opened_ns < FIRST_CALLBACK_NS
        return now_ns - self.called_ns < SILENT_AFTER_NS

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)
