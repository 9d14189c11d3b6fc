"""`avatar-qa` as a child process: started with low priority, its progress lines read, stopped.

The studio measures nothing itself: what the panel shows is what the command wrote. Stopping is
Ctrl-C, so that what is done stays done. Knows nothing of runs or widgets.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QProcess, QTimer, Signal

NICENESS = "10"
STOP_MS = 6_000  # for ending the workers; then it is killed
PROGRESS = re.compile(
    r"(?P<done>\d+) of (?P<total>\d+)(?:, (?P<failed>\d+) failed)?, (?P<rate>[\d.]+) a minute, "
    r"(?P<left>[^:]+ left)"
)
STOPPED, FAILED = 130, 2
GOOD = (0, 1)  # 1: it fell short, and says so in its answer


@dataclass(frozen=True, slots=True)
class Progress:
    """As the command says it; `rate` in clips a minute."""

    done: int
    total: int
    failed: int
    rate: float
    left: str


def qa_command() -> list[str]:
    """How this studio runs `avatar-qa`; with low priority where the system has `nice`."""
    nice = shutil.which("nice")
    low = [nice, "-n", NICENESS] if nice else []
    return [*low, sys.executable, "-m", "engine.qa"]


class QaProcess(QObject):
    """One command at a time. `ended(status, stdout, why)`: `why` is a line when it went wrong."""

    progressed = Signal(object)  # Progress
    said = Signal(str)  # any other line of stderr
    ended = Signal(int, str, str)

    def __init__(self, command: Sequence[str] | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = list(command or qa_command())
        self._tail = ""
        self._last = ""
        self._cancelled = False
        self.is_running = False
        self._process = QProcess(self)  # one for good: it can be started again
        self._process.readyReadStandardError.connect(self._read)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)
        self._overdue = QTimer(self)
        self._overdue.setSingleShot(True)
        self._overdue.timeout.connect(self._process.kill)

    def start(self, arguments: Sequence[str]) -> None:
        assert not self.is_running, "one command at a time"
        self._tail = self._last = ""
        self._cancelled = False
        self.is_running = True
        program, *rest = [*self._command, *arguments]
        self._process.start(program, rest)

    def cancel(self) -> None:
        """Stop as Ctrl-C does; killed when it does not heed that."""
        pid = self._process.processId()
        if not self.is_running or pid <= 0:
            return
        self._cancelled = True
        if sys.platform == "win32":
            self._process.kill()
            return
        os.kill(pid, signal.SIGINT)
        self._overdue.start(STOP_MS)

    def shut_down(self) -> None:
        """The studio closes: nothing is left behind, and nothing is announced."""
        if not self.is_running:
            return
        self.blockSignals(True)
        self.cancel()
        if not self._process.waitForFinished(STOP_MS):
            self._process.kill()
            self._process.waitForFinished(1_000)
        self.blockSignals(False)

    def _read(self) -> None:
        text = self._tail + bytes(self._process.readAllStandardError().data()).decode(
            errors="replace"
        )
        *lines, self._tail = re.split(r"[\r\n]", text)
        for line in filter(None, (part.strip() for part in lines)):
            self._last = line
            found = parse_progress(line)
            if found is None:
                self.said.emit(line)
            else:
                self.progressed.emit(found)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._last = f"{self._command[0]} cannot be started"
            self._finish(FAILED)

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._finish(code if status is QProcess.ExitStatus.NormalExit else FAILED)

    def _finish(self, code: int) -> None:
        if not self.is_running:
            return
        self._overdue.stop()
        self._read()
        out = bytes(self._process.readAllStandardOutput().data()).decode(errors="replace")
        self.is_running = False
        if self._cancelled:
            code, why = STOPPED, ""
        else:
            why = "" if code in GOOD else self._why(code)
        self.ended.emit(code, out, why)

    def _why(self, code: int) -> str:
        line = (self._tail.strip() or self._last).removeprefix("avatar-qa: ")
        return line or f"avatar-qa ended with status {code}"


def parse_progress(line: str) -> Progress | None:
    """A progress line's figures, or None for any other line."""
    found = PROGRESS.match(line)
    if found is None:
        return None
    return Progress(
        int(found["done"]), int(found["total"]), int(found["failed"] or 0),
        float(found["rate"]), found["left"],
    )  # fmt: skip
