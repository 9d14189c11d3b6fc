"""The local engine as a child process: started, its ready line read, watched, restarted, stopped.

At most RESTARTS times with back-off; an engine that ran for a minute has its count cleared. The
tail of stderr is kept for the log panel. Knows nothing of the wire but the ready line's fields.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from engine.errors import EngineError

RESTARTS = 5
BACK_OFF_S = (0.1, 0.5, 1.0, 2.0, 4.0)
STABLE_S = 60.0
READY_S = 60.0  # a cold start on a slow disk imports torch: 8 s measured on 2 cores
STOP_S = 2.0
TAIL_LINES = 200


@dataclass(frozen=True, slots=True)
class ReadyLine:
    """What the engine says on stdout once it can be talked to."""

    control: str
    token: str
    pid: int


def engine_command() -> list[str]:
    """How this studio starts its engine."""
    return [sys.executable, "-m", "engine", "serve", "--parent-pid", str(os.getpid()), "--json"]


class EngineProcess:
    """`start` once; `on_ready`, `on_restart(why)`, `on_failed(error)`, `on_line(text)` are called
    on the watcher's thread."""

    def __init__(
        self, on_ready: Callable[[ReadyLine], None], on_restart: Callable[[str], None],
        on_failed: Callable[[EngineError], None], on_line: Callable[[str], None],
        command: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self._on_ready = on_ready
        self._on_restart = on_restart
        self._on_failed = on_failed
        self._on_line = on_line
        self._command = list(command or engine_command())
        self.arguments: list[str] = []  # added to the command at the next start
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.restarts = 0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="engine-process", daemon=True)
        self._thread.start()

    def restart(self) -> None:
        """End the engine; the watcher starts it again (a person asked for it)."""
        self.restarts = 0
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Ask, wait, then kill. Idempotent; no engine is left behind."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread is not None:
            self._thread.join(STOP_S)

    # --- watcher's thread -----------------------------------------------------------------------
    def _watch(self) -> None:
        try:
            while not self._stopping.is_set():
                started = time.monotonic()
                why = self._run_once()
                if self._stopping.is_set():
                    return
                if time.monotonic() - started > STABLE_S:
                    self.restarts = 0
                if self.restarts >= RESTARTS:
                    self._give_up(why)
                    return
                pause_s = BACK_OFF_S[min(self.restarts, len(BACK_OFF_S) - 1)]
                self.restarts += 1
                self._on_restart(why)
                self._stopping.wait(pause_s)
        except Exception as error:  # top of the thread
            self._on_failed(EngineError("worker_died", f"the engine cannot be started: {error}"))

    def _run_once(self) -> str:
        """One life of the engine; returns why it ended."""
        try:
            self._process = process = subprocess.Popen(
                [*self._command, *self.arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            return f"{self._command[0]} cannot be started ({error.strerror})"
        assert process.stdout is not None and process.stderr is not None
        errors = threading.Thread(target=self._read_errors, args=(process.stderr,), daemon=True)
        errors.start()
        overdue = threading.Timer(READY_S, process.kill)
        overdue.start()
        try:
            for line in process.stdout:
                ready = parse_ready(line)
                if ready is not None:
                    overdue.cancel()
                    self._on_ready(ready)
        finally:
            overdue.cancel()
        code = process.wait()
        errors.join(1.0)
        process.stdout.close()
        process.stderr.close()
        return self._why(code)

    def _read_errors(self, stderr: IO[str]) -> None:
        try:
            for line in stderr:
                self.tail.append(line.rstrip())
                self._on_line(line.rstrip())
        except ValueError:
            return  # the pipe was closed under us: the process is gone

    def _why(self, code: int) -> str:
        last = next((line for line in reversed(self.tail) if line.strip()), "")
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the engine was {how}" if code < 0 else f"the engine {how}: {last[:200]}"

    def _give_up(self, why: str) -> None:
        self._on_failed(
            EngineError(
                "worker_died", f"{why}; restarted {RESTARTS} times in vain",
                "read the log, run avatar-engine doctor, then restart the engine",
            )
        )  # fmt: skip


def parse_ready(line: str) -> ReadyLine | None:
    """The ready line's fields, or None for any other line."""
    try:
        row = json.loads(line)
        if not (isinstance(row, dict) and row.get("ready") is True):
            return None
        return ReadyLine(
            str(row["endpoints"]["control"]), str(row.get("token", "")), int(row["pid"])
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        return None
