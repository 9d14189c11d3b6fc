"""The tensors of one model over one file or several shards, with wrappers stripped off the names.

Complete or refused: a shard that is missing, a name that comes twice, an index that disagrees with
its files. Knows nothing of what a model should hold.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from engine.models.checkpoint.names import from_diffusers, is_diffusers, unwrapped
from engine.models.checkpoint.safetensors_file import SafetensorsFile
from engine.models.checkpoint.tensor_file import TensorFile, TensorInfo, first_five, refused
from engine.models.checkpoint.torch_file import TorchFile

SHARD = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors$")
SUFFIXES = (".safetensors", ".pt", ".pth")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one tensor lies."""

    file: TensorFile
    name: str  # in the file
    info: TensorInfo


class TensorSet:
    """`tensors[official name] -> Place`; `prefixed` and `diffusers` say how names were written."""

    def __init__(self, files: list[TensorFile]) -> None:
        self.files = files
        names = [(file, name) for file in files for name in file.tensors]
        plain = [unwrapped(name) for _, name in names]
        self.prefixed = any(name != short for (_, name), short in zip(names, plain, strict=True))
        self.diffusers = any(map(is_diffusers, plain))
        if self.diffusers:
            plain = [from_diffusers(name) for name in plain]
        twice = [name for name, count in Counter(plain).items() if count > 1]
        if twice:
            raise refused(
                self.path, f"names these tensors twice: {first_five(twice)}",
                "keep one copy of the model in the folder",
            )  # fmt: skip
        self.tensors = {
            short: Place(file, name, file.tensors[name])
            for (file, name), short in zip(names, plain, strict=True)
        }

    @property
    def path(self) -> Path:
        return self.files[0].path

    @property
    def branch(self) -> str:
        return self.files[0].branch

    @property
    def bytes(self) -> int:
        return sum(place.info.bytes for place in self.tensors.values())

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: place.info.shape for name, place in self.tensors.items()}


def open_file(path: Path) -> TensorFile:
    """Raises EngineError("bad_checkpoint") when it cannot be read whole."""
    if path.suffix not in SUFFIXES:
        raise refused(path, f"{path.suffix or 'no suffix'} is no weights file", "use .safetensors")
    try:
        return SafetensorsFile(path) if path.suffix == ".safetensors" else TorchFile(path)
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})", "check its rights") from error


def open_set(path: Path) -> TensorSet:
    """The set that the weights file `path` is part of: alone, or with the shards of its name."""
    return TensorSet(list(map(open_indexed, shard_paths(path))))


def open_indexed(path: Path) -> TensorFile:
    """A file, held against the index beside it when there is one."""
    file = open_file(path)
    index = _index_of(path)
    if index is not None:
        listed = {name for name, place in _weight_map(index).items() if place == path.name}
        if gone := listed - set(file.tensors):
            why = f"lacks tensors that {index.name} lists: {first_five(gone)}"
            raise refused(path, why, "copy or download the file again")
    return file


def shard_paths(path: Path) -> list[Path]:
    """All shards of the set that `path` belongs to, in order; raises when one is missing."""
    match = SHARD.match(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    paths = [
        path.with_name(f"{match['stem']}-{i:05d}-of-{count:05d}.safetensors")
        for i in range(1, count + 1)
    ]
    if missing := [p.name for p in paths if not p.is_file()]:
        raise refused(
            path, f"{len(missing)} of {count} shards are missing: {first_five(missing)}",
            "download the rest of the model",
        )  # fmt: skip
    return paths


def _index_of(path: Path) -> Path | None:
    match = SHARD.match(path.name)
    index = path.with_name(f"{match['stem']}.safetensors.index.json") if match else None
    return index if index is not None and index.is_file() else None


def _weight_map(index: Path) -> dict[str, str]:
    try:
        found = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return {str(k): str(v) for k, v in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise refused(index, "is not a readable index", "download it again") from error
