"""A list of names, one chosen, that shortens what does not fit with an ellipsis.

The style sheet's own drawing cuts long device names off in the middle of a letter.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

ARROW_PX = 44  # arrow and padding


class NameBox(QComboBox):
    """A QComboBox in every other respect."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        room = self.width() - ARROW_PX
        text = self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)
        option.currentText = text  # type: ignore[attr-defined]
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
