"""Form of a new run: what makes the videos, which clips, and how often. Emits arguments only.

Knows the clip set as a list; nothing of processes or results.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from studio import icons
from studio.qa_set import LANGUAGES, ClipList, SetClip
from studio.widgets.buttons import label, plain

DRIVES = (  # what the motion hears
    ("audio", "The voice"),
    ("phones", "Perfect alignment"),
    ("loudness", "Loudness only"),
    ("rhubarb", "Rhubarb"),
    ("headaudio", "headaudio"),
)
SEEDS = (("1", "1 seed"), ("1,2,3", "3 seeds: rerun band"))
SPLITS = (("", "All clips"), ("test", "Test clips"), ("tune", "Tuning clips"))
OWN = "own"
SMALL = 3  # clips of a quick look


class QualitySetup(QWidget):
    """`wanted(name, arguments)`: a run to be started; `--out` is for whoever starts it."""

    wanted = Signal(str, list)

    def __init__(self, clips: ClipList, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.clips = clips
        self.folder: Path | None = None
        self.name = QLineEdit()
        self.name.setPlaceholderText("Name of the run")
        self.model = _combo([("portrait", "portrait")], "Model", "What makes the picture")
        self.drive = _combo(
            DRIVES, "Driven by", "What the mouth is moved by; others than the voice need portrait"
        )
        self.seeds = _combo(
            SEEDS,
            "Seeds",
            "Three tell rerun noise from a difference, at three times the time",
        )
        self.split = _combo(SPLITS, "Clips", "Test clips and their characters chose no threshold")
        self.split.addItem("Your own folder…", OWN)
        self.language = _combo([("", "All languages")], "Language", "Only clips of one language")
        self.character = _combo([("", "")], "Character", "Who speaks")
        self.list = QListWidget()
        self.list.setAccessibleName("Clips to run")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setToolTip("Untick what is not wanted; double-click takes one clip alone")
        self.count = label("", "caption")
        self.few = plain(f"{SMALL} shortest", "Tick these clips only: a quick look", role="link")
        self.every = plain("All", "Tick every clip of the list", role="link")
        self.start = plain("Start run", "Render and score these clips in the background", "play",
                           "primary")  # fmt: skip
        self.start.setIcon(icons.icon("play", "on_accent"))
        self._build()
        self._fill()
        self._connect()

    def set_models(self, names: tuple[str, ...]) -> None:
        """The models that this engine has."""
        kept = self.model.currentText()
        self.model.blockSignals(True)
        self.model.clear()
        for name in names or ("portrait",):
            self.model.addItem(name, name)
        self.model.setCurrentIndex(max(self.model.findText(kept), 0))
        self.model.blockSignals(False)
        self._follow_model()

    def arguments(self) -> list[str]:
        """Of `avatar-qa run`, without --out."""
        given = ["--model", self.model.currentText(), "--drive", str(self.drive.currentData())]
        given += ["--seeds", str(self.seeds.currentData())]
        if self.folder is not None:
            return [*given, "--clips", str(self.folder), "--character", self._speaker()]
        chosen = self.chosen()
        if len(chosen) < len(self.clips.clips):
            given += ["--only", *chosen]
        return given

    def chosen(self) -> list[str]:
        """Ids of the ticked clips."""
        items = (self.list.item(i) for i in range(self.list.count()))
        return [str(i.data(Qt.ItemDataRole.UserRole)) for i in items
                if i.checkState() is Qt.CheckState.Checked]  # fmt: skip

    def use_folder(self, folder: Path | None) -> None:
        """A person's own recordings or videos instead of the set."""
        self.folder = folder
        own = folder is not None
        self.split.setToolTip(str(folder) if own else "Test clips chose no threshold")
        for widget in (self.list, self.few, self.every):
            widget.setVisible(not own)
        self.language.setEnabled(not own)
        self._fill_characters()
        self._show_count()

    # --- building ---
    def _build(self) -> None:
        self.name.setAccessibleName("Name of the run")
        self.name.setToolTip("What the run is called; made up when empty")
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(10)
        form.setVerticalSpacing(6)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for text, field in (
            ("Model", self.model), ("Driven by", self.drive), ("Seeds", self.seeds),
            ("Clips", self.split), ("Language", self.language), ("Character", self.character),
        ):  # fmt: skip
            caption = label(text, "soft")
            caption.setMinimumHeight(field.sizeHint().height())
            form.addRow(caption, field)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.name)
        column.addLayout(form)
        column.addWidget(self.list, 1)
        column.addLayout(_row(self.count, self.few, self.every))
        column.addWidget(self.start)

    def _fill(self) -> None:
        for code in self.clips.languages:
            self.language.addItem(LANGUAGES.get(code, code), code)
        self._fill_characters()
        self._fill_list()
        if not self.clips.clips:
            self.count.setText("The clip set is not installed: use your own folder")

    def _fill_characters(self) -> None:
        self.character.blockSignals(True)
        self.character.clear()
        if self.folder is None:
            self.character.addItem("As the set assigns", "")
        for one in self.clips.characters:
            self.character.addItem(f"{one.id.capitalize()} · {one.kind}", one.id)
        self.character.blockSignals(False)

    def _follow_model(self) -> None:
        """Only portrait can be driven by something else than the voice."""
        can = self.model.currentText() == "portrait"
        if not can:
            self.drive.setCurrentIndex(self.drive.findData("audio"))
        self.drive.setEnabled(can)

    def _connect(self) -> None:
        self.model.currentIndexChanged.connect(lambda _: self._follow_model())
        for box in (self.language, self.character):
            box.currentIndexChanged.connect(lambda _: self._fill_list())
        self.split.activated.connect(self._on_split)
        self.list.itemChanged.connect(lambda _: self._show_count())
        self.list.itemDoubleClicked.connect(self._only)
        self.few.clicked.connect(self._tick_shortest)
        self.every.clicked.connect(lambda: self._tick({c.id for c in self._listed()}))
        self.start.clicked.connect(self._want)

    # --- acting ---
    def _on_split(self, _index: int) -> None:
        if self.split.currentData() != OWN:
            self.use_folder(None)
            self._fill_list()
            return
        text = QFileDialog.getExistingDirectory(self, "Your recordings or videos")
        if text:
            self.use_folder(Path(text))
        else:
            self.split.setCurrentIndex(0)

    def _listed(self) -> list[SetClip]:
        return self.clips.matching(
            str(self.split.currentData() or "").replace(OWN, ""),
            str(self.language.currentData() or ""),
            str(self.character.currentData() or ""),
        )

    def _fill_list(self) -> None:
        if self.folder is not None:
            return
        self.list.blockSignals(True)
        self.list.clear()
        for clip in self._listed():
            seconds = f"{clip.seconds:.1f}".rjust(4, "\u2007")  # as wide as a digit
            item = QListWidgetItem(f"{seconds} s   {clip.id}")
            item.setData(Qt.ItemDataRole.UserRole, clip.id)
            item.setToolTip(f"{clip.text}\n{clip.character}, {clip.split}")
            item.setCheckState(Qt.CheckState.Checked)
            self.list.addItem(item)
        self.list.blockSignals(False)
        self._show_count()

    def _tick(self, wanted: set[str]) -> None:
        self.list.blockSignals(True)
        for i in range(self.list.count()):
            item = self.list.item(i)
            on = item.data(Qt.ItemDataRole.UserRole) in wanted
            item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)
        self.list.blockSignals(False)
        self._show_count()

    def _only(self, item: QListWidgetItem) -> None:
        self._tick({str(item.data(Qt.ItemDataRole.UserRole))})

    def _tick_shortest(self) -> None:
        shortest = sorted(self._listed(), key=lambda clip: clip.samples)[:SMALL]
        self._tick({clip.id for clip in shortest})

    def _show_count(self) -> None:
        if self.folder is not None:
            self.count.setText(f"Everything in {self.folder.name}")
            self.start.setEnabled(True)
            return
        chosen = set(self.chosen())
        seconds = sum(clip.seconds for clip in self.clips.clips if clip.id in chosen)
        clips = "1 clip" if len(chosen) == 1 else f"{len(chosen)} clips"
        self.count.setText(f"{clips}, {seconds:.0f} s of speech")
        self.start.setEnabled(bool(chosen))

    def _speaker(self) -> str:
        return str(self.character.currentData() or "mira")

    def _want(self) -> None:
        made_up = f"{self.model.currentText()} {self.drive.currentData()}"
        if self.folder is not None:
            made_up += f" {self.folder.name}"
        self.wanted.emit(self.name.text().strip() or made_up, self.arguments())


def _combo(rows: Iterable[tuple[str, str]], name: str, tip: str) -> QComboBox:
    box = QComboBox()
    for data, text in rows:
        box.addItem(text, data)
    box.setAccessibleName(name)
    box.setToolTip(tip)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(12)
    return box


def _row(*widgets: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(2)
    row.addWidget(widgets[0], 1)
    for widget in widgets[1:]:
        row.addWidget(widget)
    return row
