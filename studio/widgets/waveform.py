"""Waveform of an audio file with the played part coloured; click, drag or arrow keys scrub.

Shows what `overview` columns it is given; knows nothing of files or devices.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.clock import SAMPLE_RATE
from studio import theme

STEP_SAMPLES = SAMPLE_RATE  # an arrow key moves one second
COLUMNS = 400  # asked of the overview once; drawn at any width


def clock_text(samples: int) -> str:
    """Samples at 48 kHz as m:ss.t"""
    seconds = samples / SAMPLE_RATE
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


class Waveform(QWidget):
    """`sought(sample)` when a person moves the position; `set_position` when the sound does."""

    sought = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._low = np.zeros(0, np.float32)
        self._high = np.zeros(0, np.float32)
        self.duration = 0
        self.position = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName("Position in the audio file")
        self.setToolTip("Click, drag or use the arrow keys to move in the file")

    def sizeHint(self) -> QSize:
        return QSize(220, 56)

    def show_file(self, low: np.ndarray, high: np.ndarray, duration: int) -> None:
        """Lowest and highest sample per column [columns] in -1..1, and the length in samples."""
        self._low, self._high, self.duration = low, high, duration
        self.set_position(0)

    def set_position(self, sample: int) -> None:
        self.position = min(max(sample, 0), self.duration)
        self.setAccessibleDescription(f"{clock_text(self.position)} of {clock_text(self.duration)}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        border = theme.color("accent") if self.hasFocus() else theme.color("line")
        painter.setPen(QPen(border, 1))
        painter.setBrush(theme.color("window"))
        painter.drawRoundedRect(box, 6, 6)
        inner = box.adjusted(8, 6, -8, -6)
        if self.duration <= 0 or not len(self._low):
            painter.setPen(QPen(theme.color("outline"), 1))
            painter.drawLine(
                QLineF(inner.left(), box.center().y(), inner.right(), box.center().y())
            )
            return
        self._paint_wave(painter, inner)

    def _paint_wave(self, painter: QPainter, inner: QRectF) -> None:
        bars = max(int(inner.width() // 3), 1)
        played = self.position / self.duration
        peak = max(float(np.abs(self._high).max()), float(np.abs(self._low).max()), 0.05)
        groups = np.linspace(0, len(self._high), bars + 1).astype(int)
        middle, half = inner.center().y(), inner.height() / 2
        lines: dict[bool, list[QLineF]] = {True: [], False: []}
        for i in range(bars):
            part = slice(groups[i], max(groups[i + 1], groups[i] + 1))
            up = max(float(self._high[part].max()) / peak * half, 0.75)
            down = max(-float(self._low[part].min()) / peak * half, 0.75)
            x = inner.left() + (i + 0.5) * inner.width() / bars
            lines[(i + 0.5) / bars <= played].append(QLineF(x, middle - up, x, middle + down))
        for past, tone in ((False, "outline"), (True, "accent")):
            pen = QPen(theme.color(tone), 1.6)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            painter.drawLines(lines[past])
        x = inner.left() + played * inner.width()
        painter.fillRect(
            QRectF(x - 0.75, inner.top() - 3, 1.5, inner.height() + 6), theme.color("text")
        )

    def _seek(self, sample: int) -> None:
        if self.duration > 0:
            self.set_position(sample)
            self.sought.emit(self.position)

    def _seek_to(self, x: float) -> None:
        self._seek(round((x - 8) / max(self.width() - 16, 1) * self.duration))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._seek_to(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._seek_to(event.position().x())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: self.position - STEP_SAMPLES,
            Qt.Key.Key_Right: self.position + STEP_SAMPLES,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: self.duration,
        }
        if event.key() in moves:
            self._seek(moves[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)
