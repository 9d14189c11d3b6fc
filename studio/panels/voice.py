"""Voice panel: microphone or audio file, level, gate, mute, scrubbing, the speaker.

Shows VoiceView and levels; reports what a person chooses. Knows nothing of devices.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QSignalBlocker, QSize, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from studio import icons
from studio.state import VoiceView
from studio.widgets.buttons import label, push, rule, tool
from studio.widgets.elided_label import ElidedLabel
from studio.widgets.level_meter import LevelMeter
from studio.widgets.name_box import NameBox
from studio.widgets.note import Note
from studio.widgets.slider_row import SliderRow
from studio.widgets.tabs import Tabs
from studio.widgets.waveform import Waveform, clock_text

DEFAULT_DEVICE = "System default"
GATE_OFF_DB, GATE_LOW_DB = -100.0, -70.0  # the slider's lowest step switches the gate off
MICROPHONE, FILE = range(2)


class GateRow(SliderRow):
    """Noise gate in dBFS; the lowest step is off."""

    def text(self) -> str:
        return "Off" if self.value <= GATE_LOW_DB else f"{self.slider.value()} dB"


class VoicePanel(QWidget):
    """Signals carry names, dB and sample positions."""

    source_chosen = Signal(str)  # "microphone" or "file"
    microphone_chosen = Signal(str)  # "" is the default device
    speaker_chosen = Signal(str)
    gate_edited = Signal(float)
    sought = Signal(int)

    def __init__(self, actions: dict[str, QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = ""
        self.tabs = Tabs("Source of the voice")
        self.microphones = _devices("Microphone")
        self.speakers = _devices("Speaker")
        self.meter = LevelMeter()
        limits = (GATE_LOW_DB, -20.0)
        self.gate = GateRow("Noise gate", "Quieter sound counts as silence", limits, -60.0, "dB")
        self.note = Note()
        self.file_name = ElidedLabel("No audio file yet", "soft")
        self.waveform = Waveform()
        self.times = label("0:00.0", "caption")
        self._build(actions)
        self._connect()

    def show_voice(self, view: VoiceView) -> None:
        if view.kind != self._kind:  # else a person may be looking at the other page
            self._kind = view.kind
            self.tabs.show_page(FILE if view.kind == "file" else MICROPHONE)
        _fill(self.microphones, view.microphones, view.microphone, "No microphone found")
        _fill(self.speakers, view.speakers, view.speaker, "No speaker found")
        self.gate.set_value(max(view.gate_db, GATE_LOW_DB))
        self.meter.set_gate_db(view.gate_db)
        self.meter.setEnabled(not view.muted)
        self._show_note(view)
        name = Path(view.file).name if view.file else "No audio file yet"
        self.file_name.setText(name)
        self.file_name.setToolTip(view.file)

    def show_wave(self, low: np.ndarray, high: np.ndarray, duration: int) -> None:
        self.waveform.show_file(low, high, duration)
        self.show_position(0)

    def show_level(self, rms_db: float, peak_db: float, gate_open: bool) -> None:
        self.meter.set_level(rms_db, peak_db, gate_open)

    def show_live(self, live: bool) -> None:
        self.play.setIcon(icons.icon("stop" if live else "play"))

    def show_position(self, sample: int) -> None:
        self.waveform.set_position(sample)
        total = clock_text(self.waveform.duration)
        self.times.setText(f"{clock_text(self.waveform.position)} / {total}")

    def _show_note(self, view: VoiceView) -> None:
        lost = view.device_lost
        if not view.microphones and (not lost or lost.startswith("microphone")):
            text = "No microphone on this machine. Use an audio file, or plug one in."
            self.note.say([text], "info")
        elif lost:
            self.note.say([lost[:1].upper() + lost[1:]], "danger")
        elif view.muted:
            self.note.say(["Muted: the character hears silence."], "info")
        else:
            self.note.say([])

    # --- building ---
    def _build(self, actions: dict[str, QAction]) -> None:
        self.tabs.add("Microphone", self._microphone_page(actions), "Speak with your own voice")
        self.tabs.add("Audio file", self._file_page(actions), "Let it speak a recording")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(10)
        column.addWidget(self.tabs)
        column.addWidget(rule())
        row = QHBoxLayout()
        row.setSpacing(6)
        caption = label("Speaker")
        caption.setFixedWidth(76)
        caption.setBuddy(self.speakers)
        row.addWidget(caption)
        row.addWidget(self.speakers, 1)
        row.addWidget(tool(actions["monitor"], role=""))
        column.addLayout(row)
        column.addStretch(1)

    def _microphone_page(self, actions: dict[str, QAction]) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self.microphones, 1)
        row.addWidget(tool(actions["refresh_devices"], role=""))
        row.addWidget(tool(actions["mute"], role=""))
        column.addLayout(row)
        column.addWidget(self.meter)
        column.addWidget(self.gate)
        column.addWidget(self.note)
        column.addStretch(1)
        return page

    def _file_page(self, actions: dict[str, QAction]) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        top = QHBoxLayout()
        top.addWidget(self.file_name, 1)
        top.addWidget(push(actions["open_audio"], text="Choose…", tone=""))
        column.addLayout(top)
        column.addWidget(self.waveform)
        row = QHBoxLayout()
        self.play = tool(actions["go_live"], role="")
        self.play.setIconSize(QSize(16, 16))
        row.addWidget(self.play)
        row.addWidget(self.times, 1)
        row.addWidget(push(actions["play_sample"], "link", tone=""))
        column.addLayout(row)
        column.addStretch(1)
        return page

    def _connect(self) -> None:
        self.tabs.picked.connect(lambda i: self.source_chosen.emit(("microphone", "file")[i]))
        self.microphones.activated.connect(
            lambda: self.microphone_chosen.emit(self.microphones.currentData() or "")
        )
        self.speakers.activated.connect(
            lambda: self.speaker_chosen.emit(self.speakers.currentData() or "")
        )
        self.gate.changed.connect(self._on_gate)
        self.waveform.sought.connect(self._on_seek)

    def _on_gate(self, db: float) -> None:
        value = GATE_OFF_DB if db <= GATE_LOW_DB else db
        self.meter.set_gate_db(value)
        self.gate_edited.emit(value)

    def _on_seek(self, sample: int) -> None:
        self.show_position(sample)
        self.sought.emit(sample)


def _devices(name: str) -> NameBox:
    box = NameBox()
    box.setAccessibleName(name)
    box.setToolTip(f"{name} by its name")
    box.setSizeAdjustPolicy(NameBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(8)
    return box


def _fill(box: NameBox, names: tuple[str, ...], current: str, empty: str) -> None:
    """Names in, the current one kept even while its device is gone."""
    wanted = [(DEFAULT_DEVICE, ""), *((n, n) for n in names)] if names else [(empty, "")]
    if current and current not in names:
        wanted.append((f"{current} (missing)", current))
    with QSignalBlocker(box):
        if [(box.itemText(i), box.itemData(i)) for i in range(box.count())] != wanted:
            box.clear()
            for text, data in wanted:
                box.addItem(text, data)
        box.setCurrentIndex(max(box.findData(current), 0))
    box.setToolTip(box.currentText())
    box.setEnabled(bool(names))
