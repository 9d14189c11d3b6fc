"""One undoable change of a character; steps of the same control in a row become one.

Knows nothing of widgets or the engine: `apply` does whatever follows from a new spec.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from PySide6.QtGui import QUndoCommand

from engine.protocol.character import CharacterSpec


class CharacterEdit(QUndoCommand):
    """From `before` to `after`; `text` names it in the menu and decides what merges with it."""

    def __init__(
        self,
        before: CharacterSpec,
        after: CharacterSpec,
        apply: Callable[[CharacterSpec], None],
        text: str,
    ) -> None:
        super().__init__(text)
        self.before, self.after = before, after
        self._apply = apply

    def redo(self) -> None:
        self._apply(self.after)

    def undo(self) -> None:
        self._apply(self.before)

    def id(self) -> int:
        return zlib.crc32(self.text().encode()) & 0x7FFFFFFF

    def mergeWith(self, other: QUndoCommand) -> bool:
        """Dragging a slider is one step, not forty."""
        if not isinstance(other, CharacterEdit) or other.text() != self.text():
            return False
        self.after = other.after
        self.setObsolete(self.after == self.before)
        return True
