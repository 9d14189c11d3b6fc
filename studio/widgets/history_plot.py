"""Stacked history of the last 60 s: milliseconds per frame of each stage, and the frame's budget.

Painted by hand with width-1 pens and a fixed range; refreshed a few times a second by its owner.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.clock import FPS
from studio import theme

BUDGET_MS = 1000 / FPS  # a frame that takes longer makes the picture late
TOPS_MS = (10, 20, 50, 100, 200, 500, 1000)  # ranges of the axis: steps, so that it stays still
SPAN_S = 60
LABEL_PX, LABEL_GAP = 10, 6


def top_for(highest_ms: float) -> int:
    """The smallest range that holds `highest_ms`."""
    return next((top for top in TOPS_MS if highest_ms <= top), TOPS_MS[-1])


def axis_label(ms: int, top_ms: int) -> str:
    """The unit at the top alone."""
    return f"{ms} ms" if ms == top_ms else str(ms)


class HistoryPlot(QWidget):
    """`show_stacks({stage: [bins] ms})`, oldest first; colours from the theme."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.stacks: dict[str, np.ndarray] = {}
        self.top_ms = TOPS_MS[1]
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("History of stage times, last 60 seconds")

    def sizeHint(self) -> QSize:
        return QSize(220, 124)

    def show_stacks(self, stacks: dict[str, np.ndarray]) -> None:
        self.stacks = stacks
        sums = sum(stacks.values(), np.zeros(1))
        self.top_ms = max(top_for(float(np.max(sums)) * 1.05), TOPS_MS[1])
        self.update()

    def plot_rect(self) -> QRectF:
        """Where the stacks are drawn. Room beside it for the widest label of any range, so that
        none is cut off and the plot stays where it is when the range changes."""
        metrics = QFontMetricsF(theme.font(LABEL_PX))
        room = metrics.horizontalAdvance(axis_label(TOPS_MS[-1], TOPS_MS[-1])) + 2
        return QRectF(0, 7, self.width() - LABEL_GAP - room, self.height() - 25)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        plot = self.plot_rect()
        self._paint_axes(painter, plot)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        base: np.ndarray | None = None
        for stage, values in self.stacks.items():
            base = np.zeros(len(values)) if base is None else base
            if values.any():
                painter.setBrush(theme.QColor(theme.STAGE_COLORS.get(stage, "#888888")))
                painter.drawPolygon(self._band(plot, base, base + values))
            base = base + values
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self._paint_budget(painter, plot)
        if base is None or not base.any():
            painter.setFont(theme.font(12))
            painter.setPen(theme.color("faint"))
            painter.drawText(
                plot, int(Qt.AlignmentFlag.AlignCenter), "Timings appear once it talks"
            )

    def _band(self, plot: QRectF, low: np.ndarray, high: np.ndarray) -> QPolygonF:
        xs = plot.left() + plot.width() * (np.arange(len(low)) + 0.5) / len(low)
        scale = plot.height() / self.top_ms
        upper = plot.bottom() - np.minimum(high, self.top_ms) * scale
        lower = plot.bottom() - np.minimum(low, self.top_ms) * scale
        outline = [QPointF(x, y) for x, y in zip(xs, upper, strict=True)]
        outline += [QPointF(x, y) for x, y in zip(xs[::-1], lower[::-1], strict=True)]
        return QPolygonF(outline)

    def _paint_axes(self, painter: QPainter, plot: QRectF) -> None:
        painter.setFont(theme.font(LABEL_PX))
        for ms in (0, self.top_ms // 2, self.top_ms):
            y = plot.bottom() - plot.height() * ms / self.top_ms
            painter.setPen(QPen(theme.color("line"), 1))
            painter.drawLine(QLineF(plot.left(), y, plot.right(), y))
            painter.setPen(theme.color("faint"))
            left = plot.right() + LABEL_GAP
            box = QRectF(left, y - 7, self.width() - left, 14)
            painter.drawText(box, int(theme.ALIGN_LEFT), axis_label(ms, self.top_ms))
        for seconds in (SPAN_S, SPAN_S // 2, 0):
            x = plot.right() - plot.width() * seconds / SPAN_S
            align = {SPAN_S: Qt.AlignmentFlag.AlignLeft, 0: Qt.AlignmentFlag.AlignRight}
            flag = align.get(seconds, Qt.AlignmentFlag.AlignHCenter)
            left = {SPAN_S: x, 0: x - 60}.get(seconds, x - 30)
            text = f"{seconds} s ago" if seconds else "now"
            painter.drawText(QRectF(left, plot.bottom() + 3, 60, 14), int(flag), text)

    def _paint_budget(self, painter: QPainter, plot: QRectF) -> None:
        if self.top_ms < BUDGET_MS:
            return
        y = plot.bottom() - plot.height() * BUDGET_MS / self.top_ms
        line = QLineF(plot.left(), y, plot.right(), y)
        painter.setPen(QPen(theme.color("surface"), 3))  # sets it off from the stacks
        painter.drawLine(line)
        painter.setPen(QPen(theme.color("warning"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(line)
