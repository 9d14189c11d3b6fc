"""Comparisons and reports asked of `avatar-qa`, one at a time; of several comparisons asked for
meanwhile only the last is made.

Knows nothing of what is done with the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from engine.qa.report import Comparison
from studio.qa_process import QaProcess
from studio.qa_runs import Side

Pair = tuple[Side, Side]

REPORT_SAYS = "pictures of "


class QaAnswers(QObject):
    """`refused(why)` comes instead of `compared` (compare) or `report_failed` (report)."""

    compared = Signal(object, object, object)  # Comparison, A, B
    refused = Signal(str)
    reported = Signal(object)  # the page's Path
    report_failed = Signal(str)
    report_said = Signal(str)  # how far the report is, in words

    def __init__(self, command: Sequence[str] | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.process = QaProcess(command, self)
        self.process.ended.connect(self._on_ended)
        self.process.said.connect(self._on_said)
        self._pair: Pair | None = None  # under way; None: a report is
        self._next: Pair | None = None

    @property
    def is_busy(self) -> bool:
        return self.process.is_running

    def compare(self, a: Side, b: Side) -> None:
        if self.is_busy:
            self._next = (a, b)
            return
        self._pair, self._next = (a, b), None
        self.process.start(["compare", a.argument, b.argument, "--json"])

    def forget(self) -> None:
        """Nobody waits for a comparison any more."""
        self._next = None

    def report(self, side: Side, baseline: Side | None) -> bool:
        """False while something else is under way."""
        if self.is_busy:
            return False
        self._pair = None
        more = ["--baseline", baseline.argument] if baseline is not None else []
        self.process.start(["report", side.argument, *more, "--json"])
        return True

    def _on_said(self, line: str) -> None:
        if self._pair is None and line.startswith(REPORT_SAYS):
            self.report_said.emit(line)

    def _on_ended(self, _status: int, out: str, why: str) -> None:
        pair = self._pair
        if self._next is not None:
            self.compare(*self._next)
        if pair is None:
            self._tell_report(out, why)
        elif why:
            self.refused.emit(why)
        else:
            self._tell_comparison(out, pair)

    def _tell_comparison(self, out: str, pair: Pair) -> None:
        try:
            found = msgspec.json.decode(out, type=Comparison)
        except msgspec.DecodeError as error:
            self.refused.emit(f"the comparison cannot be read: {error}")
        else:
            self.compared.emit(found, *pair)

    def _tell_report(self, out: str, why: str) -> None:
        try:
            page = "" if why else msgspec.json.decode(out)["page"]
        except (msgspec.DecodeError, KeyError, TypeError):
            why, page = "the report was not written", ""
        if why:
            self.report_failed.emit(why)
        else:
            self.reported.emit(Path(page))
