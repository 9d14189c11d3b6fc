"""When a worker counts as dead or hung, and how often it may be restarted.

Pure: times are arguments. Knows nothing of processes or sockets.
"""

from __future__ import annotations

from collections import deque

READY_TIMEOUT_S = 30.0  # from start to WorkerReady: imports from a cold disk
SILENT_S = 2.5  # no heartbeat (two a second): its link thread is stuck; noticed within 3 s
HUNG_STEP_S = 10.0  # one step of generator or decoder; a first step on a GPU compiles for longer
HUNG_FIRST_STEP_S = 300.0
HUNG_JOB_S = 900.0  # loading a character: large models read their weights meanwhile
RESTARTS = 5  # within RESTART_WINDOW_S, then the session fails
RESTART_WINDOW_S = 60.0


class Liveness:
    """What is known of one worker's life; `verdict` says why it has to be replaced."""

    def __init__(self, now: float, ready_timeout_s: float = READY_TIMEOUT_S) -> None:
        self._started = self._last_beat = now
        self._ready_timeout_s = ready_timeout_s
        self.ready = False
        self._stepped = False  # a chunk was finished: steps are fast from now on
        self._busy_s: dict[str, float] = {}

    def was_ready(self, now: float) -> None:
        self.ready = True
        self._last_beat = now

    def heard(self, now: float, busy_s: dict[str, float]) -> None:
        self._last_beat = now
        self._busy_s = busy_s

    def finished_chunk(self) -> None:
        self._stepped = True

    @property
    def busy(self) -> bool:
        return any(s > 0 for s in self._busy_s.values())

    def verdict(self, now: float, silent_s: float = SILENT_S) -> str:
        """Empty while it lives; else what is wrong, for a person."""
        if not self.ready:
            waited = now - self._started
            return f"not ready after {waited:.0f} s" if waited > self._ready_timeout_s else ""
        if now - self._last_beat > silent_s:
            return f"no heartbeat for {now - self._last_beat:.1f} s"
        step = HUNG_STEP_S if self._stepped else HUNG_FIRST_STEP_S
        for thread, seconds in self._busy_s.items():
            limit = HUNG_JOB_S if thread == "jobs" else step
            if seconds > limit:
                return f"{thread} step has run for {seconds:.0f} s (limit {limit:.0f} s)"
        return ""


class RestartBudget:
    """`spend` returns False when a worker has died too often to try again."""

    def __init__(self, restarts: int = RESTARTS, window_s: float = RESTART_WINDOW_S) -> None:
        self._restarts, self._window_s = restarts, window_s
        self._deaths: deque[float] = deque()

    def spend(self, now: float) -> bool:
        self._deaths.append(now)
        while now - self._deaths[0] > self._window_s:
            self._deaths.popleft()
        return len(self._deaths) <= self._restarts
