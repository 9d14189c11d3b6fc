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
STOPPED = 130
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
        self._process: QProcess | None = None
        self._tail = ""
        self._last = ""
        self._cancelled = False

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self, arguments: Sequence[str]) -> None:
        assert self._process is None, "one command at a time"
        self._process = process = QProcess(self)
        self._tail = self._last = ""
        self._cancelled = False
        process.readyReadStandardError.connect(self._read)
        process.finished.connect(lambda code, _status: self._finish(code))
        process.errorOccurred.connect(self._on_error)
        program, *rest = [*self._command, *arguments]
        process.start(program, rest)

    def cancel(self) -> None:
        """Stop as Ctrl-C does; killed when it does not heed that."""
        process = self._process
        if process is None or process.processId() <= 0:
            return
        self._cancelled = True
        if sys.platform == "win32":
            process.kill()
            return
        os.kill(process.processId(), signal.SIGINT)
        QTimer.singleShot(STOP_MS, process, process.kill)

    def shut_down(self) -> None:
        """The studio closes: nothing is left behind, and nothing is announced."""
        process = self._process
        if process is None:
            return
        process.blockSignals(True)
        self.cancel()
        if not process.waitForFinished(STOP_MS):
            process.kill()
            process.waitForFinished(1_000)
        self._process = None

    def _read(self) -> None:
        if self._process is None:
            return
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
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._last = f"{self._command[0]} cannot be started"
            self._finish(2)

    def _finish(self, code: int) -> None:
        process = self._process
        if process is None:
            return
        self._read()
        out = bytes(process.readAllStandardOutput().data()).decode(errors="replace")
        self._process = None
        process.deleteLater()
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
