"""The status bar's parts: a coloured dot with a word, and plain figures.

Knows nothing of what is being told.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from studio import theme


class Dot(QWidget):
    """A dot in a theme colour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tone = "disabled"
        self.setFixedSize(QSize(10, 10))

    def set_tone(self, tone: str) -> None:
        self.tone = tone
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(self.tone))
        painter.drawEllipse(QRectF(self.rect()).adjusted(1, 1, -1, -1))


class StatusLine(QWidget):
    """`say(text, tone)`; the text is also the accessible name."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self.dot = Dot()
        self.text = QLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.setSpacing(4)
        row.addWidget(self.dot)
        row.addWidget(self.text)

    def say(self, text: str, tone: str) -> None:
        self.text.setText(text)
        self.dot.set_tone(tone)
        self.setAccessibleName(f"{self._name}: {text}")
