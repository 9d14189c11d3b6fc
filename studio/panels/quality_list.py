"""The list of runs, a row a configuration, with how it did or how far it is.

Shows Sides; knows nothing of where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QSizePolicy, QWidget

from studio.qa_runs import Side, headline

DATA = Qt.ItemDataRole.UserRole


class RunList(QListWidget):
    """`chosen(Side or None)` when another row is current."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Runs")
        self.setToolTip("Finished and unfinished runs, the newest first")
        self.currentItemChanged.connect(
            lambda item, _: self.chosen.emit(item.data(DATA) if item is not None else None)
        )

    @property
    def sides(self) -> list[Side]:
        return [self.item(row).data(DATA) for row in range(self.count())]

    def show_sides(self, sides: Sequence[Side], wanted: str) -> None:
        """Replace all rows; `wanted` is the argument or the folder of the one to choose."""
        self.blockSignals(True)
        self.clear()
        for side in sides:
            item = QListWidgetItem(run_line(side))
            item.setData(DATA, side)
            item.setToolTip(str(side.folder))
            self.addItem(item)
        self.blockSignals(False)
        row = next((i for i, s in enumerate(sides) if wanted in (s.argument, str(s.folder))), 0)
        self.setCurrentRow(row if sides else -1)
        if not sides:
            self.chosen.emit(None)

    def refresh(self, folder: str) -> None:
        """How far the run in `folder` is now."""
        for row, side in enumerate(self.sides):
            if str(side.folder) == folder:
                self.item(row).setText(run_line(side))


def run_line(side: Side) -> str:
    """The run's name and its mean score, or how many of its clips are done."""
    results = side.refresh()
    mean = headline(results.values())
    score = f"{mean:.2f}" if mean is not None else "no score"
    state = score if len(results) == len(side.jobs) else f"{len(results)} of {len(side.jobs)}"
    return f"{side.name}  ·  {state}"
