"""Toast: one line that says what has happened, with at most one thing to do, and goes by itself.

Never modal and never takes the focus. Errors stay until they are closed or replaced.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from studio import icons

SHOW_MS = 5_000
ERROR_MS = 15_000
TOP_PX = 56  # below the figures over the picture
ICONS = {"info": ("info", "accent"), "done": ("check", "live"), "error": ("warning", "danger")}


class Toast(QFrame):
    """Lies at the top of `over`, centred; `say` replaces what was there."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.setProperty("role", "toast")
        self.setAccessibleName("Message")
        self._over = over
        self._icon = QLabel()
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.action = QPushButton()
        self.action.setProperty("role", "link")
        self.close_button = QToolButton()
        self._do: Callable[[], None] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.hide)
        self._build()
        over.installEventFilter(self)
        self.hide()

    def _build(self) -> None:
        self.close_button.setIcon(icons.icon("close", "soft"))
        self.close_button.setProperty("role", "bare")
        self.close_button.setToolTip("Dismiss this message")
        self.close_button.setAccessibleName("Dismiss message")
        self.close_button.clicked.connect(self.hide)
        self.action.setAccessibleName("Message action")
        self.action.setToolTip("Do what the message offers")
        self.action.clicked.connect(self._act)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 6, 6)
        row.setSpacing(10)
        for widget in (self._icon, self.text, self.action, self.close_button):
            row.addWidget(widget, 1 if widget is self.text else 0)

    def say(
        self, text: str, kind: str = "info", action: str = "", do: Callable[[], None] | None = None
    ) -> None:
        """Show `text`; `kind` is info, done or error; `action` names the button that calls `do`."""
        name, tone = ICONS[kind]
        self._icon.setPixmap(icons.icon(name, tone).pixmap(18, 18))
        self.text.setText(text)
        self._do = do
        self.action.setText(action)
        self.action.setVisible(bool(action))
        self.setAccessibleDescription(text)
        self._place()
        self.show()
        self.raise_()
        self._timer.start(ERROR_MS if kind == "error" else SHOW_MS)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def _act(self) -> None:
        self.hide()
        if self._do is not None:
            self._do()

    def _place(self) -> None:
        over = self._over
        metrics = self.text.fontMetrics()
        wanted = metrics.horizontalAdvance(self.text.text()) + 100
        if self.action.text():
            wanted += self.action.sizeHint().width() + 10
        width = min(wanted, over.width() - 32, 560)
        self.setFixedWidth(max(width, 160))
        layout = self.layout()
        assert layout is not None
        self.setFixedHeight(max(layout.totalHeightForWidth(self.width()), 44))
        self.move((over.width() - self.width()) // 2, TOP_PX)
