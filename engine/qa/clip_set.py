"""The QA set: which clips are spoken by whom in which character, read from `assets/qa` and checked.

Every file is named by its SHA-256, and the set by one hash over all of them, so that results can
say what they were made from. Knows nothing of metrics. `user_clips.py` makes the same of a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from engine.errors import EngineError
from engine.qa.alignment import Alignment, read_alignment

ROOT = Path(__file__).resolve().parents[2]
ASSETS_QA = ROOT / "assets" / "qa"
FORMAT = 1
Split = Literal["tune", "test", "user"]
Heard = Literal["no", "speaker", "unknown"]
REMEDY = "reinstall the program or take another set"


class CharacterRow(msgspec.Struct, frozen=True):
    """A character of the set; `file` is relative to the program's folder."""

    id: str
    kind: Literal["photo", "painting", "drawing"]
    split: Literal["tune", "test"]
    file: str
    file_sha256: str


class ClipRow(msgspec.Struct, frozen=True, kw_only=True):
    """A clip of the set as `set.json` has it; files are relative to the set's folder."""

    id: str
    file: str
    file_sha256: str
    alignment: str
    alignment_sha256: str
    language: str
    speaker: str
    source: str
    licence: str
    text: str
    character: str
    split: Literal["tune", "test"]
    exact_times: bool
    heard_in_training: Literal["no", "speaker"]
    samples: int
    bilabials: int
    rounded: int
    longest_pause_ms: int


class SetFile(msgspec.Struct, frozen=True, kw_only=True):
    """All of `set.json`. `margins`: equivalence margins, fixed with the version."""

    format: int
    version: str
    hash: str
    margins: dict[str, float]
    characters: list[CharacterRow]
    clips: list[ClipRow]


@dataclass(frozen=True, slots=True)
class CharacterEntry:
    """`split` "tune" may choose thresholds; "test" never."""

    id: str
    kind: str  # photo, painting, drawing or user
    split: Split
    file: Path


@dataclass(frozen=True, slots=True)
class Clip:
    """One utterance. `samples` at 48 kHz; `video` is a finished video to score instead of ours."""

    id: str
    audio: Path
    language: str
    speaker: str
    source: str
    licence: str
    text: str
    character: str
    split: Split
    exact_times: bool
    heard_in_training: Heard
    samples: int
    alignment_file: Path | None
    no_phones: str = ""  # why there is no alignment
    video: Path | None = None
    aligned: Alignment | None = None  # where it was made just now instead of read

    def alignment(self) -> Alignment | None:
        """Its phones, or None where `no_phones` says why. Raises EngineError on a bad file."""
        if self.aligned is not None or self.alignment_file is None:
            return self.aligned
        return read_alignment(self.alignment_file)


@dataclass(frozen=True, slots=True)
class ClipSet:
    """Clips in the order of the file."""

    version: str
    hash: str
    clips: tuple[Clip, ...]
    characters: dict[str, CharacterEntry]
    margins: dict[str, float]

    def subset(
        self,
        split: str | None = None,
        language: str | None = None,
        ids: Collection[str] | None = None,
    ) -> ClipSet:
        """The clips that match all that is given; the hash still names the whole set.

        Raises:
            EngineError: "bad_input" when no clip is left or an id is unknown.
        """
        if ids is not None and (unknown := sorted(set(ids) - {c.id for c in self.clips})):
            raise EngineError("bad_input", f"no clip is called {unknown[0]!r}", "see set.json")
        kept = tuple(
            c
            for c in self.clips
            if split in (None, c.split)
            and language in (None, c.language)
            and (ids is None or c.id in ids)
        )
        if not kept:
            asked = f"split {split or 'any'}, language {language or 'any'}"
            raise EngineError("bad_input", f"no clip of the set has {asked}", "ask for less")
        return replace(self, clips=kept)


def load_set(folder: Path = ASSETS_QA, verify: bool = True) -> ClipSet:
    """The set in a folder; `verify` reads every file once (4 MB) and checks its SHA-256.

    Raises:
        EngineError: "missing_asset" for a missing file, "bad_config" for a damaged one: one line.
    """
    path = folder / "set.json"
    try:
        data = msgspec.json.decode(path.read_bytes(), type=SetFile)
    except FileNotFoundError as error:
        raise EngineError("missing_asset", f"{path} is missing", REMEDY) from error
    except msgspec.DecodeError as error:
        raise EngineError("bad_config", f"{path.name} is damaged: {error}", REMEDY) from error
    if data.format != FORMAT:
        problem = f"{path.name} has format {data.format}, this program reads {FORMAT}"
        raise EngineError("bad_config", problem, "update the program")
    if (found := set_hash(data)) != data.hash:
        problem = f"{path.name} was changed: its hash is {found[:12]}, it says {data.hash[:12]}"
        raise EngineError("bad_config", problem, REMEDY)
    if verify:
        for name, expected in _files(data, folder):
            check_file(name, expected)
    return ClipSet(
        version=data.version,
        hash=data.hash,
        clips=tuple(_clip(row, folder) for row in data.clips),
        characters={
            c.id: CharacterEntry(c.id, c.kind, c.split, ROOT / c.file) for c in data.characters
        },
        margins=data.margins,
    )


def set_hash(data: SetFile) -> str:
    """Hex SHA-256 over everything but the hash itself, in the file's order."""
    fields: dict[str, Any] = msgspec.to_builtins(data)
    del fields["hash"]
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()


def check_file(path: Path, expected: str) -> None:
    """Raises EngineError when the file is missing or is not the one of the set."""
    if not path.is_file():
        raise EngineError("missing_asset", f"{path} is missing", REMEDY)
    if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
        problem = f"{path.name} is not the file of the set (its SHA-256 is another)"
        raise EngineError("bad_config", problem, REMEDY)


def _files(data: SetFile, folder: Path) -> list[tuple[Path, str]]:
    pairs = [(folder / c.file, c.file_sha256) for c in data.clips]
    pairs += [(folder / c.alignment, c.alignment_sha256) for c in data.clips]
    return pairs + [(ROOT / c.file, c.file_sha256) for c in data.characters]


def _clip(row: ClipRow, folder: Path) -> Clip:
    return Clip(
        id=row.id,
        audio=folder / row.file,
        language=row.language,
        speaker=row.speaker,
        source=row.source,
        licence=row.licence,
        text=row.text,
        character=row.character,
        split=row.split,
        exact_times=row.exact_times,
        heard_in_training=row.heard_in_training,
        samples=row.samples,
        alignment_file=folder / row.alignment,
    )
