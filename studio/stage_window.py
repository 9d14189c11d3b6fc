"""StageWindow: nothing but the face, full screen on any screen; a second window, never a reparent.

Knows nothing of the main window but the mailbox they share.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QGuiApplication, QKeyEvent, QMouseEvent, QScreen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from studio.mailbox import Mailbox
from studio.widgets.frame_view import FrameView

HIDE_CURSOR_MS = 1_500


class StageWindow(QWidget):
    """`closed` when it goes; `moved_home` when its screen was unplugged."""

    closed = Signal()
    moved_home = Signal()

    def __init__(self, mailbox: Mailbox, actions: list[QAction]) -> None:
        super().__init__(None, Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint)
        self.setWindowTitle("Avatar Studio: full screen")
        self.setAccessibleName("Full-screen picture")
        self.view = FrameView(mailbox)
        self.view.clean = True
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.view)
        self.addActions(actions)
        self._still = QTimer(self)
        self._still.setSingleShot(True)
        self._still.timeout.connect(lambda: self.setCursor(Qt.CursorShape.BlankCursor))
        self.setMouseTracking(True)
        self.view.setMouseTracking(True)
        self.view.fullscreen_requested.connect(self.close)
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.screenRemoved.connect(self._on_screen_removed)

    def open_on(self, screen: QScreen | None = None) -> None:
        """Full screen on `screen`, by default the one it is on."""
        if screen is not None:
            self.setScreen(screen)
            self.setGeometry(screen.geometry())
        self.showFullScreen()
        self.activateWindow()
        self._still.start(HIDE_CURSOR_MS)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.unsetCursor()
        self._still.start(HIDE_CURSOR_MS)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closed.emit()
        super().closeEvent(event)

    def _on_screen_removed(self, screen: QScreen) -> None:
        if self.isVisible() and self.screen() in (screen, None):
            self.open_on(QGuiApplication.primaryScreen())
            self.moved_home.emit()
