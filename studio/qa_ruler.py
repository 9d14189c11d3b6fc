"""Asks `avatar-qa ruler` why the ruler of a run may be believed; each folder once.

Knows nothing of how the answer is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from engine.qa.report_ruler import Ruler
from studio.qa_process import QaProcess

Key = tuple[str, str]  # folder of the run or "", a validation chosen by a person or ""


class QaRuler(QObject):
    """`answered(Ruler)` or `refused(why)` for what was asked last; older questions are dropped."""

    answered = Signal(object)
    refused = Signal(str)

    def __init__(self, command: Sequence[str] | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.process = QaProcess(command, self)
        self.process.ended.connect(self._on_ended)
        self._known: dict[Key, Ruler] = {}
        self._asked: Key | None = None  # what the child works on
        self._wanted: Key | None = None

    def ask(self, folder: Path | None, validation: Path | None = None) -> None:
        key = (str(folder or ""), str(validation or ""))
        self._wanted = key
        if key in self._known:
            self.answered.emit(self._known[key])
        elif not self.process.is_running:
            self._start(key)

    def _start(self, key: Key) -> None:
        self._asked = key
        folder, validation = key
        words = ["ruler", *([folder] if folder else []), "--json"]
        self.process.start([*words, *(["--validation", validation] if validation else [])])

    def _on_ended(self, _status: int, out: str, why: str) -> None:
        asked, wanted = self._asked, self._wanted
        assert asked is not None
        if not why:
            try:
                self._known[asked] = msgspec.json.decode(out, type=Ruler)
            except msgspec.DecodeError as error:
                why = f"the answer cannot be read: {error}"
        if wanted is not None and wanted != asked:
            self.ask(Path(wanted[0]) if wanted[0] else None, Path(wanted[1]) if wanted[1] else None)
        elif why:
            self.refused.emit(why)
        else:
            self.answered.emit(self._known[asked])
