"""Questions that need an answer now: which file, and whether to lose something. Nothing routine.

Knows nothing of what is done with the answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from engine.protocol.character_file import SUFFIX
from studio import icons
from studio.character_files import AUDIO, PICTURES

Answer = Literal["save", "discard", "cancel"]


def _filter(title: str, suffixes: tuple[str, ...]) -> str:
    patterns = " ".join(f"*{s} *{s.upper()}" for s in suffixes)
    return f"{title} ({patterns});;All files (*)"


def choose_picture(parent: QWidget, folder: str = "") -> Path | None:
    return _open(parent, "Open picture", folder, _filter("Pictures", PICTURES))


def choose_character(parent: QWidget, folder: str = "") -> Path | None:
    return _open(parent, "Open character", folder, _filter("Characters", (SUFFIX,)))


def choose_audio(parent: QWidget, folder: str = "") -> Path | None:
    return _open(parent, "Open audio file", folder, _filter("Audio", AUDIO))


def choose_save(parent: QWidget, title: str, name: str, suffix: str) -> Path | None:
    """A path to write to, with `suffix` when the person gave none."""
    text, _ = QFileDialog.getSaveFileName(parent, title, name, _filter(title, (suffix,)))
    if not text:
        return None
    path = Path(text)
    return path if path.suffix else path.with_suffix(suffix)


def choose_folder(parent: QWidget, title: str) -> Path | None:
    text = QFileDialog.getExistingDirectory(parent, title)
    return Path(text) if text else None


def ask_unsaved(parent: QWidget, name: str) -> Answer:
    """What to do with changes that would be lost."""
    box = QMessageBox(parent)
    box.setWindowTitle("Unsaved changes")
    box.setText(f"Save the changes to “{name[:60]}”?")
    box.setInformativeText("Otherwise its framing, name and motion go back to what was saved.")
    save = box.addButton("Save", QMessageBox.ButtonRole.AcceptRole)
    discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
    box.addButton("Cancel", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(save)
    box.exec()
    answers: dict[object, Answer] = {save: "save", discard: "discard"}
    return answers.get(box.clickedButton(), "cancel")


def ask_stop_recording(parent: QWidget) -> bool:
    """True when the studio may close although a recording runs."""
    box = QMessageBox(parent)
    box.setWindowTitle("Recording")
    box.setText("A recording is running.")
    box.setInformativeText("Stop it, keep the file and quit?")
    stop = box.addButton("Stop and quit", QMessageBox.ButtonRole.AcceptRole)
    box.addButton("Go on recording", QMessageBox.ButtonRole.RejectRole)
    box.exec()
    return box.clickedButton() is stop


def ask_licence(parent: QWidget, name: str, licence: str) -> bool:
    """True when a model that is not for commercial use may be read all the same."""
    return _ask(
        parent, "Licence", ("warning", "warning"),
        f"“{name[:60]}” is not for commercial use.",
        f"Its files state: {licence}.\n\nWhat it makes may be shown and used only as that licence "
        "allows.",
        "Use it non-commercially",
    )  # fmt: skip


def ask_noise(parent: QWidget, name: str) -> bool:
    """True when a model without weights shall be shown all the same."""
    return _ask(
        parent, "Random weights", ("info", "accent"),
        f"“{name[:60]}” has random weights.",
        "Its picture is noise, not a face. It shows how fast this machine would be with real "
        "weights of that size.",
        "Show the noise",
    )  # fmt: skip


def _ask(
    parent: QWidget, title: str, icon: tuple[str, str], text: str, more: str, accept: str
) -> bool:
    """True when `accept` was pressed; Cancel is what Enter does. `icon`: name and colour."""
    box = QMessageBox(parent)
    box.setWindowTitle(title)
    box.setIconPixmap(icons.icon(*icon).pixmap(32, 32))
    box.setText(text)
    box.setInformativeText(more)
    accepted = box.addButton(accept, QMessageBox.ButtonRole.AcceptRole)
    cancel = box.addButton("Cancel", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(cancel)
    box.exec()
    return box.clickedButton() is accepted


def _open(parent: QWidget, title: str, folder: str, name_filter: str) -> Path | None:
    text, _ = QFileDialog.getOpenFileName(parent, title, folder, name_filter)
    return Path(text) if text else None
