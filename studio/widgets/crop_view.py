"""Framing by hand: the picture with the 704x1088 window over it, moved and zoomed by a person.

The arithmetic is `engine.protocol.framing`, so what is seen here is what the engine cuts. Knows
nothing of the engine's answer.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFont,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.protocol.character import Framing
from engine.protocol.framing import Box, automatic_framing, automatic_scale, window
from engine.protocol.messages import FaceFound
from studio import theme

ZOOM_LOW, ZOOM_HIGH = 0.3, 2.1  # of the slider; `window` keeps the face where it can be used
STEP = 0.02  # of the picture's side, an arrow key
ZOOM_STEP = 1.06


def box_of(face: FaceFound) -> Box:
    return Box(face.x, face.y, face.width, face.height)


class CropView(QWidget):
    """`changed(Framing)` while a person moves it; `face_chosen(index)` on a click in a face."""

    changed = Signal(object)
    face_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image = QImage()
        self._size = QSize(0, 0)  # of the full picture; the image may be smaller
        self._faces: list[FaceFound] = []
        self._face = 0
        self._framing: Framing | None = None
        self._grip: QPointF | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(180)
        self.setMaximumHeight(380)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Framing of the picture")
        self.setToolTip("Drag to move, wheel or + and − to zoom, arrow keys to nudge")

    def sizeHint(self) -> QSize:
        return QSize(260, 300)

    def show_picture(self, image: QImage, size: QSize) -> None:
        """A preview of the upright picture and the size of the full one."""
        self._image, self._size = image, size
        self._faces, self._face = [], 0
        self.update()

    def show_faces(self, faces: list[FaceFound], face: int) -> None:
        self._faces, self._face = list(faces), min(face, max(len(faces) - 1, 0))
        self.update()

    def set_framing(self, framing: Framing | None) -> None:
        self._framing = framing
        self.update()

    @property
    def ready(self) -> bool:
        return not self._image.isNull() and bool(self._faces)

    @property
    def framing(self) -> Framing:
        """What is shown: the person's framing or the automatic one."""
        if self._framing is not None or not self.ready:
            return self._framing or Framing()
        return automatic_framing(*self._sides(), box_of(self._faces[self._face]))

    def _sides(self) -> tuple[int, int]:
        return self._size.width(), self._size.height()

    def _crop(self) -> QRectF:
        """The window in px of the full picture."""
        part = window(*self._sides(), box_of(self._faces[self._face]), self._framing)
        return QRectF(part.left, part.top, part.width, part.height)

    def _view(self) -> tuple[float, QPointF]:
        """Scale and offset of the picture in this widget, with room for a window beyond it."""
        whole = QRectF(0, 0, *self._sides())
        if self.ready:
            whole = whole.united(self._crop())
        area = QRectF(self.rect()).adjusted(6, 6, -6, -6)
        scale = min(area.width() / max(whole.width(), 1), area.height() / max(whole.height(), 1))
        return scale, area.center() - whole.center() * scale

    def _to_screen(self, rect: QRectF) -> QRectF:
        scale, offset = self._view()
        return QRectF(rect.topLeft() * scale + offset, rect.size() * scale)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.setPen(QPen(theme.color("accent" if self.hasFocus() else "stage"), 1))
        painter.setBrush(theme.color("stage"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        if self._image.isNull():
            painter.setPen(theme.color("faint"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "No picture yet")
            return
        painter.drawImage(self._to_screen(QRectF(0, 0, *self._sides())), self._image)
        if self.ready:
            self._paint_window(painter)
            self._paint_faces(painter)

    def _paint_window(self, painter: QPainter) -> None:
        crop = self._to_screen(self._crop())
        shade = QPainterPath()
        shade.setFillRule(Qt.FillRule.OddEvenFill)
        shade.addRect(QRectF(self.rect()).adjusted(2, 2, -2, -2))
        shade.addRoundedRect(crop, 4, 4)
        painter.fillPath(shade, theme.color("stage", 0.66))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.color("text"), 1.5))
        painter.drawRoundedRect(crop, 4, 4)

    def _paint_faces(self, painter: QPainter) -> None:
        if len(self._faces) < 2:
            return
        painter.setFont(theme.font(theme.CAPTION, QFont.Weight.DemiBold))
        for index, face in enumerate(self._faces):
            box = self._to_screen(QRectF(face.x, face.y, face.width, face.height))
            tone = "accent" if index == self._face else "soft"
            painter.setPen(QPen(theme.color(tone), 1.5))
            painter.drawRoundedRect(box, 4, 4)
            painter.drawText(box.topLeft() + QPointF(3, -4), str(index + 1))

    def _change(self, x: float, y: float, zoom: float) -> None:
        """Takes what `window` makes of it, so that a drag beyond the limits does not pile up."""
        face, (width, height) = box_of(self._faces[self._face]), self._sides()
        wanted = Framing(center_x=x, center_y=y, zoom=min(max(zoom, ZOOM_LOW), ZOOM_HIGH))
        part = window(width, height, face, wanted)
        self._framing = Framing(
            center_x=(part.left + part.width / 2) / width,
            center_y=(part.top + part.height / 2) / height,
            zoom=part.scale / automatic_scale(width, height, face),
        )
        self.update()
        self.changed.emit(self._framing)

    def zoom_by(self, factor: float) -> None:
        if self.ready:
            now = self.framing
            self._change(now.center_x, now.center_y, now.zoom * factor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self.ready or event.button() != Qt.MouseButton.LeftButton:
            return
        for index, face in enumerate(self._faces):
            box = self._to_screen(QRectF(face.x, face.y, face.width, face.height))
            if box.contains(event.position()) and index != self._face:
                self.face_chosen.emit(index)
                return
        self._grip = event.position()
        self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            return
        scale, _ = self._view()
        moved = (event.position() - self._grip) / scale
        self._grip = event.position()
        now, (width, height) = self.framing, self._sides()
        self._change(now.center_x + moved.x() / width, now.center_y + moved.y() / height, now.zoom)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None
        self.unsetCursor()

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.zoom_by(ZOOM_STEP ** (event.angleDelta().y() / 120))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, now = event.key(), self.framing
        moves = {
            Qt.Key.Key_Left: (-STEP, 0.0),
            Qt.Key.Key_Right: (STEP, 0.0),
            Qt.Key.Key_Up: (0.0, -STEP),
            Qt.Key.Key_Down: (0.0, STEP),
        }
        if self.ready and key in moves:
            dx, dy = moves[Qt.Key(key)]
            self._change(now.center_x + dx, now.center_y + dy, now.zoom)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(ZOOM_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(1 / ZOOM_STEP)
        else:
            super().keyPressEvent(event)
