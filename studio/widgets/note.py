"""Note: a message in place, where the thing it is about is; a tone, an icon, perhaps a button.

For routine errors and warnings, which are never modal. Hidden when there is nothing to say.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from studio import icons
from studio.widgets.buttons import restyle

TONES = {
    "warning": ("warning", "warning"),
    "danger": ("warning", "danger"),
    "info": ("info", "accent"),
}


class Note(QFrame):
    """`say(lines, tone, action)` shows it, `say([])` hides it; `acted` when its button is used."""

    acted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "note")
        self._icon = QLabel()
        self._icon.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = QPushButton()
        self.button.setProperty("role", "link")
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.clicked.connect(self.acted)
        column = QVBoxLayout()
        column.setSpacing(2)
        column.addWidget(self.text)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 8, 10, 8)
        row.setSpacing(8)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(column, 1)
        self.say([])

    def say(self, lines: list[str], tone: str = "warning", action: str = "") -> None:
        text = "\n".join(lines)
        icon, color = TONES[tone]
        self._icon.setPixmap(icons.icon(icon, color).pixmap(16, 16))
        self.text.setText(text)
        self.button.setText(action)
        self.button.setVisible(bool(action))
        self.button.setAccessibleName(action or "Note action")
        self.button.setToolTip(action or "Act on this note")
        self.setAccessibleName(text or "Note")
        restyle(self, tone)
        self.setVisible(bool(lines))
