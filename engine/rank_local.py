"""Rank 0's own part, on a thread: called like the other ranks, so that nobody waits inside it.

A collective whose peer is gone may never return; whoever called is told by the group instead.
Knows nothing of processes.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from engine import rank_messages as rm
from engine.models.base import Progress
from engine.rank_parts import DenoisePart


class LocalRank:
    """`send` a call; `done(result)` or `failed(error)` is called on the thread."""

    def __init__(
        self, part: DenoisePart, done: Callable[[rm.Body, Any], None],
        failed: Callable[[BaseException], None], progress: Progress,
    ) -> None:  # fmt: skip
        self._part = part
        self._done, self._failed, self._progress = done, failed, progress
        self._calls: queue.SimpleQueue[rm.Body | None] = queue.SimpleQueue()
        self.busy_since = 0.0
        self._thread = threading.Thread(target=self._run, name="rank 0", daemon=True)
        self._thread.start()

    def send(self, body: rm.Body) -> None:
        self._calls.put(body)

    def join(self, timeout_s: float) -> bool:
        """Whether the thread has ended (it does after Close)."""
        self._calls.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while (body := self._calls.get()) is not None:
                self.busy_since = time.monotonic()
                result = self._part.act(body, self._progress)
                self.busy_since = 0.0
                self._done(body, result)
        except Exception as error:  # the top of the thread
            self._failed(error)
        finally:  # a group that ended by another rank's fault sends no Close: leave it all the same
            with contextlib.suppress(RuntimeError):  # one that lost a rank may not part well
                self._part.close(rm.Close())
