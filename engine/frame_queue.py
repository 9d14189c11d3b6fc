"""Frames on their way to the frames lane: a burst waits shortly instead of being dropped.

PUB drops silently at its high-water mark of four, which a file sent ahead reaches in 60 ms. So the
socket refuses instead (XPUB_NODROP) and frames wait here; a subscriber that stays stuck for
PATIENCE_S loses its own frames and nobody else's. Knows nothing of sessions.
"""

from __future__ import annotations

from collections import deque

import zmq

PATIENCE_S = 0.1
WAITING = 12  # frames, 37 MB


class FrameQueue:
    """`offer` a frame, `flush` each turn; `waiting` frames ask for a turn soon."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._frames: deque[tuple[float, bytearray]] = deque()  # (since, header and pixels)

    @property
    def waiting(self) -> int:
        return len(self._frames)

    def offer(self, data: bytearray, now: float) -> None:
        self._frames.append((now, data))
        self.flush(now)

    def flush(self, now: float) -> None:
        """Send what finds room; what waited too long leaves, room or not."""
        while self._frames:
            since, data = self._frames[0]
            stuck = now - since > PATIENCE_S or len(self._frames) > WAITING
            if not self._send(data, lossy=stuck):
                return
            self._frames.popleft()

    def _send(self, data: bytearray, lossy: bool) -> bool:
        self._socket.setsockopt(zmq.XPUB_NODROP, int(not lossy))
        try:
            self._socket.send(data, zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return False
        return True
