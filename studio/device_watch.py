"""Tells when microphones and speakers come and go, by asking the sound server once a second.

A PulseAudio server moves a stream to another device when its own is unplugged, so a lost device
is not always a silent one: only the list of names tells. One question costs 7 ms of CPU.
Without such a server there is nothing to ask cheaply and the watch only lists once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from studio.audio_devices import list_devices
from studio.pulse_devices import pulse_devices

PERIOD_S = 1.0


class DeviceWatch:
    """`inputs`, `outputs`: tuples of names, None until known; `on_change` comes on its thread."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.inputs: tuple[str, ...] | None = None
        self.outputs: tuple[str, ...] | None = None
        self.watches = False  # names can be trusted to be up to date
        self._on_change = on_change
        self._stop = threading.Event()
        self._ask_now = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def refresh(self) -> None:
        """Ask now, not at the next second."""
        self._ask_now.set()

    def is_gone(self, kind: str, name: str) -> bool:
        """True when the server is known to have no device of that name ("" is never gone)."""
        names = self.inputs if kind == "input" else self.outputs
        return bool(name) and self.watches and names is not None and name not in names

    def close(self) -> None:
        self._stop.set()
        self._ask_now.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._ask()
            self._ask_now.wait(PERIOD_S if self.watches else None)
            self._ask_now.clear()

    def _ask(self) -> None:
        self.watches = pulse_devices("sinks") is not None
        inputs = tuple(device.name for device in list_devices("input"))
        outputs = tuple(device.name for device in list_devices("output"))
        if (inputs, outputs) != (self.inputs, self.outputs):
            self.inputs, self.outputs = inputs, outputs
            self._on_change()
