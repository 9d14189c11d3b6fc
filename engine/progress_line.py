"""One line of progress on stderr: rewritten in a terminal, seldom repeated in a log file.

Knows nothing of what makes progress.
"""

from __future__ import annotations

import sys
import time

from engine.clock import FPS

EVERY_S = 0.5  # in a terminal
EVERY_LOG_S = 5.0  # anywhere else: each report is a line that stays


class ProgressLine:
    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._last = 0.0
        self._width = 0

    def say(self, fraction: float, what: str) -> None:
        """Per cent of a step that has a name."""
        self.show(f"{100 * fraction:3.0f} % {what}")

    def frames(self, done: int, duration_s: float) -> None:
        """Frames of a clip whose length is an estimate, 0 when unknown; with the time left."""
        fraction = min(done / (duration_s * FPS), 1.0) if duration_s else 0.0
        elapsed = time.monotonic() - self._begun
        left = f", {elapsed * (1 / fraction - 1):.0f} s left" if fraction else ""
        self.show(f"{done} frames, {100 * fraction:3.0f} %{left}")

    def show(self, text: str, at_once: bool = False) -> None:
        now = time.monotonic()
        if not at_once and now - self._last < (EVERY_S if self._terminal else EVERY_LOG_S):
            return
        self._last = now
        if self._terminal:
            print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)  # noqa: T201
            self._width = len(text)
        else:
            print(text, file=sys.stderr, flush=True)  # noqa: T201

    def end(self) -> None:
        """What is printed next begins a line of its own."""
        if self._terminal and self._width:
            print(file=sys.stderr)  # noqa: T201
            self._width = 0
