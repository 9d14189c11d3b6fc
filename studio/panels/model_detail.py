"""One model in full: what it is, where it lies, what it needs, its licence, its speed, its buttons.

Shows plain data and reports clicks with the model's name. Decides nothing.
"""

from __future__ import annotations

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.protocol.messages import ModelInfo
from studio import model_words, theme
from studio.models_view import ModelsView
from studio.widgets.buttons import label, plain, restyle
from studio.widgets.elided_label import ElidedLabel
from studio.widgets.memory_bar import MemoryBar
from studio.widgets.note import Note

CAPTION_PX = 62


class ModelDetail(QWidget):
    """`show_model(model, view)`; the signals carry the model's name, `folder_wanted` its path."""

    use_wanted = Signal(str)
    load_wanted = Signal(str)
    unload_wanted = Signal(str)
    measure_wanted = Signal(str)
    folder_wanted = Signal(str)
    cancel_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model: ModelInfo | None = None
        self.name = ElidedLabel("", "title")
        self.badge = label("", "caption")
        self.layout_line = _wrapped("soft")
        self.note = Note()
        self.progress = QProgressBar()
        self.progress_text = ElidedLabel("", "caption")
        self.cancel = plain("Cancel", "Stop what the engine does for this page", role="link")
        self.busy = QWidget()
        self.path = ElidedLabel("", "")
        self.disk = label("", "caption")
        self.bar = MemoryBar()
        self.verdict = label("", "caption")
        self.needs = _wrapped("caption")
        self.licence = _wrapped("")
        self.speed = label("", "")
        self.circumstances = _wrapped("caption")
        self.use = plain("Use", "Put this model on stage", role="primary")
        self.load = plain("Load", "Read its weights now, so that Use takes no time")
        self.measure = plain("Benchmark now", "Measure it for 10 seconds, decoding included")
        self.folder = plain("Open folder", "Show its files", role="link")
        self._captions: dict[QLabel, tuple[QWidget, ...]] = {}
        self._build()
        self._connect()

    def show_model(self, model: ModelInfo, view: ModelsView) -> None:
        self._model = model
        self.name.setText(model_words.title(model))
        word, tone = model_words.badge(model, view)
        self.badge.setText(word)
        restyle(self.badge, tone if tone in ("live", "warning", "danger") else "")
        self.layout_line.setText(model.layout)
        self.layout_line.setVisible(bool(model.layout))
        self.note.say(*model_words.cautions(model, view))
        self._facts(model, view)
        self._speed(view)
        self._busy(view)
        self._buttons(model, view)

    def _facts(self, model: ModelInfo, view: ModelsView) -> None:
        self.path.setText(model_words.shown_path(model.path) or "built in")
        self.path.setToolTip(model.path or "It comes with the engine")
        self.disk.setText(model_words.size(model))
        self.folder.setVisible(bool(model.path) and view.local)
        self.bar.setVisible(model.needs_bytes > 0)
        self.bar.show_need(model.needs_bytes, view.free_bytes)
        word, tone = model_words.verdict(model)
        self.verdict.setText(word)
        self.verdict.setVisible(bool(word))
        restyle(self.verdict, tone)
        self.needs.setText(model_words.needs(model, view))
        self.show_fact(self.needs, not model.problem)
        words, tone = model_words.licence(model)
        self.licence.setText(words)
        restyle(self.licence, tone)
        self.show_fact(self.licence, bool(words))

    def _speed(self, view: ModelsView) -> None:
        assert self._model is not None
        row = view.measured.get(self._model.name)
        self.show_fact(self.speed, row is not None)
        self.circumstances.setVisible(row is not None)
        if row is not None:
            self.speed.setText(model_words.speed(row))
            self.circumstances.setText(model_words.circumstances(row))

    def _busy(self, view: ModelsView) -> None:
        work = view.work
        self.busy.setVisible(work is not None)
        if work is not None:
            self.progress.setRange(0, 1000 if work.fraction > 0 else 0)
            self.progress.setValue(round(1000 * work.fraction))
            self.progress_text.setText(model_words.progress(work))
            self.progress_text.setToolTip(model_words.progress(work))
            self.cancel.setVisible(work.kind != "unload")

    def _buttons(self, model: ModelInfo, view: ModelsView) -> None:
        why = model_words.hindrance(model, view)
        on_stage = model.name == view.on_stage
        self.use.setText("On stage" if on_stage and view.work is None else "Use")
        _offer(self.use, "It is on stage" if on_stage else why, "Put this model on stage")
        self.load.setText("Unload" if model.loaded else "Load")
        self.load.setAccessibleName(self.load.text())
        self.load.setVisible(bool(model.path))
        tip = (
            "Give its memory back" if model.loaded else "Read its weights now, so that Use is quick"
        )
        _offer(self.load, "It is in use on stage" if on_stage else why, tip)
        self.measure.setVisible(not model_words.is_portrait(model))
        talking = "Stop talking first: each would disturb the other" if view.live else ""
        _offer(self.measure, why or talking, "Measure it for 10 seconds, decoding included")

    def show_fact(self, value: QWidget, visible: bool) -> None:
        """A fact with its caption, or neither."""
        for caption, widgets in self._captions.items():
            if value in widgets:
                caption.setVisible(visible)
                value.setVisible(visible)

    # --- building ---
    def _build(self) -> None:
        self.setObjectName("model_detail")
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Progress of the model")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(_row(self.name, self.badge, stretch=self.name))
        column.addWidget(self.layout_line)
        column.addLayout(_row(self.use, self.load, self.measure, end=True))
        column.addWidget(self._busy_row())
        column.addWidget(self.note)
        column.addLayout(self._grid())
        column.addStretch(1)

    def _grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(5)
        grid.setColumnStretch(1, 1)
        files = _row(self.path, self.disk, self.folder, stretch=self.path)
        memory = _row(self.bar, self.verdict, stretch=self.bar)
        for row, (caption, value, key) in enumerate((
            ("Files", files, (self.path,)),
            ("Needs", self.needs, (self.needs,)),
            ("", memory, ()),
            ("Licence", self.licence, (self.licence,)),
            ("Speed", self.speed, (self.speed,)),
            ("", self.circumstances, ()),
        )):  # fmt: skip
            if caption:
                text = label(caption, "caption")
                text.setFixedWidth(CAPTION_PX)
                text.setContentsMargins(0, 0 if value is self.needs else 2, 0, 0)  # one baseline
                grid.addWidget(text, row, 0, theme.Qt.AlignmentFlag.AlignTop)
                self._captions[text] = key
            if isinstance(value, QHBoxLayout):
                grid.addLayout(value, row, 1)
            else:
                grid.addWidget(value, row, 1)
        return grid

    def _busy_row(self) -> QWidget:
        column = QVBoxLayout(self.busy)
        column.setContentsMargins(0, 2, 0, 2)
        column.setSpacing(4)
        column.addLayout(_row(self.progress_text, self.cancel, stretch=self.progress_text))
        column.addWidget(self.progress)
        self.busy.setVisible(False)
        return self.busy

    def _connect(self) -> None:
        self.use.clicked.connect(lambda: self._send(self.use_wanted))
        self.measure.clicked.connect(lambda: self._send(self.measure_wanted))
        self.load.clicked.connect(self._load_or_unload)
        self.folder.clicked.connect(self._open_folder)
        self.cancel.clicked.connect(self.cancel_wanted)

    def _send(self, signal: SignalInstance) -> None:
        if self._model is not None:
            signal.emit(self._model.name)

    def _load_or_unload(self) -> None:
        loaded = self._model is not None and self._model.loaded
        self._send(self.unload_wanted if loaded else self.load_wanted)

    def _open_folder(self) -> None:
        if self._model is not None:
            self.folder_wanted.emit(self._model.path)


def _offer(button: QPushButton, why_not: str, tip: str) -> None:
    """Usable, or disabled with the reason as its tooltip."""
    button.setEnabled(not why_not)
    button.setToolTip(why_not or tip)


def _wrapped(role: str) -> QLabel:
    made = label("", role)
    made.setWordWrap(True)
    return made


def _row(*widgets: QWidget, stretch: QWidget | None = None, end: bool = False) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(8)
    for widget in widgets:
        row.addWidget(widget, 1 if widget is stretch else 0)
    if end:
        row.addStretch(1)
    return row
