"""Tabs: a row of names and one page below it; what a person calls a segmented control.

Knows nothing of its pages.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QTabBar, QVBoxLayout, QWidget


class Tabs(QWidget):
    """`picked(index)` when a person changes the page; `show_page` is silent."""

    picked = Signal(int)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = QTabBar()
        self.bar.setExpanding(True)
        self.bar.setDocumentMode(True)
        self.bar.setAccessibleName(name)
        self.pages = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.bar)
        column.addWidget(self.pages, 1)
        self.bar.currentChanged.connect(self.pages.setCurrentIndex)
        self.bar.tabBarClicked.connect(self._picked)

    def add(self, title: str, page: QWidget, tooltip: str) -> None:
        self.pages.addWidget(page)
        index = self.bar.addTab(title)
        self.bar.setTabToolTip(index, tooltip)

    def show_page(self, index: int) -> None:
        self.bar.setCurrentIndex(index)

    def _picked(self, index: int) -> None:
        if index >= 0:
            self.picked.emit(index)
