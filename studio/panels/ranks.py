"""Ranks table of the timings panel: what each GPU of a session spends on a frame, and on the link.

Hidden while a session runs on one. Shows RankSpread rows; its owner refreshes it.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from studio import theme
from studio.timings import RankSpread
from studio.widgets.buttons import label

COMM_ALPHA = 96  # of the stage's colour: the part of it spent between the ranks
MEANING = {
    "denoise": "Generates its share of every chunk; pale: exchanging with the other ranks",
    "decode": "Draws the pictures of one chunk while the next is generated",
}


class RankBar(QWidget):
    """A rank's time as a share of the slowest one's; the pale end is what the exchange takes."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self._color = theme.QColor(theme.STAGE_COLORS[stage])
        self._share = self._comm = 0.0
        self.setFixedHeight(6)
        self.setMinimumWidth(16)

    def show_share(self, share: float, comm: float) -> None:
        """`share` of the slowest rank's time, `comm` of this one's: 0..1 each."""
        self._share, self._comm = share, comm
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        whole = self.width() * self._share
        pale = theme.QColor(self._color)
        pale.setAlpha(COMM_ALPHA)
        for color, width in ((pale, whole), (self._color, whole * (1 - self._comm))):
            painter.setBrush(color)
            painter.drawRoundedRect(QRectF(0, 0, width, self.height()), 3, 3)


class RanksTable(QWidget):
    """One row a rank: which GPU does what, its p50 per frame, and how much of it is exchange."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: dict[int, tuple[RankBar, QLabel, QLabel]] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        for column, title in ((0, "Rank, per frame"), (2, "p50 ms"), (3, "link")):
            head = label(title, "caption")
            head.setAlignment(theme.ALIGN_LEFT if column == 0 else theme.ALIGN_RIGHT)
            self._grid.addWidget(head, 0, column, 1, 2 if column == 0 else 1)
        self.hide()

    def show_ranks(self, ranks: tuple[RankSpread, ...]) -> None:
        if {r.rank for r in ranks} != self.rows.keys():
            self._rebuild(ranks)
        longest = max((r.spread.p50_ms for r in ranks), default=0.0) or 1.0
        for r in ranks:
            bar, p50, comm = self.rows[r.rank]
            share = min(r.comm_ms / r.spread.p50_ms, 1.0) if r.spread.p50_ms else 0.0
            bar.show_share(r.spread.p50_ms / longest, share)
            p50.setText(f"{r.spread.p50_ms:.1f}")
            comm.setText(f"{100 * share:.0f} %" if r.comm_ms else "–")
        self.setVisible(bool(ranks))

    def _rebuild(self, ranks: tuple[RankSpread, ...]) -> None:
        """Another session, with other ranks."""
        while self._grid.count() > 3:  # the heads stay
            item = self._grid.takeAt(3)
            if item is not None and (widget := item.widget()) is not None:
                widget.deleteLater()
        self.rows = {}
        for row, r in enumerate(ranks, 1):
            where = r.device if r.device != "cpu" else f"rank {r.rank}"  # which all share the CPU
            name = label(f"{r.stage.capitalize()} {where}", "soft")
            name.setToolTip(MEANING.get(r.stage, ""))
            bar, p50, comm = RankBar(r.stage), label("", "number"), label("", "number")
            p50.setAccessibleName(f"rank {r.rank}, {r.stage}: p50 in milliseconds")
            comm.setAccessibleName(f"rank {r.rank}: share spent on the link between ranks")
            for cell in (p50, comm):
                cell.setAlignment(theme.ALIGN_RIGHT)
                cell.setMinimumWidth(44)
            for column, widget in enumerate((name, bar, p50, comm)):
                self._grid.addWidget(widget, row, column)
            self.rows[r.rank] = (bar, p50, comm)
