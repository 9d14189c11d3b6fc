"""Level meter: loudness bar from -60 to 0 dBFS with peak hold, gate mark and a clip lamp.

Knows nothing of devices; whoever measures calls `set_level`.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QLinearGradient, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio import theme

FLOOR_DB = -60.0
CLIP_DB = -0.1
PEAK_HOLD_NS = 1_200_000_000
CLIP_HOLD_NS = 2_000_000_000
TICKS_DB = (-60, -40, -20, -6, 0)


def fraction(db: float) -> float:
    """Place of a level on the bar, 0 at -60 dBFS and below, 1 at 0 dBFS and above."""
    return min(max((db - FLOOR_DB) / -FLOOR_DB, 0.0), 1.0)


class LevelMeter(QWidget):
    """`level_db`, `peak_db` and `clipped` are what is shown now."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.level_db = self.peak_db = -120.0
        self.gate_db = -100.0
        self.gate_open = False
        self.clipped = False
        self._peak_ns = self._clip_ns = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Microphone level")

    def sizeHint(self) -> QSize:
        return QSize(220, 30)

    def set_level(
        self, rms_db: float, peak_db: float, gate_open: bool, now_ns: int | None = None
    ) -> None:
        """About 20 times a second; `now_ns` is time.monotonic_ns()."""
        now = time.monotonic_ns() if now_ns is None else now_ns
        self.level_db, self.gate_open = rms_db, gate_open
        if peak_db >= self.peak_db or now - self._peak_ns > PEAK_HOLD_NS:
            self.peak_db, self._peak_ns = peak_db, now
        if peak_db >= CLIP_DB:
            self._clip_ns = now
        self.clipped = bool(self._clip_ns) and now - self._clip_ns < CLIP_HOLD_NS
        spoken = "clipping" if self.clipped else f"{max(rms_db, FLOOR_DB):.0f} decibels"
        self.setAccessibleDescription(spoken)
        self.update()

    def set_gate_db(self, db: float) -> None:
        self.gate_db = db
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bar = QRectF(0, 4, self.width() - 18, 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("hover"))
        painter.drawRoundedRect(bar, 4, 4)
        self._paint_level(painter, bar)
        self._paint_marks(painter, bar)
        lamp = "danger" if self.clipped else "hover"
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(lamp))
        painter.drawEllipse(QPointF(self.width() - 6, bar.center().y()), 5.0, 5.0)

    def _paint_level(self, painter: QPainter, bar: QRectF) -> None:
        if not self.isEnabled():
            return
        glow = QLinearGradient(bar.topLeft(), bar.topRight())
        glow.setColorAt(0.0, theme.color("live"))
        glow.setColorAt(fraction(-14), theme.color("live"))
        glow.setColorAt(fraction(-6), theme.color("warning"))
        glow.setColorAt(fraction(-1), theme.color("danger"))
        filled = QRectF(bar.topLeft(), bar.bottomRight())
        filled.setWidth(bar.width() * fraction(self.level_db))
        painter.setOpacity(1.0 if self.gate_open else 0.35)
        painter.setBrush(glow)
        if filled.width() >= 1:
            painter.drawRoundedRect(filled, min(4.0, filled.width() / 2), 4)
        painter.setOpacity(1.0)
        if self.peak_db > FLOOR_DB:
            x = bar.left() + bar.width() * fraction(self.peak_db)
            painter.fillRect(QRectF(min(x, bar.right() - 2), bar.top(), 2, 8), theme.color("text"))

    def _paint_marks(self, painter: QPainter, bar: QRectF) -> None:
        painter.setFont(theme.font(10))
        painter.setPen(theme.color("faint"))
        for db in TICKS_DB:
            x = bar.left() + bar.width() * fraction(db)
            box = QRectF(x - 15, bar.bottom() + 3, 30, 14)
            flags = Qt.AlignmentFlag.AlignHCenter
            if db == TICKS_DB[0]:
                box, flags = QRectF(x, box.top(), 30, 14), Qt.AlignmentFlag.AlignLeft
            painter.drawText(box, int(flags | Qt.AlignmentFlag.AlignVCenter), str(db))
        if self.gate_db > FLOOR_DB:
            x = bar.left() + bar.width() * fraction(self.gate_db)
            painter.fillRect(QRectF(x - 1, bar.top() - 3, 2, 14), theme.color("accent"))
