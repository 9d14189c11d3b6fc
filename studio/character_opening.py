"""How a character gets on stage: from a file, a drop, the clipboard or the library.

A new picture is first shown to the engine, which says why it refuses; the old character stays until
the new one is accepted. Knows nothing of widgets: signals say what to show.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMimeData, QObject, QTimer, Signal
from PySide6.QtGui import QImage, QImageWriter

from engine.errors import EngineError
from engine.protocol.character import CharacterSpec
from engine.protocol.character_file import SUFFIX
from engine.protocol.messages import CharacterLoaded, PictureInspected
from studio.character_files import AUDIO, CharacterFiles
from studio.edited_character import EditedCharacter, Source
from studio.session_flow import SessionFlow
from studio.words import sentence

REFRAME_MS = 250  # after the last move of the framing the engine cuts the picture anew
DRAFT_MS = 2_000
PICTURE_CODES = ("bad_picture", "no_face", "face_unusable", "bad_character")


class CharacterOpening(QObject):
    """`noted(lines, tone)` in place; `busy_changed(busy, what)`; `faces_found(faces, index)`."""

    noted = Signal(list, str)
    busy_changed = Signal(bool, str)
    faces_found = Signal(list, int)
    audio_found = Signal(Path)

    def __init__(
        self,
        flow: SessionFlow,
        edited: EditedCharacter,
        files: CharacterFiles,
        may_replace: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._flow, self._edited, self._files = flow, edited, files
        self._may_replace = may_replace
        self._candidate: tuple[CharacterSpec, bytes, Path | None] | None = None
        self._asked = False
        self._faces_wanted = False
        self._last_good: tuple[CharacterSpec, bytes, Source] | None = None
        self._reframe = self._timer(REFRAME_MS, self._load)
        self._draft = self._timer(DRAFT_MS, self.save_draft)
        edited.replaced.connect(self._on_replaced)
        edited.edited.connect(self._on_edited)
        flow.picture_inspected.connect(self._on_inspected)
        flow.character_loaded.connect(self._on_loaded)
        flow.failed.connect(self._on_failed)
        flow.state.engine_changed.connect(lambda _: self._ask())

    def open_path(self, path: Path) -> None:
        """A character file or a picture; audio files become the voice."""
        if path.suffix.lower() in AUDIO:
            self.audio_found.emit(path)
            return
        if not self._may_replace():
            return
        try:
            opened = self._files.read(path)
        except EngineError as error:
            self._files.forget(path)
            self._refuse(str(error))
            return
        if path.suffix.lower() == SUFFIX:
            self._drop_candidate()
            source = Source(path, self._files.is_starter(path))
            self._faces_wanted = not source.starter
            self._edited.open(opened.spec, opened.picture, source)
            self._files.remember(path)
        else:
            self._consider(opened.spec, opened.picture, path)

    def open_bytes(self, picture: bytes, name: str) -> None:
        """A picture that has no file: pasted, or dragged out of a browser."""
        if self._may_replace():
            self._consider(CharacterSpec(name=name), picture, None)

    def open_mime(self, mime: QMimeData | None) -> bool:
        """A drop or the clipboard; False when there is nothing to use in it."""
        if mime is None:  # an empty clipboard
            return False
        paths = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
        if paths:
            self.open_path(paths[0])
            return True
        image = mime.imageData() if mime.hasImage() else None
        if isinstance(image, QImage) and not image.isNull():
            self.open_bytes(png_of(image), "Pasted picture")
            return True
        return False

    def open_first(self) -> bool:
        """At start: the unsaved draft of the last run, else the last character, else a starter."""
        draft = self._files.read_draft()
        if draft is not None:
            self._edited.open(draft.spec, draft.picture, Source(), unsaved=True)
            return True
        gone, path = self._files.missing(), self._files.first()
        if path is not None:
            self.open_path(path)
        if gone:
            self.noted.emit([f"{gone} is gone: open it from where it is now"], "warning")
        return False

    def cancel(self) -> None:
        """Forget the picture being looked at, or go back to the character before this one."""
        if self._candidate is not None:
            self._drop_candidate()
        elif self._flow.state.character.busy and self._last_good is not None:
            self._edited.open(*self._last_good)

    def _drop_candidate(self) -> None:
        self._candidate = None
        self._asked = False
        self.busy_changed.emit(False, "")

    def _consider(self, spec: CharacterSpec, picture: bytes, path: Path | None) -> None:
        self._candidate = (spec, picture, path)
        self._asked = False
        self.noted.emit([], "warning")
        self.busy_changed.emit(True, "Looking for a face")
        self._ask()

    def _ask(self) -> None:
        """Show the waiting picture to the engine as soon as there is one."""
        if self._flow.state.engine.link != "ready" or self._asked:
            return
        if self._candidate is not None:
            self._asked = True
            self._flow.inspect_picture(self._candidate[1])

    def _on_inspected(self, report: PictureInspected) -> None:
        if self._candidate is None:
            if report.faces and self._edited.spec is not None:
                self.faces_found.emit(report.faces, self._edited.spec.face)
            return
        spec, picture, path = self._candidate
        self._drop_candidate()
        if report.refusal:
            self._refuse(report.refusal)
            return
        self._edited.open(spec, picture, Source())
        if path is not None:
            self._files.remember(path)
        self.faces_found.emit(report.faces, 0)
        self.noted.emit(list(report.warnings), "warning")

    def _on_loaded(self, loaded: CharacterLoaded) -> None:
        if self._edited.spec is not None:
            self._last_good = (self._edited.spec, self._edited.picture, self._edited.source)
        if loaded.warnings:
            self.noted.emit(list(loaded.warnings), "warning")
        if self._edited.spec is not None and self._edited.spec.face == 0:
            self.faces_found.emit([loaded.face], 0)
        # Other faces of the picture are looked for when that cannot disturb anybody.
        if self._candidate is None and self._faces_wanted and not self._flow.state.session.live:
            self._faces_wanted = False
            self._flow.inspect_picture(self._edited.picture)

    def _on_failed(self, error: EngineError) -> None:
        about_picture = error.code in PICTURE_CODES
        if self._candidate is not None and self._asked:
            self._drop_candidate()
            self._refuse(str(error))
        elif about_picture:
            self._return()
            self.noted.emit([sentence(str(error))], "danger")

    def _refuse(self, why: str) -> None:
        """Say why; whoever is on stage stays, and an empty stage gets the starter."""
        if self._edited.spec is None:
            self._open_starter()
        self.noted.emit([sentence(why)], "danger")

    def _return(self) -> None:
        """The engine will not have this character: back to the one before, or to the starter."""
        path = self._edited.source.path
        if self._edited.unsaved or self._edited.source.starter:
            return  # nothing that is only here is thrown away
        if path is not None:
            self._files.forget(path)
        if self._last_good is None:
            self._open_starter()
        elif self._last_good[1] != self._edited.picture:
            self._edited.open(*self._last_good)

    def _open_starter(self) -> None:
        starter = self._files.starter()
        if starter is not None:
            self.open_path(starter)

    def _on_replaced(self) -> None:
        self.noted.emit([], "warning")
        self._load()

    def _on_edited(self, before: CharacterSpec, after: CharacterSpec) -> None:
        if before.settings != after.settings:
            self._flow.set_character_settings(after.settings)
        if (before.framing, before.face) != (after.framing, after.face):
            self._reframe.start()
        self._draft.start()

    def _load(self) -> None:
        if self._edited.spec is not None:
            self._flow.open_character(self._edited.spec, self._edited.picture)

    def save_draft(self) -> None:
        """Now, not only two seconds after the last change."""
        if self._edited.spec is not None and self._edited.unsaved:
            self._files.save_draft(self._edited.spec, self._edited.picture)

    def _timer(self, interval_ms: int, act: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(interval_ms)
        timer.timeout.connect(act)
        return timer


def png_of(image: QImage) -> bytes:
    """The image as PNG bytes, losslessly."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, b"png").write(image)
    return bytes(buffer.data().data())
