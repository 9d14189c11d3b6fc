"""Microphones and speakers by name, and how PortAudio opens each.

Names come from the PulseAudio server where there is one, else from PortAudio. PortAudio's list is
fixed when it starts: `fresh_portaudio` asks a child process, so that no live stream is disturbed,
and `restart_portaudio` takes a new list in, which is safe only while none of our streams is open.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from engine.errors import EngineError
from studio.pulse_devices import pulse_devices

Kind = Literal["input", "output"]
CHILD_S = 5.0
PULSE_PORT = "pulse"  # the ALSA plug-in's name in PortAudio's list
_ENVIRONMENT = {"input": "PULSE_SOURCE", "output": "PULSE_SINK"}
_opening = threading.Lock()  # PULSE_SOURCE and PULSE_SINK are read while a stream opens


@dataclass(frozen=True, slots=True)
class Device:
    """`name` is shown and remembered; `port` is PortAudio's name, `pulse` the server's own."""

    name: str
    kind: Kind
    port: str
    pulse: str = ""


def load_portaudio() -> ModuleType | None:
    """The sounddevice module, or None where PortAudio is not installed."""
    try:
        import sounddevice
    except OSError:
        return None
    return sounddevice


def list_devices(kind: Kind) -> list[Device]:
    """All devices of `kind`, named uniquely; [] on a machine without audio."""
    portaudio = load_portaudio()
    if portaudio is None:
        return []
    ports = [row["name"] for row in portaudio.query_devices() if row[f"max_{kind}_channels"] > 0]
    served = pulse_devices("sources" if kind == "input" else "sinks")
    if served is not None and PULSE_PORT in ports:
        # "auto_null" is what the server puts up when there is no device at all
        served = [device for device in served if not device.name.startswith("auto_null")]
        found = [Device(d.label, kind, PULSE_PORT, d.name) for d in served]
    else:
        found = [Device(name, kind, name) for name in ports if name not in ("default", PULSE_PORT)]
    return list({device.name: device for device in reversed(found)}.values())[::-1]


def find_device(kind: Kind, name: str) -> Device:
    """The device of that name ("" is the default). EngineError("device_lost") without it."""
    devices = list_devices(kind)
    what = "microphone" if kind == "input" else "speaker"
    if name:
        for device in devices:
            if device.name == name:
                return device
        hint = "plug it in or choose another"
        raise EngineError("device_lost", f"{what} {name!r} is not there", hint)
    if not devices:
        hint = "plug one in, or use a file"
        raise EngineError("device_lost", f"this machine has no {what}", hint)
    if devices[0].pulse:
        return Device("", kind, PULSE_PORT)
    portaudio = load_portaudio()
    assert portaudio is not None
    index = portaudio.default.device[0 if kind == "input" else 1]
    return Device("", kind, portaudio.query_devices(index)["name"]) if index >= 0 else devices[0]


@contextmanager
def chosen(device: Device) -> Iterator[None]:
    """While a stream of `device` opens: the server's own name in the environment it reads."""
    variable = _ENVIRONMENT[device.kind]
    with _opening:
        before = os.environ.pop(variable, None)
        if device.pulse:
            os.environ[variable] = device.pulse
        try:
            yield
        finally:
            os.environ.pop(variable, None)
            if before is not None:
                os.environ[variable] = before


def restart_portaudio() -> None:
    """Take in a new device list. Only while no stream of this process is open."""
    portaudio = load_portaudio()
    if portaudio is not None:
        portaudio._terminate()
        portaudio._initialize()


def take_in_new_devices(kind: Kind, name: str, may_restart: Callable[[], bool]) -> None:
    """Before opening `name`: when our list lacks it and a new process sees it, take a new list."""
    known = [device.name for device in list_devices(kind)]
    if name in known or (not name and known) or not may_restart():
        return
    fresh = fresh_portaudio(kind)
    if name in fresh or (not name and fresh):
        restart_portaudio()


def fresh_portaudio(kind: Kind) -> list[str]:
    """Names of PortAudio devices as a new process sees them now; [] if that fails."""
    command = [sys.executable, "-m", "studio.audio_devices", kind]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=CHILD_S, check=True).stdout
        return [str(name) for name in json.loads(answer)]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


if __name__ == "__main__":
    asked: Kind = "input" if "input" in sys.argv else "output"
    sys.stdout.write(json.dumps([device.name for device in list_devices(asked)]))
