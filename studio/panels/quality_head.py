"""Head of the quality window: which run, how it did, its baseline, how far it is, what can be done.

Widgets only; the window connects them and says what they show.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from studio.qa_process import Progress
from studio.widgets.buttons import label, plain
from studio.widgets.elided_label import ElidedLabel
from studio.widgets.note import Note

START = "Start one on the left: it renders and scores in the background."


class QualityHead(QWidget):
    """Buttons `cancel`, `resume`, `retry`, `send`, `report`; the box `against`; the `note`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = ElidedLabel()
        self.title.setProperty("role", "heading")
        self.words = label(START, "soft")
        self.words.setWordWrap(True)
        self.progress = QProgressBar()
        self.progress.setAccessibleName("Progress of the run")
        self.progress.setToolTip("Clips that are done")
        self.pace = label("", "caption")
        self.note = Note()
        self.against = QComboBox()
        self.against.setAccessibleName("Baseline")
        self.against.setToolTip("The run that this one is compared with and played against")
        self.against.setMinimumContentsLength(16)
        self.cancel = plain("Stop", "Stop the run; what is done stays, Resume goes on", "stop")
        self.resume = plain("Resume", "Go on with the clips that are not done", role="primary")
        self.retry = plain("Run clip again", "Render and score the selected clip anew", "reset")
        self.report = plain("Report", "Write the report and open it in the browser", "export")
        self.send = plain(
            "To viewer", "Open this clip's character and voice in the viewer", "character"
        )
        self._build()

    def _build(self) -> None:
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self.title, 1)
        for button in (self.cancel, self.resume, self.retry, self.send, self.report):
            first.addWidget(button)
        second = QHBoxLayout()
        second.setSpacing(8)
        second.addWidget(self.words, 1)
        second.addWidget(label("A, the baseline", "soft"))
        second.addWidget(self.against)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 0, 14, 0)
        column.setSpacing(6)
        column.addLayout(first)
        column.addLayout(second)
        column.addWidget(self.progress)
        column.addWidget(self.pace)
        column.addWidget(self.note)

    def starting(self, run: str) -> None:
        self.progress.setRange(0, 0)
        self.pace.setText(f"{run}: starting…")

    def show_progress(self, found: Progress, folder: Path) -> None:
        self.progress.setRange(0, found.total)
        self.progress.setValue(found.done)
        failed = f" · {found.failed} failed" if found.failed else ""
        self.pace.setText(
            f"{folder.name}: {found.done} of {found.total} clips{failed} · "
            f"{found.rate:g} a minute · {found.left}"
        )
