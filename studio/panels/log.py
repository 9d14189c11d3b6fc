"""Log panel: the last 2,000 lines of engine and studio, by level and text; copy and save.

Knows nothing of where lines come from.
"""

from __future__ import annotations

import html
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from studio import theme
from studio.widgets.buttons import plain, tool

KEEP = 2_000  # lines; older ones go
LEVELS = ("debug", "info", "warning", "error")
TONES = {"debug": "faint", "info": "soft", "warning": "warning", "error": "danger"}


@dataclass(frozen=True, slots=True)
class Line:
    at: str  # local time, h:mm:ss
    level: str
    source: str
    text: str

    def plain(self) -> str:
        return f"{self.at}  {self.level:<7}  {self.source:<8}  {self.text}"

    def markup(self) -> str:
        body = html.escape(self.plain()).replace("  ", "&nbsp;&nbsp;")
        return f'<span style="color:{theme.COLORS[TONES[self.level]]}">{body}</span>'


class LogPanel(QWidget):
    """`add` a line; what the filter hides is kept and comes back."""

    def __init__(self, actions: dict[str, QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: deque[Line] = deque(maxlen=KEEP)
        self.level = QComboBox()
        self.filter = QLineEdit()
        self.view = QPlainTextEdit()
        self.copy = plain("Copy", "Copy the lines shown", "copy")
        self.clear = plain("Clear", "Forget all lines", "close")
        self._build(actions)
        self.level.currentIndexChanged.connect(self._refill)
        self.filter.textChanged.connect(self._refill)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text()))
        self.clear.clicked.connect(self._clear)

    def add(self, level: str, source: str, text: str) -> None:
        level = level if level in LEVELS else "info"
        line = Line(time.strftime("%H:%M:%S"), level, source, text.rstrip())
        self.lines.append(line)
        if self._shown(line):
            self.view.appendHtml(line.markup())

    def text(self) -> str:
        """The lines that the filter lets through, as plain text."""
        return "\n".join(line.plain() for line in self.lines if self._shown(line))

    def save(self, path: Path) -> None:
        path.write_text("\n".join(line.plain() for line in self.lines) + "\n", encoding="utf-8")

    def _shown(self, line: Line) -> bool:
        wanted = self.filter.text().lower()
        high_enough = LEVELS.index(line.level) >= self.level.currentIndex()
        return high_enough and wanted in line.plain().lower()

    def _refill(self) -> None:
        self.view.clear()
        for line in self.lines:
            if self._shown(line):
                self.view.appendHtml(line.markup())

    def _clear(self) -> None:
        self.lines.clear()
        self.view.clear()

    def _build(self, actions: dict[str, QAction]) -> None:
        self.level.addItems(["Everything", "Info and worse", "Warnings and errors", "Errors"])
        self.level.setCurrentIndex(1)
        self.level.setAccessibleName("Lowest level shown")
        self.level.setToolTip("Lowest level shown")
        self.filter.setPlaceholderText("Filter")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Filter of the log")
        self.filter.setToolTip("Show only lines that contain this text")
        self.view.setReadOnly(True)
        self.view.setMaximumBlockCount(KEEP)
        self.view.setFont(theme.QFont(theme.MONO, 9))
        self.view.setAccessibleName("Log")
        self.view.setToolTip("What engine and studio report")
        self.view.setMinimumHeight(60)
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self.filter, 1)
        row.addWidget(self.level)
        for widget in (self.copy, tool(actions["save_log"], role=""), self.clear):
            row.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(self.view, 1)
