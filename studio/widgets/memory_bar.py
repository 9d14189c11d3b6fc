"""Bar of what a model needs against the memory that is free; the excess is drawn in another colour.

Knows nothing of models.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio import theme

HEIGHT_PX, THICK_PX = 14, 6
LEAST_PX = 4  # of a need so small that it could not be seen


class MemoryBar(QWidget):
    """`show_need(needs, free)` in bytes; full width is the larger, the mark is `free`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.needs, self.free = 0, 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Memory needed")
        self.setToolTip("What it needs against what is free")

    def sizeHint(self) -> QSize:
        return QSize(160, HEIGHT_PX)

    def show_need(self, needs: int, free: int) -> None:
        self.needs, self.free = max(needs, 0), max(free, 0)
        self.setAccessibleDescription(f"{needs / 2**30:.1f} of {free / 2**30:.1f} GiB")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        whole = max(self.needs, self.free, 1)
        width, top = float(self.width()), (self.height() - THICK_PX) / 2
        need_px = max(width * self.needs / whole, LEAST_PX if self.needs else 0)
        free_px = width * self.free / whole
        self._bar(painter, width, top, "hover")
        fits = self.needs <= self.free
        self._bar(painter, need_px, top, "live" if fits else "danger")
        if not fits:
            self._bar(painter, free_px, top, "warning")
            painter.setBrush(theme.color("text"))
            painter.drawRect(QRectF(free_px - 1, top - 3, 2, THICK_PX + 6))

    def _bar(self, painter: QPainter, width: float, top: float, tone: str) -> None:
        painter.setBrush(theme.color(tone))
        painter.drawRoundedRect(QRectF(0, top, width, THICK_PX), THICK_PX / 2, THICK_PX / 2)
