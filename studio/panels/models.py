"""Models panel: which models this engine has, one of them in full, and where to put more.

Shows a ModelsView; reports what a person wants. Knows nothing of files, questions or the engine.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QMenu,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from engine.protocol.messages import ModelInfo
from studio import icons, model_words
from studio.models_view import ModelsView
from studio.panels.model_detail import ModelDetail
from studio.widgets.buttons import label, plain, tool
from studio.widgets.elided_label import ElidedLabel
from studio.widgets.model_list import ROW_PX, ModelList, Row

WIDE_PX = 600  # from here on, list and detail lie side by side
LIST_PX = 280
ROWS_WIDE, ROWS_STACKED = 2, 3  # rows of the list that are always seen
DETAIL_PX = 240  # of the detail when it lies below the list


class ModelsPanel(QWidget):
    """`looked(bool)` when it comes into view or leaves it; `forget_wanted(folder)`."""

    looked = Signal(bool)
    folder_wanted = Signal(str)
    forget_wanted = Signal(str)

    def __init__(self, actions: dict[str, QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self._view = ModelsView()
        self.chosen = ""  # name of the model shown in full
        self.list = ModelList()
        self.detail = ModelDetail()
        self.where = ElidedLabel("", "caption")  # a wrapping one would make the whole panel scroll
        self.folders = plain("Folders", "Where models are looked for, and further folders", "open")
        self.headline = label("", "title")
        self.advice = label("", "soft")
        tip = "It is made when it is not there yet"
        self.home = plain("Open that folder", tip, role="link")
        self.card = QFrame()
        self._build()
        self.list.selected.connect(self._choose)
        self.list.activated_id.connect(self._activate)
        self.home.clicked.connect(lambda: self.folder_wanted.emit(self._view.home))

    def show_view(self, view: ModelsView) -> None:
        self._view = view
        models = model_words.ordered(view.models)
        names = [model.name for model in models]
        if self.chosen not in names:
            self.chosen = view.on_stage if view.on_stage in names else (names or [""])[0]
        self.list.show_rows([_row(model, view) for model in models], self.chosen)
        self.list.setVisible(bool(models))
        self._show_empty(view)
        self.where.setText(model_words.places(view))
        self.where.setToolTip(model_words.places(view))
        self._show_chosen()
        self._fill_folders(view)

    def _show_empty(self, view: ModelsView) -> None:
        headline, advice = model_words.empty(view)
        self.card.setVisible(bool(headline))
        self.headline.setText(headline)
        self.advice.setText(advice)
        self.home.setVisible(view.local and bool(view.home) and bool(view.models))

    def _show_chosen(self) -> None:
        model = self._view.find(self.chosen)
        self.detail.setVisible(model is not None)
        if model is not None:
            self.detail.show_model(model, self._view)

    def _choose(self, name: str) -> None:
        self.chosen = name
        self._show_chosen()

    def _activate(self, name: str) -> None:
        self._choose(name)
        if self.detail.use.isEnabled():
            self.detail.use.click()

    def _fill_folders(self, view: ModelsView) -> None:
        """Each folder opens; one that was added here can be taken away again."""
        menu = self.folders.menu()
        menu.clear()
        menu.addAction(self._actions["add_models_folder"])
        menu.addSeparator()
        for folder in dict.fromkeys((*view.folders, *view.added, view.home)):
            if folder and view.local:
                shown = model_words.shown_path(folder)
                menu.addAction(f"Open {shown}", lambda f=folder: self.folder_wanted.emit(f))
            if folder in view.added:
                menu.addAction(
                    icons.icon("close"), f"Stop looking in {shown}",
                    lambda f=folder: self.forget_wanted.emit(f),
                )  # fmt: skip

    # --- building ---
    def _build(self) -> None:
        self.folders.setMenu(QMenu(self.folders))
        self.advice.setWordWrap(True)
        left = QWidget()
        self._left = left
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.list, 1)
        column.addWidget(self.where)
        tools = QHBoxLayout()
        tools.addWidget(self.folders, 1)
        tools.addWidget(tool(self._actions["refresh_models"], role=""))
        column.addLayout(tools)
        shown = QWidget()
        right = QVBoxLayout(shown)
        right.setContentsMargins(0, 0, 8, 0)
        right.setSpacing(10)
        right.addWidget(self.detail)
        right.addWidget(self._card())
        right.addStretch(1)
        self._split = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._split.setContentsMargins(0, 0, 6, 0)
        self._split.setSpacing(16)
        self._right = QScrollArea()  # of its own: the list keeps its place beside a long detail
        self._right.setWidgetResizable(True)
        self._right.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._right.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._right.setWidget(shown)
        self._split.addWidget(left)
        self._split.addWidget(self._right, 1)

    def _card(self) -> QWidget:
        self.card.setProperty("role", "card")
        column = QVBoxLayout(self.card)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.addWidget(self.headline, 1)
        row.addWidget(self.home)
        column.addLayout(row)
        column.addWidget(self.advice)
        return self.card

    # --- events ---
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.looked.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.looked.emit(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= WIDE_PX
        direction = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        self._split.setDirection(direction)
        self._left.setMinimumWidth(LIST_PX if wide else 0)
        self._left.setMaximumWidth(LIST_PX if wide else 16_777_215)
        self.list.setMinimumHeight((ROWS_WIDE if wide else ROWS_STACKED) * ROW_PX)
        self._right.setMinimumHeight(0 if wide else DETAIL_PX)


def _row(model: ModelInfo, view: ModelsView) -> Row:
    word, tone = model_words.badge(model, view)
    mark = "non-commercial" if model.non_commercial else ""
    line = model_words.second_line(model)
    return Row(model.name, model_words.title(model), line, word, tone, mark)
