"""Opens a device on a thread of its own, again and again until it works: opening may take seconds.

Knows nothing of microphones or speakers: `attempt` makes one and raises EngineError when it cannot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from engine.errors import EngineError

T = TypeVar("T")
RETRY_NS = 1_000_000_000


class Opener(Generic[T]):
    """`poll(now_ns)` starts an attempt when one is due; `take()` gives what has been opened."""

    def __init__(self, attempt: Callable[[], T]) -> None:
        self._attempt = attempt
        self._thread: threading.Thread | None = None
        self._opened: T | None = None
        self._next_ns = 0
        self.error: EngineError | None = None
        self.failures = 0

    def poll(self, now_ns: int) -> None:
        busy = self._thread is not None and self._thread.is_alive()
        if busy or self._opened is not None or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + RETRY_NS
        self._thread = threading.Thread(target=self._run, name="device-opener", daemon=True)
        self._thread.start()

    def take(self) -> T | None:
        opened, self._opened = self._opened, None
        return opened

    def wait(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._opened = self._attempt()
            self.error, self.failures = None, 0
        except EngineError as error:
            self.error = error
            self.failures += 1
        except Exception as error:  # top of a thread: a driver's own exception
            self.error = EngineError("device_lost", f"the audio driver failed: {error!r}")
            self.failures += 1
