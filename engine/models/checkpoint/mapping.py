"""All tensors of a file or folder as one mapping, for the small models that need no more.

Views of the file's pages: host memory is used when a value is. Knows nothing of names' meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.tensor_set import SUFFIXES, TensorSet, open_set


class Tensors(Mapping[str, Tensor]):
    """By the names in the file. Looking one up maps it; nothing is kept."""

    def __init__(self, tensors: TensorSet) -> None:
        self.files = tensors
        self._places = {place.name: place for place in tensors.tensors.values()}

    def __getitem__(self, name: str) -> Tensor:
        place = self._places[name]
        return place.file.mapped(place.name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: place.info.shape for name, place in self._places.items()}


def open_tensors(path: Path) -> Tensors:
    """A .safetensors, .pt or .pth file, or a folder that holds one set of them.

    Raises EngineError("missing_asset") when it is not there, "bad_checkpoint" when it is not whole.
    """
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES)
        if not files:
            raise EngineError("missing_asset", f"{path} holds no weights file", "download it")
        tensors = open_set(files[0])
        shown = {file.path for file in tensors.files}
        if others := [p.name for p in files if p not in shown]:
            raise EngineError(
                "bad_checkpoint", f"{path} holds several sets of weights, also {others[0]}",
                "name the file itself",
            )  # fmt: skip
        return Tensors(tensors)
    if not path.is_file():
        raise EngineError("missing_asset", f"{path} does not exist", "download it")
    return Tensors(open_set(path))
