"""What a person sees when the studio itself has a fault: one line, versions, a report to copy.

Knows nothing of engine errors: those are one line in place. The trace is in the report only.
"""

from __future__ import annotations

import platform
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from studio import icons, theme
from studio.widgets.buttons import label, plain

PACKAGES = ("avatar-studio", "PySide6-Essentials", "numpy", "pyzmq", "msgspec", "sounddevice", "av")
Hook = Callable[[type[BaseException], BaseException, TracebackType | None], None]


def versions() -> list[tuple[str, str]]:
    """(what, version) of everything a fault may depend on."""
    rows = [("Python", platform.python_version()), ("System", platform.platform())]
    for package in PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            rows.append((package, "not installed as a package"))
    return rows


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
    lines = [f"{what}: {found}" for what, found in versions()]
    return "\n".join([*lines, "", "".join(traceback.format_exception(kind, error, trace))])


class ErrorDialog(QDialog):
    """One line, what to do, and the report behind a button."""

    def __init__(self, summary: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Something went wrong")
        self.setMinimumWidth(520)
        self.report = QPlainTextEdit(text)
        self.report.setReadOnly(True)
        self.report.setFont(theme.QFont(theme.MONO, 9))
        self.report.setMinimumHeight(220)
        self.report.setAccessibleName("Report")
        self.report.setToolTip("The report that Copy puts on the clipboard")
        self.report.hide()
        details = plain("Show report", "Versions and trace")
        copy = plain("Copy report", "Copy versions and trace to the clipboard", "copy")
        close = plain("Go on", "Close this message", role="primary")
        details.clicked.connect(lambda: self._toggle())
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        close.clicked.connect(self.accept)
        close.setDefault(True)
        close.setFocus()
        buttons = QHBoxLayout()
        for widget in (details, copy):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 20)
        column.setSpacing(16)
        column.addLayout(_message(summary))
        column.addWidget(self.report)
        column.addLayout(buttons)

    def _toggle(self) -> None:
        self.report.setVisible(self.report.isHidden())
        self.adjustSize()


def _message(summary: str) -> QHBoxLayout:
    mark = QLabel()
    mark.setPixmap(icons.icon("warning", "danger").pixmap(32, 32))
    text = QVBoxLayout()
    text.setSpacing(6)
    text.addWidget(label("The studio met a fault of its own", "title"))
    body = label(f"{summary}\nYour character is kept. Copy the report when you tell us.", "soft")
    body.setWordWrap(True)
    text.addWidget(body)
    text.addStretch(1)
    row = QHBoxLayout()
    row.setSpacing(16)
    row.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
    row.addLayout(text, 1)
    return row


def hook(parent: QWidget, log: Callable[[str], None]) -> Hook:
    """An excepthook: the trace to the log, one dialog at a time to the person."""
    shown: list[ErrorDialog] = []

    def on_error(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        text = report(kind, error, trace)
        log(text)
        if any(dialog.isVisible() for dialog in shown):
            return
        dialog = ErrorDialog(f"{kind.__name__}: {error}"[:300], text, parent)
        shown[:] = [dialog]
        dialog.open()

    return on_error
