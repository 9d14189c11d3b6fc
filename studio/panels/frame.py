"""A panel's frame: title bar with float and close, and a scrolling body, as a QDockWidget.

Knows nothing of what is inside.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from studio import icons
from studio.widgets.buttons import label, name

LEAST_WIDTH_PX = 262  # narrower, controls would be cut


def dock(
    panel_id: str, title: str, body: QWidget, toggle: QAction, least_px: int = 0
) -> QDockWidget:
    """A dock whose visibility and `toggle` action follow each other; `least_px` high inside."""
    made = QDockWidget(title)
    made.setObjectName(f"dock_{panel_id}")
    made.setAccessibleName(f"{title} panel")
    made.setTitleBarWidget(_title_bar(title, made))
    frame = QFrame()
    frame.setProperty("role", "panel")
    scroll = QScrollArea()
    scroll.setWidgetResizable(True)
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setMinimumSize(LEAST_WIDTH_PX, least_px)
    scroll.setWidget(body)
    column = QVBoxLayout(frame)
    column.setContentsMargins(12, 12, 6, 12)
    column.addWidget(scroll)
    outer = QWidget()
    around = QVBoxLayout(outer)
    around.setContentsMargins(4, 0, 4, 4)
    around.addWidget(frame)
    made.setWidget(outer)
    made.visibilityChanged.connect(lambda: toggle.setChecked(not made.isHidden()))
    toggle.triggered.connect(lambda shown: made.setVisible(shown))
    return made


def _title_bar(title: str, owner: QDockWidget) -> QWidget:
    bar = QWidget()
    bar.setProperty("role", "dock-title")
    row = QHBoxLayout(bar)
    row.setContentsMargins(16, 4, 8, 4)
    row.setSpacing(0)
    row.addWidget(label(title, "title"), 1)
    row.addWidget(_button("float", f"Float {title.lower()} panel", owner, _toggle_float))
    row.addWidget(_button("close", f"Hide {title.lower()} panel", owner, QDockWidget.hide))
    return bar


def _toggle_float(owner: QDockWidget) -> None:
    owner.setFloating(not owner.isFloating())


def _button(icon: str, text: str, owner: QDockWidget, act: object) -> QToolButton:
    button = QToolButton()
    button.setIcon(icons.icon(icon, "faint"))
    button.setProperty("role", "bare")
    button.setToolTip(text)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setFixedSize(26, 26)
    button.setStyleSheet("padding: 0; min-height: 0;")
    name(button, text)
    assert callable(act)
    button.clicked.connect(lambda: act(owner))
    return button
