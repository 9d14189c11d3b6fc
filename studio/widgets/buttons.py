"""Buttons that show an action of the table, and labels in the theme's roles.

A button takes the focus by Tab but not by a click, so that Space stays with "Go live" for whoever
uses the mouse and presses the button for whoever uses the keyboard.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QFrame, QLabel, QPushButton, QToolButton

from studio import icons


def tool(action: QAction, role: str = "bare", icon_px: int = 18) -> QToolButton:
    """An icon button that follows the action in everything."""
    button = QToolButton()
    button.setDefaultAction(action)
    button.setProperty("role", role)
    button.setIconSize(QSize(icon_px, icon_px))
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    name(button, action.text().rstrip("…"))
    return button


def push(action: QAction, role: str = "", text: str = "", tone: str = "text") -> QPushButton:
    """A text button that triggers the action and follows its enabled and checked state."""
    words = text or action.text()
    button = QPushButton(f" {words}" if tone else words)  # the space sets the icon off
    button.setProperty("role", role)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setCheckable(action.isCheckable())
    if tone:
        button.setIcon(icons.icon(str(action.property("icon_name")), tone))
        button.setIconSize(QSize(18, 18))
    name(button, action.text().rstrip("…"))

    def follow() -> None:
        button.setEnabled(action.isEnabled())
        button.setChecked(action.isChecked())
        button.setToolTip(action.toolTip())

    follow()
    action.changed.connect(follow)
    button.clicked.connect(lambda: action.trigger())
    return button


def plain(text: str, tooltip: str, icon: str = "", role: str = "") -> QPushButton:
    """A button of its own, for what is no action of the table."""
    button = QPushButton(f" {text}" if icon else text)
    button.setProperty("role", role)
    button.setToolTip(tooltip)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    if icon:
        button.setIcon(icons.icon(icon))
    name(button, text or tooltip)
    return button


def name(button: QAbstractButton, text: str) -> None:
    button.setAccessibleName(text)


def label(text: str, role: str = "") -> QLabel:
    made = QLabel(text)
    made.setProperty("role", role)
    return made


def rule() -> QFrame:
    """A hairline between two groups."""
    line = QFrame()
    line.setProperty("role", "rule")
    return line


def restyle(widget: QLabel | QFrame, tone: str) -> None:
    """Give a widget another tone of its role (the sheet is read again for it alone)."""
    if widget.property("tone") != tone:
        widget.setProperty("tone", tone)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
