"""The character being edited: spec, picture, its file, and the undo stack of every change.

Knows nothing of widgets, engine or disk: signals say what changed, others act on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoStack

from engine.protocol.character import CharacterSpec, Framing, Settings
from studio.undo import CharacterEdit

UNDO_STEPS = 100


@dataclass(frozen=True, slots=True)
class Source:
    """Where a character came from: a file that Save writes, or a starter that it does not."""

    path: Path | None = None
    starter: bool = False


class EditedCharacter(QObject):
    """`replaced`: another character; `edited(before, after)`: a change, an undo or a redo."""

    replaced = Signal()
    edited = Signal(object, object)  # CharacterSpec, CharacterSpec
    unsaved_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.spec: CharacterSpec | None = None
        self.picture = b""
        self.source = Source()
        self.undo_stack = QUndoStack(self)
        self.undo_stack.setUndoLimit(UNDO_STEPS)
        self.undo_stack.cleanChanged.connect(self._on_clean)

    @property
    def unsaved(self) -> bool:
        return not self.undo_stack.isClean()

    def open(
        self, spec: CharacterSpec, picture: bytes, source: Source, unsaved: bool = False
    ) -> None:
        """Another character; the old one's undo steps are gone."""
        self.undo_stack.clear()
        if unsaved:
            self.undo_stack.resetClean()
        self.spec, self.picture, self.source = spec, picture, source
        self.replaced.emit()

    def saved(self, path: Path) -> None:
        """It now is what `path` holds."""
        self.source = Source(path)
        self.undo_stack.setClean()
        self.unsaved_changed.emit(False)

    def rename(self, name: str) -> None:
        if name:
            self._change("Rename", name=name)

    def set_framing(self, framing: Framing | None) -> None:
        self._change("Framing" if framing else "Reset framing", framing=framing)

    def set_face(self, face: int) -> None:
        """Another face of the same picture, framed automatically."""
        self._change("Choose face", face=face, framing=None)

    def set_intensity(self, field: str, value: float) -> None:
        """One field of Settings (mouth, head, blink, gaze, expression), 0..2."""
        if self.spec is not None:
            settings = msgspec.structs.replace(self.spec.settings, **{field: value})
            self._change(field.capitalize(), settings=settings)

    def reset_motion(self) -> None:
        if self.spec is not None:
            self._change("Reset motion", settings=Settings(seed=self.spec.settings.seed))

    def _on_clean(self, clean: bool) -> None:
        self.unsaved_changed.emit(not clean)

    def _change(self, text: str, **fields: object) -> None:
        if self.spec is None:
            return
        after = msgspec.structs.replace(self.spec, **fields)
        if after != self.spec:
            self.undo_stack.push(CharacterEdit(self.spec, after, self._apply, text))

    def _apply(self, spec: CharacterSpec) -> None:
        before, self.spec = self.spec, spec
        if before != spec:
            self.edited.emit(before, spec)
