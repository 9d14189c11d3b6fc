"""Grid of characters with thumbnails and names; arrow keys move, Return or a click chooses.

Knows nothing of files: items are (id, name, picture).
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QImage,
    QPainter,
    QPainterPath,
    QPen,
    QResizeEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio import theme

SCROLL_PX = 12
LEAST_PX = 72  # width of a tile; as many as fit share the row
SHAPE = 1.22  # height to width of the picture
NAME_HEIGHT = 24
ID, PICTURE, CREDIT = (Qt.ItemDataRole.UserRole + i for i in range(3))
Index = QModelIndex | QPersistentModelIndex


class TileDelegate(QStyledItemDelegate):
    """Paints one tile: rounded picture, ring when current, name below."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        grid = self.parent()
        assert isinstance(grid, ThumbnailGrid)
        return grid.tile()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect = QRectF(option.rect).adjusted(3, 3, -3, -NAME_HEIGHT)
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        self._picture(painter, rect, index.data(PICTURE))
        ring = (
            "accent"
            if selected
            else ("outline" if state & QStyle.StateFlag.State_MouseOver else "")
        )
        if state & QStyle.StateFlag.State_HasFocus:
            ring = "text"
        if ring:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color(ring), 2))
            painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 8, 8)
        font = theme.font(theme.CAPTION, QFont.Weight.Medium if selected else QFont.Weight.Normal)
        name = QFontMetricsF(font).elidedText(
            index.data(Qt.ItemDataRole.DisplayRole) or "", Qt.TextElideMode.ElideRight, rect.width()
        )
        painter.setFont(font)
        painter.setPen(theme.color("text" if selected else "soft"))
        below = QRectF(rect.left(), rect.bottom() + 3, rect.width(), NAME_HEIGHT - 4)
        painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), name)
        painter.restore()

    def _picture(self, painter: QPainter, rect: QRectF, picture: QImage | None) -> None:
        path = QPainterPath()
        path.addRoundedRect(rect, 8, 8)
        painter.fillPath(path, theme.color("raised"))
        if picture is None or picture.isNull():
            return
        painter.setClipPath(path)
        factor = max(rect.width() / picture.width(), rect.height() / picture.height())
        width, height = rect.width() / factor, rect.height() / factor
        left, top = (picture.width() - width) / 2, (picture.height() - height) * 0.3
        painter.drawImage(rect, picture, QRectF(left, top, width, height))
        painter.setClipping(False)


class ThumbnailGrid(QListView):
    """`chosen(id)` when a person picks a tile; `select` marks one silently."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items = QStandardItemModel(self)
        self.setModel(self._items)
        self.setItemDelegate(TileDelegate(self))
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMovement(QListView.Movement.Static)
        self.setUniformItemSizes(True)
        self.setSpacing(0)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setStyleSheet("QListView { background: transparent; border: none; padding: 0; }")
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setAccessibleName("Starter characters")
        self.setToolTip("Click a character to put it on stage")
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)

    def add(self, item_id: str, name: str, picture: QImage, credit: str = "") -> None:
        item = QStandardItem(name)
        item.setEditable(False)
        item.setData(item_id, ID)
        item.setData(picture, PICTURE)
        item.setToolTip(f"{name}\n{credit}" if credit else name)
        item.setAccessibleText(name)
        self._items.appendRow(item)

    def tile(self) -> QSize:
        """Size of a tile so that the row is full."""
        width = self.width() - SCROLL_PX  # always as if the bar was there: no flicker
        columns = max(width // LEAST_PX, 1)
        side = width // columns
        return QSize(side, round((side - 6) * SHAPE) + NAME_HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.setGridSize(self.tile())
        super().resizeEvent(event)

    def ids(self) -> list[str]:
        return [self._items.item(row).data(ID) for row in range(self._items.rowCount())]

    def select(self, item_id: str) -> None:
        """Mark the tile with that id, or none."""
        self.clearSelection()
        if item_id in self.ids():
            self.setCurrentIndex(self._items.index(self.ids().index(item_id), 0))

    def neighbour(self, item_id: str, step: int) -> str:
        """The id `step` tiles on, round the ends; the first when `item_id` is not here."""
        ids = self.ids()
        if not ids:
            return ""
        return ids[(ids.index(item_id) + step) % len(ids)] if item_id in ids else ids[0]

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(index.data(ID))
