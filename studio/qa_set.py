"""The frozen clip set as a list to choose from: clips, languages, characters. Read, not checked.

The child process checks every hash before it renders. Knows nothing of runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from studio.qa_runs import ASSETS_QA

LANGUAGES = {
    "cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French",
    "it": "Italian", "ja": "Japanese", "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
}  # fmt: skip
SAMPLE_RATE = 48_000


class SetClip(msgspec.Struct, frozen=True):
    """What a person chooses clips by."""

    id: str
    language: str
    character: str
    split: str
    samples: int
    text: str = ""

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE


class SetCharacter(msgspec.Struct, frozen=True):
    id: str
    kind: str


class _SetFile(msgspec.Struct, frozen=True):
    version: str
    clips: list[SetClip]
    characters: list[SetCharacter]


@dataclass(frozen=True, slots=True)
class ClipList:
    """All clips of the set; empty where the set is not installed."""

    version: str = ""
    clips: tuple[SetClip, ...] = ()
    characters: tuple[SetCharacter, ...] = ()

    @property
    def languages(self) -> list[str]:
        return sorted({clip.language for clip in self.clips})

    def matching(self, split: str, language: str, character: str) -> list[SetClip]:
        """Clips that fit what is given; an empty string fits all."""
        return [
            clip
            for clip in self.clips
            if split in ("", clip.split)
            and language in ("", clip.language)
            and character in ("", clip.character)
        ]


def read_set(folder: Path = ASSETS_QA) -> ClipList:
    try:
        found = msgspec.json.decode((folder / "set.json").read_bytes(), type=_SetFile)
    except (OSError, msgspec.DecodeError):
        return ClipList()
    return ClipList(found.version, tuple(found.clips), tuple(found.characters))
