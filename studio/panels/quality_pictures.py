"""The picture of a clip, or two side by side: A the baseline, B the run, with what is said now.

At the edge of each picture a gauge shows the opening that is seen and the one that is expected.
Draws what it is given; knows nothing of films, positions or sound.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QImage, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio import theme

GAUGE_W, INSET = 8, 12
LIPS = ("P", "B", "M")  # here the lips must meet
SIDE_COLORS = {"A": "warning", "B": "accent"}


@dataclass(frozen=True, slots=True)
class Pane:
    """`side` "A", "B" or "" for a picture alone; openings 0..1, None where not measured."""

    title: str
    side: str
    image: QImage | None
    seen: float | None = None
    expected: float | None = None
    phone: str = ""
    note: str = ""  # why there is no picture


class Pictures(QWidget):
    """`show_panes` replaces what is shown; an empty list shows the hint."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.panes: list[Pane] = []
        self.hint = "Select a clip to see it"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(240, 260)
        self.setAccessibleName("Picture of the clip")

    def sizeHint(self) -> QSize:
        return QSize(420, 560)

    def show_panes(self, panes: list[Pane]) -> None:
        self.panes = panes
        said = "; ".join(f"{p.side or 'Clip'} {p.title} {p.phone}".strip() for p in panes)
        self.setAccessibleDescription(said or self.hint)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHints(
            QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform
        )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("stage"))
        painter.drawRoundedRect(QRectF(self.rect()), 10, 10)
        if not self.panes:
            painter.setPen(theme.color("faint"))
            painter.setFont(theme.font())
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.hint)
            return
        width = self.width() / len(self.panes)
        for i, pane in enumerate(self.panes):
            cell = QRectF(i * width, 0, width, self.height()).adjusted(4, 8, -4, -8)
            self._paint_pane(painter, cell, pane)

    def _paint_pane(self, painter: QPainter, cell: QRectF, pane: Pane) -> None:
        painter.setFont(theme.font(theme.CAPTION))
        if pane.image is None:
            painter.setPen(theme.color("faint"))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(cell.adjusted(20, 0, -20, 0), flags, pane.note)
        else:
            at = cell
            if pane.side and len(self.panes) > 1:  # two fill their halves: the face is large
                painter.drawImage(cell, pane.image, middle_of(cell, pane.image))
            else:
                at = fitted(cell, pane.image.width(), pane.image.height())
                painter.drawImage(at, pane.image)
            if pane.seen is not None:
                _gauge(painter, at, pane)
            if pane.phone:
                _phone(painter, at, pane.phone)
            cell = at
        if pane.side:
            _title(painter, cell, pane)


def fitted(cell: QRectF, width: int, height: int) -> QRectF:
    """The largest box of that shape in the middle of `cell`."""
    scale = min(cell.width() / width, cell.height() / height)
    w, h = width * scale, height * scale
    return QRectF(cell.center().x() - w / 2, cell.center().y() - h / 2, w, h)


def middle_of(cell: QRectF, image: QImage) -> QRectF:
    """The part of the picture, as high as it is or as wide, that fills `cell` unstretched."""
    scale = max(cell.width() / image.width(), cell.height() / image.height())
    w, h = cell.width() / scale, cell.height() / scale
    return QRectF((image.width() - w) / 2, (image.height() - h) / 2, w, h)


def _chip(painter: QPainter, box: QRectF, text: str, tone: str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("stage", 0.72))
    painter.drawRoundedRect(box, 5, 5)
    painter.setPen(theme.color(tone))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def _title(painter: QPainter, at: QRectF, pane: Pane) -> None:
    painter.setFont(theme.font(theme.CAPTION, QFont.Weight.DemiBold))
    metrics = painter.fontMetrics()
    room = int(at.width()) - 2 * INSET - 24
    name = metrics.elidedText(pane.title, Qt.TextElideMode.ElideRight, room)
    text = f"{pane.side}   {name}"
    box = QRectF(at.left() + 8, at.top() + 8, metrics.horizontalAdvance(text) + 18, 22)
    _chip(painter, box, text, SIDE_COLORS[pane.side])


def _phone(painter: QPainter, at: QRectF, phone: str) -> None:
    painter.setFont(theme.font(theme.TITLE, QFont.Weight.DemiBold))
    shut = phone in LIPS
    text = "pause" if phone == "SIL" else phone
    wide = max(38.0, painter.fontMetrics().horizontalAdvance(text) + 18.0)
    box = QRectF(at.left() + 8, at.bottom() - 36, wide, 28)
    _chip(painter, box, text, "danger" if shut else "faint" if phone == "SIL" else "text")


def _gauge(painter: QPainter, at: QRectF, pane: Pane) -> None:
    """A bar of the opening seen, and a tick where it is expected."""
    assert pane.seen is not None
    height = min(180.0, at.height() * 0.4)
    box = QRectF(at.right() - INSET - GAUGE_W, at.bottom() - INSET - height, GAUGE_W, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("stage", 0.72))
    painter.drawRoundedRect(box.adjusted(-4, -4, 4, 4), 6, 6)
    painter.setBrush(theme.color("text", 0.18))
    painter.drawRoundedRect(box, 3, 3)
    full = QRectF(box)
    full.setTop(box.bottom() - min(max(pane.seen, 0.0), 1.0) * height)
    painter.setBrush(theme.color(SIDE_COLORS.get(pane.side, "accent")))
    painter.drawRoundedRect(full, 3, 3)
    if pane.expected is not None:
        y = box.bottom() - min(max(pane.expected, 0.0), 1.0) * height
        painter.setPen(QPen(theme.color("text"), 2))
        painter.drawLine(QPointF(box.left() - 4, y), QPointF(box.right() + 4, y))
