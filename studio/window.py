"""The main window: viewer in the middle, docks, menus, status bar, drag and drop. Layout only.

Knows nothing of the flow: `app.py` connects what is built here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from PySide6.QtCore import QByteArray, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeySequence,
)
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu, QVBoxLayout, QWhatsThis, QWidget

from studio import actions, icons
from studio.mailbox import Mailbox
from studio.panels.character import CharacterPanel
from studio.panels.frame import dock
from studio.panels.log import LogPanel
from studio.panels.models import ModelsPanel
from studio.panels.timings import TimingsPanel
from studio.panels.voice import VoicePanel
from studio.widgets.control_bar import ControlBar
from studio.widgets.frame_view import FrameView, Painted
from studio.widgets.status_line import StatusLine
from studio.widgets.toast import Toast

LAYOUT_VERSION = 2
FIRST_SIZE = QSize(1440, 900)
SIDE_PX = 312  # a side panel at first
VOICE_PX = 248  # all of its controls, so that only the timings scroll in a low window
MODELS_PX = 330  # one model in full, but for a long note
AREA = Qt.DockWidgetArea
WHAT = {
    "character": "Who is on stage: choose a starter or bring a picture, frame it, set its motion.",
    "voice": "What it says: a microphone or an audio file, and the speaker to hear it through.",
    "timings": "Where the time goes from microphone to picture, and which frames were dropped.",
    "models": "Which models are installed, what they need and may be used for, how fast they are.",
    "log": "What engine and studio report, newest last.",
}


class MainWindow(QMainWindow):
    """`dropped` carries the QMimeData of a drop or a paste; `may_close` may refuse to close."""

    dropped = Signal(object)

    def __init__(self, mailbox: Mailbox, painted: Painted) -> None:
        super().__init__()
        self.setWindowTitle("Avatar Studio")
        self.setWindowIcon(icons.icon("character", "accent"))
        self.setMinimumSize(1000, 600)
        self.setAcceptDrops(True)
        self.setDockOptions(
            QMainWindow.DockOption.AnimatedDocks | QMainWindow.DockOption.AllowTabbedDocks
        )
        self.actions_by_id = actions.build(self)
        self.view = FrameView(mailbox, painted)
        self.bar = ControlBar(self.actions_by_id)
        self.character = CharacterPanel(self.actions_by_id)
        self.voice = VoicePanel(self.actions_by_id)
        self.timings = TimingsPanel(self.actions_by_id)
        self.models = ModelsPanel(self.actions_by_id)
        self.log = LogPanel(self.actions_by_id)
        self.may_close: Callable[[], bool] = lambda: True
        self.docks: dict[str, QDockWidget] = {}
        self._build_center()
        self._build_docks()
        self._build_menus()
        self._build_status()
        self.toast = Toast(self.view)
        self.resize(FIRST_SIZE)
        self._size_docks()
        self._first_layout = self.saveState(LAYOUT_VERSION)
        self.view.setFocus()

    def action(self, action_id: str) -> QAction:
        return self.actions_by_id[action_id]

    # --- building ---
    def _build_center(self) -> None:
        center = QWidget()
        column = QVBoxLayout(center)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.view, 1)
        column.addWidget(self.bar)
        self.setCentralWidget(center)

    def _build_docks(self) -> None:
        for corner, area in (
            (Qt.Corner.TopLeftCorner, AREA.LeftDockWidgetArea),
            (Qt.Corner.BottomLeftCorner, AREA.LeftDockWidgetArea),
            (Qt.Corner.TopRightCorner, AREA.RightDockWidgetArea),
            (Qt.Corner.BottomRightCorner, AREA.RightDockWidgetArea),
        ):
            self.setCorner(corner, area)
        places: tuple[tuple[str, str, QWidget, AREA, int], ...] = (
            ("character", "Character", self.character, AREA.LeftDockWidgetArea, 0),
            ("voice", "Voice", self.voice, AREA.RightDockWidgetArea, VOICE_PX),
            ("timings", "Timings", self.timings, AREA.RightDockWidgetArea, 0),
            ("models", "Models", self.models, AREA.BottomDockWidgetArea, 0),
            ("log", "Log", self.log, AREA.BottomDockWidgetArea, 0),
        )
        for panel_id, title, panel, area, least_px in places:
            made = dock(panel_id, title, panel, self.action(f"panel_{panel_id}"), least_px)
            made.setWhatsThis(WHAT[panel_id])
            self.docks[panel_id] = made
            self.addDockWidget(area, made)
        for panel_id in ("models", "log"):
            self.docks[panel_id].hide()
        self.action("only_face").triggered.connect(self._show_only_face)
        self.action("panel_models").triggered.connect(self._size_models)

    def _size_docks(self) -> None:
        sides = [self.docks["character"], self.docks["voice"]]
        self.resizeDocks(sides, [SIDE_PX, SIDE_PX], Qt.Orientation.Horizontal)
        rights = [self.docks["voice"], self.docks["timings"]]
        self.resizeDocks(rights, [345, 500], Qt.Orientation.Vertical)
        self.resizeDocks([self.docks["log"]], [180], Qt.Orientation.Vertical)

    def _size_models(self, shown: bool) -> None:
        """As high as one model needs, where the face can spare it."""
        made = self.docks["models"]
        wanted = min(MODELS_PX, round(0.38 * self.height()))
        if shown and not made.isFloating() and made.height() < wanted:
            self.resizeDocks([made], [wanted], Qt.Orientation.Vertical)

    def _build_menus(self) -> None:
        self.menus: dict[str, QMenu] = {}
        for title in actions.MENUS:
            menu = self.menuBar().addMenu(title)
            menu.setToolTipsVisible(True)
            self.menus[title] = menu
        self.recent_menu = QMenu("Recent characters", self)
        self.recent_menu.setIcon(icons.icon("recent"))
        self.screen_menu = QMenu("Full screen on", self)
        self.screen_menu.setIcon(icons.icon("fullscreen"))
        for row in actions.TABLE:
            menu = self.menus[row.menu]
            if row.group:
                menu.addSeparator()
            menu.addAction(self.action(row.id))
            if row.id == "open_character":
                menu.addMenu(self.recent_menu)
            if row.id == "stage":
                menu.addMenu(self.screen_menu)
        self.action("whats_this").triggered.connect(QWhatsThis.enterWhatsThisMode)
        self.action("quit").triggered.connect(self.close)
        self.action("reset_window").triggered.connect(self.reset_layout)

    def _build_status(self) -> None:
        bar = self.statusBar()
        bar.setSizeGripEnabled(False)
        self.engine_status = StatusLine("Engine")
        self.voice_status = StatusLine("Voice")
        self.session_status = StatusLine("Session")
        bar.addWidget(self.engine_status)
        bar.addWidget(self.voice_status)
        bar.addPermanentWidget(self.session_status)

    # --- dynamic menus ---
    def fill_menu(
        self, menu: QMenu, rows: list[tuple[str, str, str]], choose: Callable[[int], None]
    ) -> None:
        """(text, tooltip, shortcut) rows; `choose(index)` when one is taken."""
        for old in menu.actions():
            self.removeAction(old)
            old.deleteLater()
        menu.clear()
        menu.setEnabled(bool(rows))
        menu.setToolTipsVisible(True)
        for index, (text, tooltip, shortcut) in enumerate(rows):
            action = QAction(text.replace("&", "&&"), self)
            action.setToolTip(tooltip)
            action.setShortcut(QKeySequence(shortcut))
            action.triggered.connect(lambda _=False, i=index: choose(i))
            menu.addAction(action)
            self.addAction(action)

    # --- layout ---
    def layout_text(self) -> str:
        """Geometry and docks as one line for the settings."""
        parts = (self.saveGeometry(), self.saveState(LAYOUT_VERSION))
        return "|".join(base64.b64encode(part.data()).decode() for part in parts)

    def restore_layout(self, text: str) -> bool:
        """False when there is nothing to restore or it is of another version."""
        try:
            geometry, state = (base64.b64decode(part) for part in text.split("|"))
        except (ValueError, binascii.Error):
            return False
        self.restoreGeometry(QByteArray(geometry))
        return self.restoreState(QByteArray(state), LAYOUT_VERSION)

    def reset_layout(self) -> None:
        self.restoreState(self._first_layout, LAYOUT_VERSION)
        self.action("only_face").setChecked(False)
        self._size_docks()

    def _show_only_face(self, only: bool) -> None:
        if only:
            self._before = self.saveState(LAYOUT_VERSION)
            for made in self.docks.values():
                made.hide()
        else:
            self.restoreState(getattr(self, "_before", self._first_layout), LAYOUT_VERSION)

    # --- drag and drop ---
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if drop_word(event.mimeData()):
            self.view.set_drop_text(drop_word(event.mimeData()))
            event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.view.set_drop_text("")

    def dropEvent(self, event: QDropEvent) -> None:
        self.view.set_drop_text("")
        event.acceptProposedAction()
        self.dropped.emit(event.mimeData())

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.may_close():
            super().closeEvent(event)
        else:
            event.ignore()


def drop_word(mime: QMimeData) -> str:
    """What letting go will do; empty when nothing of it can be used."""
    if mime.hasUrls() and any(url.isLocalFile() for url in mime.urls()):
        return "Drop it here"
    return "Drop the picture" if mime.hasImage() else ""
