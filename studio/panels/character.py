"""Character panel: who is on stage, the library, framing by hand, and how much it moves.

Shows what it is told and reports what a person does; knows nothing of files, engine or undo.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from engine.protocol.character import CharacterSpec, Framing
from engine.protocol.messages import FaceFound
from studio.widgets.buttons import label, plain, push, tool
from studio.widgets.crop_view import ZOOM_HIGH, ZOOM_LOW, CropView
from studio.widgets.elided_label import ElidedLabel
from studio.widgets.note import Note
from studio.widgets.portrait_label import PortraitLabel
from studio.widgets.slider_row import SliderRow
from studio.widgets.tabs import Tabs
from studio.widgets.thumbnail_grid import ThumbnailGrid

# Settings field, name, what it does
MOTION: tuple[tuple[str, str, str], ...] = (
    ("mouth", "Mouth", "How far lips and jaw move"),
    ("head", "Head", "How much the head turns and nods; 0 keeps it still"),
    ("blink", "Blink", "How often the eyes blink; 0 never"),
    ("gaze", "Gaze", "How much the eyes wander; 0 looks straight on"),
    ("expression", "Expression", "How much brows and cheeks follow the voice"),
)
LIBRARY, FRAMING, MOTION_TAB = range(3)


class CharacterPanel(QWidget):
    """Signals carry plain data: ids, Framing, Settings, names."""

    character_chosen = Signal(str)
    name_edited = Signal(str)
    framing_edited = Signal(object)  # Framing or None for automatic
    face_chosen = Signal(int)
    settings_edited = Signal(str, float)  # field of Settings, value
    cancel_requested = Signal()
    retry_requested = Signal()

    def __init__(self, actions: dict[str, QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.portrait = PortraitLabel(QSize(52, 68))
        self.name = QLineEdit()
        self.status = ElidedLabel("", "caption")
        self.note = Note()
        self.progress = QProgressBar()
        self.progress_text = label("", "caption")
        self.cancel = plain("Cancel", "Stop loading this picture", role="link")
        self.busy = QWidget()
        self.library = ThumbnailGrid()
        self.crop = CropView()
        self.zoom = SliderRow(
            "Zoom", "Closer or farther", (ZOOM_LOW, ZOOM_HIGH), 1.0, "%", label_px=44
        )
        self.sliders = {field: SliderRow(title, tip) for field, title, tip in MOTION}
        self.tabs = Tabs("Character pages")
        self._build(actions)
        self._connect()

    # --- what is shown ---
    def show_spec(self, spec: CharacterSpec, status: str) -> None:
        """`status` says in a few words whether it is saved, and where it is from."""
        if self.name.text() != spec.name:
            self.name.setText(spec.name)
            self.name.setCursorPosition(0)
        for field, row in self.sliders.items():
            row.set_value(getattr(spec.settings, field))
        self.crop.set_framing(spec.framing)
        self.zoom.set_value(self.crop.framing.zoom)
        self.status.setText(status)
        self.status.setToolTip("\n".join(filter(None, (status, spec.licence))))

    def show_picture(self, image: QImage, size: QSize) -> None:
        self.portrait.set_image(image)
        self.crop.show_picture(image, size)

    def show_faces(self, faces: list[FaceFound], face: int) -> None:
        self.crop.show_faces(faces, face)
        self.zoom.set_value(self.crop.framing.zoom)
        self._hint.setVisible(len(faces) > 1)

    def show_progress(self, busy: bool, fraction: float, what: str) -> None:
        self.busy.setVisible(busy)
        self.progress.setRange(0, 1000 if fraction > 0 else 0)
        self.progress.setValue(round(fraction * 1000))
        self.progress_text.setText(what or "Looking at the picture")

    def show_note(self, lines: list[str], tone: str = "warning", action: str = "") -> None:
        self.note.say(lines, tone, action)

    # --- building ---
    def _build(self, actions: dict[str, QAction]) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(10)
        column.addLayout(self._card(actions))
        column.addWidget(self.note)
        column.addWidget(self._busy_row())
        self.tabs.add("Library", self._library_page(actions), "Starter characters and pictures")
        self.tabs.add("Framing", self._framing_page(actions), "Which part of the picture is shown")
        self.tabs.add("Motion", self._motion_page(actions), "How much the character moves")
        column.addWidget(self.tabs, 1)

    def _card(self, actions: dict[str, QAction]) -> QHBoxLayout:
        self.name.setPlaceholderText("Name of the character")
        self.name.setAccessibleName("Name of the character")
        self.name.setToolTip("The character's name, saved with it")
        self.name.setMaxLength(120)
        buttons = QHBoxLayout()
        buttons.setSpacing(2)
        buttons.addWidget(self.status, 1)
        for action in ("undo", "redo", "save_character"):
            button = tool(actions[action], icon_px=16)
            button.setFixedSize(26, 26)
            button.setStyleSheet("padding: 0; min-height: 0;")
            buttons.addWidget(button)
        right = QVBoxLayout()
        right.setSpacing(4)
        right.addWidget(self.name)
        right.addLayout(buttons)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(self.portrait)
        row.addLayout(right, 1)
        return row

    def _busy_row(self) -> QWidget:
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Loading the character")
        line = QHBoxLayout()
        line.addWidget(self.progress_text, 1)
        line.addWidget(self.cancel)
        column = QVBoxLayout(self.busy)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(line)
        column.addWidget(self.progress)
        self.busy.setVisible(False)
        return self.busy

    def _library_page(self, actions: dict[str, QAction]) -> QWidget:
        page, column = _page()
        column.addWidget(self.library, 1)
        row = QHBoxLayout()
        row.addWidget(push(actions["open_picture"]), 1)
        row.addWidget(tool(actions["paste_picture"], role=""))
        row.addWidget(tool(actions["open_character"], role=""))
        column.addLayout(row)
        hint = label("Photo, painting or drawing: drop it anywhere in the window.", "caption")
        hint.setWordWrap(True)
        column.addWidget(hint)
        return page

    def _framing_page(self, actions: dict[str, QAction]) -> QWidget:
        page, column = _page()
        self._hint: QLabel = label("Several faces: click the one that shall talk.", "caption")
        self._hint.setVisible(False)
        column.addWidget(self.crop, 20)
        column.addWidget(self._hint)
        column.addWidget(self.zoom)
        column.addWidget(push(actions["reset_framing"], text="Frame automatically"))
        column.addStretch(1)
        return page

    def _motion_page(self, actions: dict[str, QAction]) -> QWidget:
        page, column = _page()
        for row in self.sliders.values():
            column.addWidget(row)
        column.addSpacing(4)
        column.addWidget(push(actions["reset_motion"], text="Reset all to natural"))
        column.addStretch(1)
        return page

    def _connect(self) -> None:
        self.library.chosen.connect(self.character_chosen)
        self.name.editingFinished.connect(lambda: self.name_edited.emit(self.name.text().strip()))
        self.crop.changed.connect(self._on_crop)
        self.crop.face_chosen.connect(self.face_chosen)
        self.zoom.changed.connect(self._on_zoom)
        self.cancel.clicked.connect(self.cancel_requested)
        self.note.acted.connect(self.retry_requested)
        for field, row in self.sliders.items():
            row.changed.connect(lambda value, field=field: self.settings_edited.emit(field, value))

    def _on_crop(self, framing: Framing) -> None:
        self.zoom.set_value(framing.zoom)
        self.framing_edited.emit(framing)

    def _on_zoom(self, zoom: float) -> None:
        if self.crop.ready:
            self.crop.zoom_by(zoom / self.crop.framing.zoom)


def _page() -> tuple[QWidget, QVBoxLayout]:
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return page, column
