"""Help: the sheet of shortcuts, the machine check's table, and what this program is.

The sheet is the action table itself, so it cannot be out of date.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from studio import actions
from studio.error_dialog import versions
from studio.widgets.buttons import label, plain, restyle

COLUMNS = (("File", "Edit"), ("Voice", "Record"), ("View", "Tools", "Help"))
WIDGET_KEYS = (
    ("Tab", "Next control"),
    ("Space", "Press the control in focus"),
    ("← →", "Scrub the audio file"),
    ("Arrows + −", "Move and zoom the framing"),
)


class Sheet(QDialog):
    """A dialog with a heading, a body and a close button; Esc closes it."""

    def __init__(self, title: str, body: QWidget, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(body)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        close = plain("Close", "Close this sheet (Esc)", role="primary")
        close.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 18, 18)
        column.setSpacing(14)
        column.addWidget(label(title, "heading"))
        column.addWidget(scroll, 1)
        column.addLayout(row)


def shortcuts(parent: QWidget | None) -> Sheet:
    body = QWidget()
    row = QHBoxLayout(body)
    row.setContentsMargins(0, 0, 6, 0)
    row.setSpacing(36)
    for menus in COLUMNS:
        column = QVBoxLayout()
        column.setSpacing(6)
        for menu in menus:
            rows = [r for r in actions.TABLE if r.menu == menu]
            _group(column, menu, [(actions.keys(r.shortcut), r.text.rstrip("…")) for r in rows])
        if "File" in menus:
            _group(column, "Controls", list(WIDGET_KEYS))
        column.addStretch(1)
        row.addLayout(column, 1)
    made = Sheet("Keyboard shortcuts", body, parent)
    made.resize(1080, 690)
    return made


def _group(column: QVBoxLayout, title: str, rows: list[tuple[str, str]]) -> None:
    column.addSpacing(6)
    column.addWidget(label(title.upper(), "section"))
    for keys, text in rows:
        line = QHBoxLayout()
        words = label(text, "soft")
        words.setWordWrap(True)
        line.addWidget(words, 1)
        line.addWidget(label(keys, "key"))
        column.addLayout(line)


def doctor(rows: list[tuple[str, str, str, str]], parent: QWidget | None) -> Sheet:
    """What the machine has and lacks; rows are (what, ok | missing | warning, found, remedy)."""
    body = QWidget()
    grid = QGridLayout(body)
    grid.setContentsMargins(0, 0, 6, 0)
    grid.setHorizontalSpacing(18)
    grid.setVerticalSpacing(8)
    grid.setColumnStretch(3, 1)
    tones = {"ok": "live", "warning": "warning", "missing": "danger"}
    for number, (what, state, found, remedy) in enumerate(rows):
        mark = label(state)
        restyle(mark, tones.get(state, ""))
        for column, widget in enumerate((label(what), mark, label(found, "soft"), label(remedy))):
            widget.setWordWrap(column >= 2)
            grid.addWidget(widget, number, column, Qt.AlignmentFlag.AlignTop)
    grid.setRowStretch(len(rows), 1)
    made = Sheet("This machine", body, parent)
    made.resize(860, 560)
    return made


def about(parent: QWidget | None) -> Sheet:
    body = QWidget()
    column = QVBoxLayout(body)
    column.setContentsMargins(0, 0, 6, 0)
    column.setSpacing(14)
    text = (
        "One picture and one voice become a talking face, live, at 24 frames a second. "
        "Free software under the Apache License 2.0; fonts: Inter (SIL Open Font License); "
        "starter characters carry their own licences, shown in the library."
    )
    words = label(text, "soft")
    words.setWordWrap(True)
    column.addWidget(words)
    grid = QGridLayout()
    grid.setHorizontalSpacing(18)
    grid.setColumnStretch(1, 1)
    for number, (what, found) in enumerate(versions()):
        grid.addWidget(label(what, "caption"), number, 0)
        grid.addWidget(label(found), number, 1)
    column.addLayout(grid)
    column.addStretch(1)
    made = Sheet("Avatar Studio", body, parent)
    made.resize(520, 480)
    return made
