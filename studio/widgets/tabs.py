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
        self._silent = False
        self.bar.currentChanged.connect(self._changed)

    def add(self, title: str, page: QWidget, tooltip: str) -> None:
        self._silent = True  # the first tab becomes the current one
        self.pages.addWidget(page)
        index = self.bar.addTab(title)
        self._silent = False
        self.bar.setTabToolTip(index, tooltip)

    def show_page(self, index: int) -> None:
        self._silent = True
        self.bar.setCurrentIndex(index)
        self._silent = False

    def _changed(self, index: int) -> None:
        self.pages.setCurrentIndex(index)
        if not self._silent:
            self.picked.emit(index)
