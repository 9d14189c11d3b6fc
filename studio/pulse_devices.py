"""Sources and sinks of a PulseAudio or PipeWire server by name, asked from `pactl`.

PortAudio sees one device named "pulse" there and never notices hot-plug; the server knows all.
Knows nothing of streams. A machine without pactl or without a server has none.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass

ASK_S = 2.0  # a healthy server answers in 16 ms


@dataclass(frozen=True, slots=True)
class PulseDevice:
    name: str  # "alsa_input.usb-..."
    label: str  # "Blue Yeti", what a person calls it
    is_monitor: bool


def pulse_devices(kind: str) -> list[PulseDevice] | None:
    """`kind` "sources" or "sinks"; None when there is no server to ask. Monitors come last."""
    pactl = shutil.which("pactl")
    if pactl is None:
        return None
    try:
        answer = subprocess.run(
            [pactl, "--format=json", "list", kind], capture_output=True, timeout=ASK_S,
            check=True, env={**os.environ, "LC_ALL": "C.UTF-8"},
        ).stdout  # fmt: skip
        rows = json.loads(answer)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    devices = [_device(row) for row in rows if isinstance(row, dict)]
    return sorted(devices, key=lambda device: device.is_monitor)


def _device(row: dict[str, object]) -> PulseDevice:
    name = str(row.get("name", ""))
    label = str(row.get("description") or name)
    monitor_of = row.get("monitor_source") if "monitor_source" in row else ""
    return PulseDevice(name, label, name.endswith(".monitor") or bool(monitor_of))
