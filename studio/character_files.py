"""Characters on disk: starter library, recent files, saving, and the draft that survives a crash.

Knows nothing of widgets or the engine. Errors are EngineError with one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from engine.protocol.character import CharacterSpec
from engine.protocol.character_file import (
    MAX_PICTURE_BYTES,
    SUFFIX,
    read_character,
    write_character,
)
from studio.settings import StudioSettings

STARTERS = Path(__file__).resolve().parents[1] / "assets" / "characters"
FIRST = (
    "eileen"  # on stage at the very first start: a photo, so that nobody takes it for a cartoon app
)
RECENT = 9  # one a key
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif", ".jfif")
AUDIO = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".aiff", ".wma", ".mp4", ".webm")


@dataclass(frozen=True, slots=True)
class Opened:
    spec: CharacterSpec
    picture: bytes
    path: Path


class CharacterFiles:
    """Reads and writes; remembers recent files and the draft beside the settings."""

    def __init__(
        self, settings: StudioSettings, draft: Path | None = None, starters: Path = STARTERS
    ) -> None:
        self._settings = settings
        self._draft = draft
        self._starters = starters

    def library(self) -> list[Path]:
        """The starter characters, by name; empty when the folder is missing."""
        return sorted(self._starters.glob(f"*{SUFFIX}"))

    def is_starter(self, path: Path) -> bool:
        return path.parent == self._starters

    def missing(self) -> str:
        """Name of the last character's file when it is gone, else empty."""
        last = self._settings.text("character")
        return Path(last).name if last and not Path(last).is_file() else ""

    def first(self) -> Path | None:
        """What to show at start: the last character, else the first starter."""
        last = self._settings.text("character")
        if last and Path(last).is_file():
            return Path(last)
        return self.starter()

    def starter(self) -> Path | None:
        """The one that stands in when there is no other; None when the library is missing."""
        library = self.library()
        named = [path for path in library if FIRST in path.stem]
        return (named or library or [None])[0]

    def read(self, path: Path) -> Opened:
        """A character file, or any picture as a new character named after its file."""
        if path.suffix.lower() == SUFFIX:
            spec, picture = read_character(path)
            return Opened(spec, picture, path)
        return Opened(CharacterSpec(name=title_of(path)), read_picture(path), path)

    def write(self, path: Path, spec: CharacterSpec, picture: bytes) -> Path:
        """Save; the suffix is added when it is missing. Returns the path written."""
        target = path if path.suffix.lower() == SUFFIX else path.with_name(path.name + SUFFIX)
        try:
            write_character(target, spec, picture)
        except OSError as error:
            raise EngineError(
                "bad_character",
                f"{target.name} was not saved ({error.strerror})",
                "choose another folder",
            ) from error
        return target

    # --- recent files -------------------------------------------------------------------------
    def recent(self) -> list[Path]:
        return [Path(text) for text in self._settings.strings("recent_characters")]

    def remember(self, path: Path) -> None:
        """Newest first, each once; the last one is what the next start shows."""
        self._settings.set("character", str(path))
        if self.is_starter(path):
            return
        others = [text for text in self._settings.strings("recent_characters") if text != str(path)]
        self._settings.set("recent_characters", [str(path), *others][:RECENT])

    def forget(self, path: Path) -> None:
        rest = [t for t in self._settings.strings("recent_characters") if t != str(path)]
        self._settings.set("recent_characters", rest)

    # --- the draft ------------------------------------------------------------------------------
    def save_draft(self, spec: CharacterSpec, picture: bytes) -> None:
        """What is unsaved, so that a crash or a power cut loses at most the last two seconds."""
        if self._draft is not None:
            self._draft.parent.mkdir(parents=True, exist_ok=True)
            self.write(self._draft, spec, picture)

    def read_draft(self) -> Opened | None:
        if self._draft is None or not self._draft.is_file():
            return None
        try:
            return self.read(self._draft)
        except EngineError:
            self.drop_draft()
            return None

    def drop_draft(self) -> None:
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)


def title_of(path: Path) -> str:
    """A name from a file's: photo_of-ada -> Photo of ada."""
    words = path.stem.replace("_", " ").replace("-", " ").strip()
    return (words[:1].upper() + words[1:])[:120] or "Untitled"


def read_picture(path: Path) -> bytes:
    """A picture file's bytes; its content is for the engine to judge."""
    try:
        size = path.stat().st_size
        if size > MAX_PICTURE_BYTES:
            raise EngineError(
                "bad_picture",
                f"{path.name} has {size / 1e6:.0f} MB; the limit is {MAX_PICTURE_BYTES / 1e6:.0f}",
                "make it smaller",
            )
        return path.read_bytes()
    except OSError as error:
        raise EngineError(
            "bad_picture", f"{path.name} cannot be read ({error.strerror})", "choose another file"
        ) from error
