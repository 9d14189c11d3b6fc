"""What lies in a model's folder: video model, changes to it, decoders, encoders, by contents.

Files are told apart by the names of their tensors, never by their own. Anything unreadable is
refused: what was not understood must not be left out in silence. Knows nothing of geometry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import EngineError
from engine.models.checkpoint.roles import role_of
from engine.models.checkpoint.tensor_file import first_five
from engine.models.checkpoint.tensor_set import SUFFIXES, TensorSet, open_set

DEPTH = 2  # folders below the model's: transformer/, vae/, google/umt5-xxl/
FILES = 300  # weights files looked at in one folder tree, at most


@dataclass(frozen=True, slots=True)
class Contents:
    """Sets of tensors by role (a key of `engine.models.checkpoint.roles.ROLES`)."""

    folder: Path
    sets: dict[str, list[TensorSet]] = field(default_factory=dict)

    def of(self, role: str) -> list[TensorSet]:
        return self.sets.get(role, [])


def weights_files(folder: Path, depth: int = DEPTH) -> list[Path]:
    """Every weights file in the folder and below, sorted; hidden folders are left out."""
    found: list[Path] = []
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise EngineError(
            "bad_checkpoint", f"{folder} cannot be read ({error.strerror})", "check its rights"
        ) from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            found += weights_files(entry, depth - 1) if depth else []
        elif entry.suffix in SUFFIXES:
            found.append(entry)
    return found[:FILES]


def look(folder: Path) -> Contents:
    """Open every weights file of the folder. Raises EngineError("bad_checkpoint") for a bad one."""
    contents = Contents(folder)
    seen: set[Path] = set()
    for path in weights_files(folder):
        if path in seen:
            continue
        tensors = open_set(path)
        seen |= {file.path for file in tensors.files}
        contents.sets.setdefault(role_of(tensors.tensors), []).append(tensors)
    return contents


def only(sets: list[TensorSet], what: str, folder: Path) -> TensorSet:
    """The one set of its kind. Raises EngineError("missing_asset" or "bad_checkpoint")."""
    if not sets:
        raise EngineError(
            "missing_asset", f"{folder} holds no {what}", "choose the folder of a complete model"
        )
    if len(sets) > 1:
        names = first_five(str(s.path.relative_to(folder)) for s in sets)
        raise EngineError(
            "bad_checkpoint", f"{folder} holds {len(sets)} times a {what}: {names}",
            "name the file itself, such as --model FOLDER/FILE",
        )  # fmt: skip
    return sets[0]
