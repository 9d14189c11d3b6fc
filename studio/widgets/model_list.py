"""List of models: name, what it is, and a badge; arrow keys move, Return or a double click uses.

Rows are plain text and tones. Knows nothing of engines.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import (
    QModelIndex,
    QPersistentModelIndex,
    QRectF,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio import theme

ROW_PX, PAD_PX = 46, 10
ROW = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    title: str
    line: str
    badge: str
    tone: str
    mark: str = ""  # a short warning, below the badge


class RowDelegate(QStyledItemDelegate):
    """Paints one row of two lines."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(120, ROW_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: Row = index.data(ROW)
        rect = QRectF(option.rect).adjusted(1, 1, -1, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._ground(painter, rect, option.state)
        inner = rect.adjusted(PAD_PX, 6, -PAD_PX, -6)
        top = QRectF(inner.left(), inner.top(), inner.width(), inner.height() / 2)
        below = top.translated(0, top.height())
        caption = theme.font(theme.CAPTION, QFont.Weight.Medium)
        badge_px = QFontMetricsF(caption).horizontalAdvance(row.badge)
        _text(painter, top, row.badge, caption, row.tone, theme.ALIGN_RIGHT)
        name = top.adjusted(0, 0, -badge_px - PAD_PX, 0)
        if row.mark:
            below = self._mark(painter, below, row.mark, caption)
        _text(painter, name, row.title, theme.font(theme.BODY, QFont.Weight.Medium), "text")
        _text(painter, below, row.line, theme.font(theme.CAPTION), "faint")
        painter.restore()

    def _ground(self, painter: QPainter, rect: QRectF, state: QStyle.StateFlag) -> None:
        selected = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.setPen(Qt.PenStyle.NoPen)
        if selected and state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(theme.color("accent"), 1))
        if selected or hovered:
            painter.setBrush(theme.color("tint" if selected else "raised"))
            painter.drawRoundedRect(rect, theme.RADIUS, theme.RADIUS)

    def _mark(self, painter: QPainter, line: QRectF, mark: str, font: QFont) -> QRectF:
        """Draws the mark at the line's right end; returns what is left of the line."""
        width = QFontMetricsF(font).horizontalAdvance(mark)
        _text(painter, line, mark, font, "warning", theme.ALIGN_RIGHT)
        return line.adjusted(0, 0, -width - PAD_PX, 0)


class ModelList(QListView):
    """`selected(id)` when a person moves to a row; `activated_id(id)` on Return or double click."""

    selected = Signal(str)
    activated_id = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items = QStandardItemModel(self)
        self.setModel(self._items)
        self.setItemDelegate(RowDelegate(self))
        self.setMouseTracking(True)
        self.setUniformItemSizes(True)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setStyleSheet("QListView { background: transparent; border: none; padding: 0; }")
        self.setAccessibleName("Models")
        self.setToolTip("Models of this engine; Return puts the selected one on stage")
        self.selectionModel().currentChanged.connect(self._moved)
        self.activated.connect(lambda index: self.activated_id.emit(index.data(ROW).id))

    def rows(self) -> list[Row]:
        return [self._items.item(i).data(ROW) for i in range(self._items.rowCount())]

    def show_rows(self, rows: list[Row], current: str) -> None:
        """Other rows, silently; `current` is selected when it is among them."""
        if rows != self.rows():
            with QSignalBlocker(self.selectionModel()):
                self._items.clear()
                for row in rows:
                    self._items.appendRow(_item(row))
        ids = [row.id for row in rows]
        if current in ids and self.current() != current:
            with QSignalBlocker(self):
                self.setCurrentIndex(self._items.index(ids.index(current), 0))
        self.viewport().update()

    def current(self) -> str:
        index = self.currentIndex()
        return index.data(ROW).id if index.isValid() else ""

    def _moved(self, index: QModelIndex) -> None:
        if index.isValid():
            self.selected.emit(index.data(ROW).id)


def _item(row: Row) -> QStandardItem:
    item = QStandardItem(row.title)
    item.setData(row, ROW)
    item.setToolTip(f"{row.title}\n{row.line}")
    item.setAccessibleText(f"{row.title}, {row.badge}. {row.line}")
    return item


def _text(
    painter: QPainter, rect: QRectF, text: str, font: QFont, tone: str,
    alignment: Qt.AlignmentFlag = theme.ALIGN_LEFT,
) -> None:  # fmt: skip
    painter.setFont(font)
    painter.setPen(theme.color(tone))
    words = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.drawText(rect, int(alignment), words)
