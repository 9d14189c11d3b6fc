"""bench_live with a microphone where there is none: `python -m tests.studio.live_microphone`.

Starts a private PulseAudio server, plays a file into a null sink again and again and listens to its
monitor. Arguments after `--play FILE` go to bench_live.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from studio.file_audio import FileAudio
from tests.studio.pulse_server import BOOTH, PulseServer


def main() -> int:
    assert sys.argv[1] == "--play", __doc__
    file = FileAudio(Path(sys.argv[2]))
    server = PulseServer(Path(tempfile.mkdtemp(prefix="avatar-pulse-")))
    samples = np.tile(file.samples(0, len(file)), 1 + 700 * 48_000 // len(file))
    player = server.play("booth", samples)
    try:
        return subprocess.call(
            [sys.executable, "-m", "studio.bench_live", "--microphone", BOOTH, *sys.argv[3:]],
            env={**os.environ, **server.environment},
        )
    finally:
        player.kill()
        server.close()


if __name__ == "__main__":
    sys.exit(main())
