"""The Viewer: a plain widget that paints the newest Frame of the mailbox, and what lies over it.

Fit or 1:1 in device pixels, exact at fractional scales. Knows nothing of engines, clocks or pacing:
which frame is due was decided before the mailbox. No OpenGL: it goes black when docks move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QImage, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.clock import HEIGHT, WIDTH
from engine.protocol.frame import Frame
from studio import theme
from studio.mailbox import Mailbox
from studio.widgets import overlay

Painted = Callable[[Frame, int, float], None]  # frame, monotonic ns, paint ms
SLOW_PAINT_MS = 12.0  # p95 over this leaves too little of 41.7 ms: paint without smoothing
QUICK_PAINT_MS = 3.0  # p95 below this without smoothing: try it again
WINDOW = 48  # paints looked at before changing over, so that it does not flicker
BLUR_STEPS = (12, 24, 48, 96)  # px wide: shrunk to the first, enlarged smoothly by the others
FADE_S = 0.3  # from the waiting picture to the first frame


@dataclass(frozen=True, slots=True)
class Hud:
    """What the pill over the picture says."""

    live: bool = False
    fps: float = 0.0
    latency_ms: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Banner:
    """One line over the lower edge of the picture; `hold` dims the picture behind it."""

    text: str
    tone: str = "warning"
    busy: bool = False
    hold: bool = False


class FrameView(QWidget):
    """Signals: `open_requested` (empty stage clicked), `fullscreen_requested` (double click)."""

    open_requested = Signal()
    fullscreen_requested = Signal()

    def __init__(
        self, mailbox: Mailbox, painted: Painted | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._mailbox = mailbox
        self._painted = painted
        self._frame: Frame | None = None
        self._image = QImage()
        self._still = QImage()
        self._fade_from = 0.0  # monotonic s of the first frame; 0 when nothing fades
        self._pan = QPoint()
        self._drag_from: QPoint | None = None
        self._ring = False  # reached by Tab: show where the keyboard is
        self._work_ms: list[float] = []
        self.smooth = True
        self.fit = True
        self.clean = False  # True: nothing but the picture (stage window)
        self.hud_visible = True
        self.hud = Hud()
        self.banner: Banner | None = None
        self.drop_text = ""  # not empty while a file is dragged over the window
        self.empty_title = "Drop a picture here"
        self.empty_lines = ["or paste one with Ctrl+V,", "or click to choose a file"]
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(220, 300)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Live picture")
        self.setWhatsThis("The live picture. Double-click for full screen; drop a picture on it.")

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, HEIGHT)

    @property
    def frame(self) -> Frame | None:
        return self._frame

    def wake(self) -> None:
        """A frame waits. A minimised window only empties the slot, or no more wake-ups come."""
        if self.isVisible() and not self.window().isMinimized():
            self.update()
        else:
            self._take()

    def set_still(self, image: QImage) -> None:
        """What to show until the very first frame comes: the picture's colours, out of focus.

        Where the engine will cut the picture is not known before it has found the face: anything
        sharp would jump when the first frame comes.
        """
        self._still = blurred(image) if self._frame is None else QImage()
        self.update()

    def set_fit(self, fit: bool) -> None:
        self.fit = fit
        self._pan = QPoint()
        self.setCursor(Qt.CursorShape.ArrowCursor if fit else Qt.CursorShape.OpenHandCursor)
        self.update()

    def set_hud(self, hud: Hud) -> None:
        if hud != self.hud:
            self.hud = hud
            self.update()

    def set_hud_visible(self, visible: bool) -> None:
        self.hud_visible = visible
        self.update()

    def set_banner(self, banner: Banner | None) -> None:
        if banner != self.banner:
            self.banner = banner
            self.update()

    def set_drop_text(self, text: str) -> None:
        self.drop_text = text
        self.update()

    def picture_rect(self) -> QRectF:
        """Where the picture lies, in logical px on whole device pixels."""
        scale = self.devicePixelRatioF()
        width, height = self.width() * scale, self.height() * scale
        if self.fit:
            margin = 0 if self.clean else 2 * round(8 * scale)
            factor = min((width - margin) / WIDTH, (height - margin) / HEIGHT)
            w, h = round(WIDTH * factor), round(HEIGHT * factor)
        else:
            w, h = WIDTH, HEIGHT
        x, y = round((width - w) / 2), round((height - h) / 2)
        if not self.fit:
            x, y = x + round(self._pan.x() * scale), y + round(self._pan.y() * scale)
        return QRectF(x / scale, y / scale, w / scale, h / scale)

    def paintEvent(self, event: QPaintEvent) -> None:
        started, worked = time.perf_counter_ns(), time.thread_time_ns()
        self._take()
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("stage"))
        if self._frame is None:
            self._paint_empty(painter)
        else:
            self._paint_picture(painter)
        if not self.clean:
            self._paint_over(painter)
        painter.end()
        self._choose_scaling((time.thread_time_ns() - worked) / 1e6)
        self._report((time.perf_counter_ns() - started) / 1e6)

    def _take(self) -> None:
        """The newest frame; with no report to make (second window) only look, never take."""
        taken = self._mailbox.take() if self._painted else None
        frame = taken or self._mailbox.latest
        if frame is None or frame is self._frame:
            return
        height, width = frame.pixels.shape[:2]
        if self._frame is None and not self._still.isNull():
            self._fade_from = time.monotonic()
        # The Frame is kept as long as the image: QImage does not own its pixels.
        self._frame = frame
        self._image = QImage(
            frame.pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32
        )

    def _paint_picture(self, painter: QPainter) -> None:
        rect = self.picture_rect()
        smooth = self.fit and self.smooth
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
        painter.drawImage(rect, self._image)
        self._paint_fade(painter, rect)
        if self.banner and self.banner.hold:
            painter.fillRect(rect, theme.color("stage", 0.45))
        if not self.clean and self.fit:
            overlay.round_corners(painter, rect, theme.color("stage"))

    def _paint_fade(self, painter: QPainter, rect: QRectF) -> None:
        """The waiting picture over the first frames, less and less of it."""
        if not self._fade_from:
            return
        left = 1 - (time.monotonic() - self._fade_from) / FADE_S
        if left <= 0:
            self._fade_from, self._still = 0.0, QImage()
            return
        painter.setOpacity(left)
        self._draw_still(painter, rect)
        painter.setOpacity(1.0)
        self.update()

    def _paint_still(self, painter: QPainter) -> None:
        rect = self.picture_rect()
        self._draw_still(painter, rect)
        if not self.clean:
            overlay.round_corners(painter, rect, theme.color("stage"))

    def _draw_still(self, painter: QPainter, rect: QRectF) -> None:
        still = self._still
        factor = max(rect.width() / still.width(), rect.height() / still.height())
        width, height = rect.width() / factor, rect.height() / factor
        left, top = (still.width() - width) / 2, (still.height() - height) * 0.3
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(rect, still, QRectF(left, top, width, height))
        painter.fillRect(rect, theme.color("stage", 0.45))

    def _paint_empty(self, painter: QPainter) -> None:
        if not self._still.isNull():
            self._paint_still(painter)
        elif not self.clean:
            hot = bool(self.drop_text)
            overlay.empty_stage(
                painter, self.picture_rect(), hot, self.empty_title, self.empty_lines
            )

    def _paint_over(self, painter: QPainter) -> None:
        area = self.picture_rect().intersected(QRectF(self.rect()).adjusted(8, 8, -8, -8))
        if self._ring:
            overlay.focus_ring(painter, QRectF(self.rect()))
        if self.hud_visible and self._frame is not None:
            self._paint_hud(painter, area)
        banner = self.banner
        if banner is None and self._frame is not None and self._frame.synthetic:
            banner = Banner("Synthetic weights: a speed test, not a trained model", "warning")
        if banner is not None and (self._frame is not None or not self._still.isNull()):
            overlay.banner(painter, area, banner.text, banner.tone, banner.busy)
        if self.drop_text and (self._frame is not None or not self._still.isNull()):
            overlay.drop_hint(painter, area, self.drop_text)

    def _paint_hud(self, painter: QPainter, area: QRectF) -> None:
        hud = self.hud
        parts = [("LIVE", "text")] if hud.live else []
        parts.append((f"{hud.fps:.0f} fps", "text" if hud.fps >= 22 or not hud.live else "warning"))
        if hud.latency_ms is not None:
            parts.append((f"{hud.latency_ms:.0f} ms", "text"))
        if hud.note:
            parts.append((hud.note, "warning"))
        if not self.smooth:
            parts.append(("fast scaling", "soft"))
        overlay.pill(painter, area.topLeft() + QPointF(12, 12), parts, "danger" if hud.live else "")

    def _choose_scaling(self, work_ms: float) -> None:
        """By processor time, so that a busy machine alone does not make the picture coarse."""
        self._work_ms.append(work_ms)
        if len(self._work_ms) == WINDOW:
            p95 = sorted(self._work_ms)[-3]
            self.smooth = p95 < (SLOW_PAINT_MS if self.smooth else QUICK_PAINT_MS)
            self._work_ms.clear()

    def _report(self, paint_ms: float) -> None:
        if self._frame is None or self._painted is None:
            return
        self._painted(self._frame, time.monotonic_ns(), paint_ms)

    def focusInEvent(self, event: QFocusEvent) -> None:
        tabs = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self._ring = event.reason() in tabs
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if self._frame is None and self._still.isNull():
            self.open_requested.emit()
        elif not self.fit:
            self._drag_from = event.position().toPoint() - self._pan
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag_from is not None:
            self._pan = event.position().toPoint() - self._drag_from
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._drag_from is not None:
            self._drag_from = None
            self.setCursor(Qt.CursorShape.OpenHandCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._frame is not None:
            self.fullscreen_requested.emit()


def blurred(image: QImage) -> QImage:
    """The picture's colours without its shapes; null stays null."""
    for width in BLUR_STEPS if not image.isNull() else ():
        image = image.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
    return image
