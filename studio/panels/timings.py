"""Timings panel: fps and latency in large figures, the last 60 s stacked, stages, drops by reason.

Shows TimingsView; its owner refreshes it a few times a second.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from studio import theme
from studio.panels.ranks import RanksTable
from studio.timings import STAGES, TimingsView
from studio.widgets.buttons import label, push, restyle
from studio.widgets.history_plot import HistoryPlot

NONE = "–"
# What the engine and the studio call a reason -> what a person reads
REASONS = {
    "late": "too late",
    "old_epoch": "interrupted",
    "shelf_full": "too early",
    "crowded": "in a burst",
    "not_painted": "window busy",
    "skipped": "catching up",
}
MEANING = {
    "capture": "Microphone to the engine: one block of sound and its way here",
    "audio": "In the engine, from the last sound that a frame needs to its turn",
    "encode": "Sound to phone probabilities",
    "denoise": "Generating the motion",
    "decode": "Drawing the picture",
    "transport": "Engine to studio",
    "paint": "Studio to screen",
}


class Chip(QWidget):
    """A stage's colour."""

    def __init__(self, color: str) -> None:
        super().__init__()
        self._color = theme.QColor(color)
        self.setFixedSize(10, 10)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._color)
        painter.drawRoundedRect(self.rect(), 3, 3)


class TimingsPanel(QWidget):
    """`show_view` and `show_stacks`; the rest is layout."""

    def __init__(self, actions: dict[str, QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fps = label(NONE, "big")
        self.p50 = label(NONE, "big")
        self.p95 = label(NONE, "big")
        self.plot = HistoryPlot()
        self.cells: dict[str, tuple[QLabel, QLabel]] = {}
        self.ranks = RanksTable()
        self.drops = label("", "caption")
        self.drops.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(10)
        column.addLayout(self._figures())
        column.addWidget(self.plot)
        column.addLayout(self._table())
        column.addWidget(self.ranks)
        column.addWidget(self.drops)
        column.addWidget(push(actions["export_timings"], text="Export as CSV…"))
        column.addStretch(1)
        self.show_view(TimingsView(0.0, None, {}, {}, 0, 0))

    def show_view(self, view: TimingsView) -> None:
        self.fps.setText(f"{view.fps:.1f}" if view.frames_painted else NONE)
        latency = view.latency
        self.p50.setText(f"{latency.p50_ms:.0f} ms" if latency else NONE)
        self.p95.setText(f"{latency.p95_ms:.0f} ms" if latency else NONE)
        for stage, (p50, p95) in self.cells.items():
            spread = view.stages.get(stage)
            p50.setText(f"{spread.p50_ms:.1f}" if spread else NONE)
            p95.setText(f"{spread.p95_ms:.1f}" if spread else NONE)
        self.ranks.show_ranks(view.ranks)
        self._show_drops(view)

    def show_stacks(self, stacks: dict[str, np.ndarray]) -> None:
        self.plot.show_stacks(stacks)

    def _show_drops(self, view: TimingsView) -> None:
        reasons = [
            f"{REASONS.get(r, r.replace('_', ' '))} {n}"
            for r, n in sorted(view.dropped.items())
            if n
        ]
        dropped = sum(view.dropped.values())
        parts = [f"{view.frames_painted} frames shown", f"{view.frames_late} late"]
        parts.append(f"{dropped} dropped" + (f" ({', '.join(reasons)})" if reasons else ""))
        self.drops.setText(" · ".join(parts))
        restyle(self.drops, "warning" if dropped or view.frames_late else "")

    def _figures(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for value, caption, tip in (
            (self.fps, "frames a second", "Frames painted in the last two seconds"),
            (self.p50, "latency, p50", "Microphone to matching lips on the screen"),
            (self.p95, "latency, p95", "95 of 100 frames are faster"),
        ):
            column = QVBoxLayout()
            column.setSpacing(0)
            value.setToolTip(tip)
            value.setAccessibleName(tip)
            column.addWidget(value)
            column.addWidget(label(caption, "caption"))
            row.addLayout(column, 1)
        return row

    def _table(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        for column, title in ((1, "Stage, per frame"), (2, "p50 ms"), (3, "p95 ms")):
            head = label(title, "caption")
            head.setAlignment(theme.ALIGN_LEFT if column == 1 else theme.ALIGN_RIGHT)
            grid.addWidget(head, 0, column)
        for row, stage in enumerate(STAGES, 1):
            name = label(stage.capitalize(), "soft")
            name.setToolTip(MEANING[stage])
            p50, p95 = label(NONE, "number"), label(NONE, "number")
            for cell in (p50, p95):
                cell.setAlignment(theme.ALIGN_RIGHT)
                cell.setMinimumWidth(52)
            p50.setAccessibleName(f"{stage} p50 in milliseconds")
            p95.setAccessibleName(f"{stage} p95 in milliseconds")
            self.cells[stage] = (p50, p95)
            grid.addWidget(Chip(theme.STAGE_COLORS[stage]), row, 0)
            for column, widget in ((1, name), (2, p50), (3, p95)):
                grid.addWidget(widget, row, column)
        return grid
