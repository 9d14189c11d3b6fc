"""Calls from any thread into the GUI thread, bounded: of calls with the same key the last one wins.

One coalesced wake-up; a blocked GUI costs one entry a key, not one event a call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal


class GuiCalls(QObject):
    """`post(key, call)` from anywhere; `call` runs in the thread this object lives in."""

    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._calls: dict[str, Callable[[], None]] = {}
        self._woken.connect(self._run, Qt.ConnectionType.QueuedConnection)

    def post(self, key: str, call: Callable[[], None]) -> None:
        with self._lock:
            waiting = bool(self._calls)
            self._calls.pop(key, None)  # the newest goes to the end: order is that of last calls
            self._calls[key] = call
        if not waiting:
            self._woken.emit()

    def _run(self) -> None:
        with self._lock:
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call()
