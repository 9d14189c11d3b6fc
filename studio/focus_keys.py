"""Leaves Space to the control that has the keyboard focus, so that it also works without a mouse.

Space is "Go live" everywhere else. Knows nothing of actions.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QApplication, QComboBox

KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Select)
TAKERS = (QAbstractButton, QComboBox, QAbstractItemView)  # line edits claim Space themselves


class FocusKeys(QObject):
    """An event filter for the whole application."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            plain = not event.modifiers()
            if plain and event.key() in KEYS and isinstance(QApplication.focusWidget(), TAKERS):
                event.accept()
                return True
        return False
