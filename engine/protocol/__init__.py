"""The wire: versions, lanes and messages. `engine/protocol.md` is the specification.

Nothing here imports torch, cv2 or Qt, so that the studio may import all of it.
"""

from __future__ import annotations

MAJOR = 1  # a change that an older peer cannot read
MINOR = 1  # an addition that it may ignore

LANES = ("control", "audio", "frames", "telemetry")
HEARTBEAT_MS = 1_000  # ping and engine_state; not ZMTP's own heartbeats, see protocol.md
DEAD_AFTER_MS = 3_000  # no traffic for so long: the peer is gone
MAX_CONTROL_BYTES = 64 * 1024 * 1024  # a picture travels in one control message
MAX_AUDIO_BYTES = 64 * 1024
MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_TELEMETRY_BYTES = 256 * 1024
FRAMES_HWM = 4  # messages; lateness is judged by timestamp, not by queue length
AUDIO_HWM = 100  # about 2 s of 20 ms blocks
TELEMETRY_HWM = 200
