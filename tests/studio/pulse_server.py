"""A private PulseAudio server with two null sinks, whose monitors are microphones."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import wave
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
load-module module-native-protocol-unix auth-anonymous=1 socket={socket}
load-module module-null-sink sink_name=room rate=48000 sink_properties=device.description=Room
load-module module-null-sink sink_name=booth rate=48000 sink_properties=device.description=Booth
set-default-sink room
set-default-source room.monitor
"""
BOOTH = "Monitor of Booth"


class PulseServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PULSE_SERVER": f"unix:{folder}/native",
            "PULSE_RUNTIME_PATH": str(folder),
            "PULSE_STATE_PATH": str(folder),
            "XDG_CONFIG_HOME": str(folder),
        }
        (folder / "t.pa").write_text(SCRIPT.format(socket=folder / "native"))
        self.process = subprocess.Popen(
            ["pulseaudio", "-n", "-F", str(folder / "t.pa"), "--daemonize=no",
             "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=true"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )  # fmt: skip
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if subprocess.run(["pactl", "info"], env={**os.environ, **self.environment},
                              capture_output=True).returncode == 0:  # fmt: skip
                return
            time.sleep(0.05)
        raise RuntimeError("pulseaudio did not start")

    def pactl(self, *words: str) -> str:
        environment = {**os.environ, **self.environment}
        return subprocess.check_output(["pactl", *words], text=True, env=environment)

    def unplug(self, sink: str) -> None:
        for line in self.pactl("list", "short", "modules").splitlines():
            if f"sink_name={sink} " in line:
                self.pactl("unload-module", line.split()[0])

    def plug(self, sink: str, label: str) -> None:
        self.pactl("load-module", "module-null-sink", f"sink_name={sink}", "rate=48000",
                   f"sink_properties=device.description={label}")  # fmt: skip

    def play(self, sink: str, samples: np.ndarray) -> subprocess.Popen:
        path = self.folder / "play.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(48_000)
            file.writeframes((samples * 32767).astype(np.int16).tobytes())
        return subprocess.Popen(["paplay", "--latency-msec=10", f"--device={sink}", str(path)],
                                env={**os.environ, **self.environment})  # fmt: skip

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(5)


def start_or_skip(folder: Path) -> PulseServer:
    if shutil.which("pulseaudio") is None or shutil.which("paplay") is None:
        pytest.skip("pulseaudio is not installed")
    from studio.audio_devices import load_portaudio

    if load_portaudio() is None:
        pytest.skip("PortAudio is not installed")
    return PulseServer(folder)
