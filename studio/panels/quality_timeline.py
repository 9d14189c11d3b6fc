"""Timeline of a clip: waveform, phones, opening expected and seen, the second that fits worst.

Click, drag or the arrow keys move the position. Draws what it is given; knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.qa.report import ClipResult, PhoneSpan, Tracks
from studio import theme
from studio.panels.quality_pictures import LIPS

FPS = 24
PAD_X, WAVE_H, PHONES_H, GAP = 10, 36, 20, 6
EXPECTED, SEEN, OTHER = "soft", "accent", "warning"
WORST_S = 1.0


class QualityTimeline(QWidget):
    """`sought(seconds)` and `stepped(frames)` when a person moves; `set_position` is silent."""

    sought = Signal(float)
    stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.length_s = 0.0
        self.position_s = 0.0
        self.phones: Sequence[PhoneSpan] = ()
        self.tracks: Tracks | None = None
        self.other: Tracks | None = None
        self.looping = False
        self.failed = ""
        self._low = self._high = np.zeros(0, np.float32)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Timeline of the clip")
        self.setToolTip(
            "Opening of the mouth: expected from the phones (dashed) and seen in the picture.\n"
            "p, b and m are red: there the lips must meet. Shaded: the second that fits worst.\n"
            "Left and right step one frame, with Shift ten."
        )

    def sizeHint(self) -> QSize:
        return QSize(600, 176)

    def show_clip(
        self, result: ClipResult | None, other: ClipResult | None, length_s: float,
        overview: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:  # fmt: skip
        """`other`: the same clip of the baseline. `overview`: lows and highs of the sound."""
        self.phones = result.phones if result else ()
        self.tracks = result.tracks if result else None
        self.failed = result.failed if result else ""
        self.other = other.tracks if other else None
        self.length_s = length_s
        empty = np.zeros(0, np.float32)
        self._low, self._high = overview or (empty, empty)
        self.update()

    def set_position(self, seconds: float) -> None:
        self.position_s = seconds
        frame = int(seconds * FPS + 1e-3)
        self.setAccessibleDescription(f"{seconds:.2f} of {self.length_s:.2f} s, frame {frame}")
        self.update()

    # --- places ---
    @property
    def _plot(self) -> QRectF:
        top = GAP + WAVE_H + GAP + PHONES_H + GAP
        return QRectF(PAD_X, top, self.width() - 2 * PAD_X, max(self.height() - top - 8, 10))

    def x_of(self, seconds: float) -> float:
        plot = self._plot
        return plot.left() + seconds / max(self.length_s, 1e-6) * plot.width()

    # --- painting ---
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(theme.color("accent" if self.hasFocus() else "line"), 1))
        painter.setBrush(theme.color("window"))
        painter.drawRoundedRect(box, 8, 8)
        if self.length_s <= 0:
            painter.setPen(theme.color("faint"))
            said = "Sound, phones and mouth of the selected clip"
            self._paint_said(painter, box, f"Not scored: {self.failed}" if self.failed else said)
            return
        self._paint_worst(painter)
        self._paint_wave(painter)
        self._paint_phones(painter)
        self._paint_tracks(painter)
        x = self.x_of(self.position_s)
        painter.fillRect(QRectF(x - 0.75, 4, 1.5, self.height() - 8), theme.color("text"))

    def _paint_said(self, painter: QPainter, box: QRectF, text: str) -> None:
        painter.setPen(theme.color("danger" if self.failed else "faint"))
        painter.setFont(theme.font())
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(box.adjusted(20, 0, -20, 0), flags, text)

    def _paint_worst(self, painter: QPainter) -> None:
        if self.tracks is None:
            return
        left = self.x_of(self.tracks.worst_s)
        right = self.x_of(min(self.tracks.worst_s + WORST_S, self.length_s))
        tone = theme.color("danger", 0.22 if self.looping else 0.12)
        painter.fillRect(QRectF(left, 4, right - left, self.height() - 8), tone)

    def _paint_wave(self, painter: QPainter) -> None:
        if not len(self._low):
            return
        middle, half = GAP + WAVE_H / 2, WAVE_H / 2
        peak = max(float(np.abs(self._high).max()), float(np.abs(self._low).max()), 0.05)
        bars = max(int(self._plot.width() // 3), 1)
        groups = np.linspace(0, len(self._high), bars + 1).astype(int)
        lines = []
        for i in range(bars):
            part = slice(groups[i], max(groups[i + 1], groups[i] + 1))
            up = max(float(self._high[part].max()) / peak * half, 0.75)
            down = max(-float(self._low[part].min()) / peak * half, 0.75)
            x = self._plot.left() + (i + 0.5) * self._plot.width() / bars
            lines.append(QLineF(x, middle - up, x, middle + down))
        painter.setPen(QPen(theme.color("outline"), 1.6))
        painter.drawLines(lines)

    def _paint_phones(self, painter: QPainter) -> None:
        top = GAP + WAVE_H + GAP
        painter.setFont(theme.font(10, QFont.Weight.Medium))
        for phone in self.phones:
            left, right = self.x_of(phone.start_s), self.x_of(min(phone.end_s, self.length_s))
            if phone.name == "SIL" or right <= left:
                continue
            shut = phone.name in LIPS
            box = QRectF(left + 0.5, top, max(right - left - 1, 1), PHONES_H)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("danger", 0.30) if shut else theme.color("raised"))
            painter.drawRoundedRect(box, 3, 3)
            if painter.fontMetrics().horizontalAdvance(phone.name) <= box.width() + 1:
                painter.setPen(theme.color("danger" if shut else "soft"))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, phone.name)

    @property
    def _top(self) -> float:
        """The opening at the top of the plot: 1, or more where the mouth opens wider."""
        shown = [t for t in (self.tracks, self.other) if t is not None]
        return max([1.0, *(v for t in shown for v in (*t.seen, *t.expected))])

    def _paint_tracks(self, painter: QPainter) -> None:
        plot = self._plot
        painter.setPen(QPen(theme.color("line"), 1))
        for share in (0.0, 1.0):
            y = plot.bottom() - share / self._top * plot.height()
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
        if self.tracks is None:
            painter.setPen(theme.color("faint"))
            said = f"Not scored: {self.failed}" if self.failed else "The mouth was not measured"
            self._paint_said(painter, plot, said)
            return
        dashed = QPen(theme.color(EXPECTED), 1.4)
        dashed.setDashPattern([3.0, 2.5])
        self._paint_line(painter, self.tracks.expected, dashed)
        if self.other is not None:
            self._paint_line(painter, self.other.seen, QPen(theme.color(OTHER), 1.8))
        self._paint_line(painter, self.tracks.seen, QPen(theme.color(SEEN), 2.0))

    def _paint_line(self, painter: QPainter, values: Sequence[float], pen: QPen) -> None:
        plot, top, path = self._plot, self._top, QPainterPath()
        for i, value in enumerate(values):
            y = plot.bottom() - max(value, 0.0) / top * plot.height()
            point = QPointF(self.x_of((i + 0.5) / FPS), y)
            path.lineTo(point) if i else path.moveTo(point)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen)
        painter.drawPath(path)

    # --- moving ---
    def _seek_to(self, x: float) -> None:
        if self.length_s > 0:
            share = (x - PAD_X) / max(self._plot.width(), 1)
            self.sought.emit(min(max(share, 0.0), 1.0) * self.length_s)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._seek_to(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._seek_to(event.position().x())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        many = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        steps = {Qt.Key.Key_Left: -many, Qt.Key.Key_Right: many}
        ends = {Qt.Key.Key_Home: 0.0, Qt.Key.Key_End: self.length_s}
        key = Qt.Key(event.key())
        if key in steps:
            self.stepped.emit(steps[key])
        elif key in ends:
            self.sought.emit(ends[key])
        else:
            super().keyPressEvent(event)
