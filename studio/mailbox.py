"""One slot between the link thread and the painter: the newest due Frame wins, the rest is counted.

Knows nothing of Qt, sockets or time. The wake-up is coalesced: `put` says whether a wake-up must be
posted, and none is until the painter has taken the slot. 240 frames through queued signals while
the GUI was blocked cost 737 MB; this costs one frame.
"""

from __future__ import annotations

import threading

from engine.protocol.frame import Frame


class Mailbox:
    """`put` from one thread, `take` from another; `overwritten` counts frames nobody took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fresh: Frame | None = None
        self._latest: Frame | None = None
        self.overwritten = 0

    def put(self, frame: Frame) -> bool:
        """Place `frame`; True when a wake-up must be posted (none is pending)."""
        with self._lock:
            pending = self._fresh is not None
            self.overwritten += pending
            self._fresh = self._latest = frame
            return not pending

    def take(self) -> Frame | None:
        """The frame not taken before, or None; the next `put` asks for a wake-up again."""
        with self._lock:
            frame, self._fresh = self._fresh, None
            return frame

    @property
    def latest(self) -> Frame | None:
        """The newest frame ever put, taken or not: what a second window or a snapshot shows."""
        return self._latest

    def clear(self) -> None:
        """Forget both, so that no frame of an old character is ever shown again."""
        with self._lock:
            self._fresh = self._latest = None
