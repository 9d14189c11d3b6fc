"""A small rounded portrait of the character; knows nothing of where the picture comes from."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QImage, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QWidget

from studio import icons, theme


class PortraitLabel(QWidget):
    """`set_image` with any picture: it fills the shape, the upper part kept."""

    def __init__(self, size: QSize, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image = QImage()
        self.setFixedSize(size)
        self.setAccessibleName("Portrait of the character")

    def set_image(self, image: QImage) -> None:
        self._image = image
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        box = QRectF(self.rect())
        path = QPainterPath()
        path.addRoundedRect(box, 8, 8)
        painter.fillPath(path, theme.color("raised"))
        if self._image.isNull():
            size = box.width() * 0.45
            mark = QRectF(0, 0, size, size)
            mark.moveCenter(box.center())
            icons.paint(painter, mark, "character", "faint")
            return
        painter.setClipPath(path)
        factor = max(box.width() / self._image.width(), box.height() / self._image.height())
        width, height = box.width() / factor, box.height() / factor
        left = (self._image.width() - width) / 2
        top = (self._image.height() - height) * 0.3
        painter.drawImage(box, self._image, QRectF(left, top, width, height))
