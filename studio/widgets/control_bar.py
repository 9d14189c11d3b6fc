"""The bar under the picture: go live, play a sample, mute, record, snapshot, full screen.

Shows the actions of the table; knows nothing of what they do.
"""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from studio import icons
from studio.widgets.buttons import label, push, restyle, tool

NARROW_PX = 560  # below: no words but on the live button


class ControlBar(QWidget):
    """`show_live(live, word)` and `show_recording(text)` change what it says."""

    def __init__(self, actions: dict[str, QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.live = push(actions["go_live"], "live", tone="on_accent")
        self.live.setIconSize(QSize(20, 20))
        self.live.setMinimumWidth(132)
        self.sample = push(actions["play_sample"], "pill")
        self.recording = label("")
        restyle(self.recording, "danger")
        self.recording.setAccessibleName("Length of the recording")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 6, 8, 8)
        row.setSpacing(8)
        for action in ("mute", "monitor"):
            row.addWidget(_round(actions[action]))
        row.addStretch(1)
        row.addWidget(self.live)
        row.addWidget(self.sample)
        row.addStretch(1)
        row.addWidget(self.recording)
        self.record = _round(actions["record"])
        self.record.setProperty("tone", "danger")
        row.addWidget(self.record)
        for action in ("snapshot", "stage"):
            row.addWidget(_round(actions[action]))

    def show_live(self, live: bool, word: str) -> None:
        self.live.setText(" Stop" if live else f" {word}")
        icon = "stop" if live else ("play" if word == "Play" else "live")
        self.live.setIcon(icons.icon(icon, "on_danger" if live else "on_accent"))

    def show_recording(self, text: str) -> None:
        self.recording.setText(text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.sample.setVisible(self.width() >= NARROW_PX)
        super().resizeEvent(event)


def _round(action: QAction) -> QToolButton:
    button = tool(action, "round", 20)
    button.setFixedSize(38, 38)
    return button
