"""Which public models are installed, whole or not, what they need and what their licence is.

Looks into the checkpoints folder and folders that the user names; reads names and shapes only.
Knows nothing of wires, and not whether a model makes good pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import torch

from engine.errors import EngineError
from engine.folders import Folders
from engine.memoryplan import GIB, plan
from engine.models import MODELS
from engine.models.causal_dit import Way
from engine.models.checkpoint.folder import look, weights_files
from engine.models.checkpoint.tensor_set import SUFFIXES
from engine.models.companions import lacking
from engine.models.conditioning import vae_config
from engine.models.dit_config import DitConfig, shard
from engine.models.licence import Licence, licence_of
from engine.models.recipe import NAME as RECIPE
from engine.models.recipe import Recipe, recipe_of, resized
from engine.models.vae_memory import decoder_bytes
from engine.models.weights import Model, open_model

CPU_FACTOR = 2  # fp32 where the plan counts bf16


@dataclass(frozen=True, slots=True)
class Room:
    """Memory of this machine that a model may take."""

    device: str  # "NVIDIA H200", or "no GPU"
    free_bytes: int
    cuda: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One installed model. `problem` and `lacks` are lines with their remedy; empty when fine."""

    name: str  # what a session asks for
    path: Path
    line: str  # layout, geometry, precision, size
    licence: Licence
    size_bytes: int = 0
    needs_bytes: int = 0
    fits: bool = False
    fit: str = ""  # `needs 9.1 GiB, 120.3 GiB are free`
    problem: str = ""  # why it cannot be loaded at all
    lacks: tuple[str, ...] = ()  # files without which it cannot run
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        return not self.problem and not self.lacks


def room() -> Room:
    """The first GPU's free memory, or the machine's."""
    if torch.cuda.is_available():
        return Room(torch.cuda.get_device_name(0), torch.cuda.mem_get_info(0)[0], True)
    return Room("no GPU", psutil.virtual_memory().available, False)


def roots(folders: Folders) -> list[Path]:
    """Folders that are looked into, existing ones only."""
    return [path for path in dict.fromkeys(folders.checkpoints) if path.exists()]


def candidates(root: Path) -> list[Path]:
    """`root` itself when it is a model's file or folder, else its children that may be."""
    if root.is_file():
        return [root]
    own = [p for p in sorted(root.iterdir()) if p.is_file() and p.suffix in SUFFIXES]
    if own or (root / "transformer").is_dir() or (root / RECIPE).is_file():
        return [root]
    folders = [p for p in sorted(root.iterdir()) if p.is_dir() and not p.name.startswith(".")]
    return [p for p in folders if (p / RECIPE).is_file() or weights_files(p)]


def places(folders: Folders) -> list[Path]:
    """Folders in which decoders and encoders that a model lacks may lie."""
    return [_folder(path) for root in roots(folders) for path in candidates(root)]


def places_of(path: Path, folders: Folders) -> list[Path]:
    """The same for the model at `path`: its own folder and its base's come first."""
    base = recipe_of(path).base
    return list(dict.fromkeys([_folder(path), _folder(base), *places(folders)]))


def open_entry(path: Path) -> tuple[Model, Recipe]:
    """The model at `path`, put together as its recipe says. Raises EngineError."""
    recipe = recipe_of(path)
    model = open_model(recipe.base, recipe.lora, recipe.schedule)
    config = resized(model.config, recipe.picture)
    return replace(model, config=replace(config, name=_name(path))), recipe


def installed(folders: Folders) -> list[Entry]:
    """Every video model found, in order of name."""
    here = room()
    entries: list[Entry] = []
    for root in roots(folders):
        for path in candidates(root):
            entries += _entries(path, folders, here)
    return _named(entries)


def find(name: str, folders: Folders) -> Entry:
    """Raises EngineError("unknown_model"), or the entry's own problem as "bad_checkpoint"."""
    entries = installed(folders)
    for entry in entries:
        if name in (entry.name, str(entry.path)):
            if entry.problem:
                raise EngineError("bad_checkpoint", entry.problem)
            return entry
    known = ", ".join(entry.name for entry in entries) or "none"
    raise EngineError("unknown_model", f"no model is called {name!r}", f"installed are {known}")


def _entries(path: Path, folders: Folders, here: Room) -> list[Entry]:
    """A folder with several video models is several entries; one without any is none."""
    try:
        if path.is_file() or (path / RECIPE).is_file():
            return [_entry(path, folders, here)]
        models = look(path).of("transformer")
        if len(models) > 1:
            return [_entry(tensors.path, folders, here) for tensors in models]
        return [_entry(path, folders, here)] if models else []
    except EngineError as error:
        return [Entry(path.name, path, "", licence_of(_folder(path)), problem=str(error))]


def _entry(path: Path, folders: Folders, here: Room) -> Entry:
    licence = licence_of(_folder(path))
    try:
        model, recipe = open_entry(path)
        licence = _strictest([licence, *map(licence_of, _sources(recipe))])
    except EngineError as error:
        return Entry(_name(path), path, "", licence, problem=str(error))
    needed, fit = need(model.config, here)
    return Entry(
        _name(path), path, model.line, licence, model.checkpoint.bytes, needed,
        needed <= here.free_bytes, fit, "", tuple(lacking(model, places_of(path, folders))),
        notes_of(model, here),
    )  # fmt: skip


def need(config: DitConfig, here: Room) -> tuple[int, str]:
    """(bytes, sentence) of one rank with its decoder beside it."""
    way = Way() if here.cuda else Way(fp8=False)
    beside = decoder_bytes(vae_config(config)) if here.cuda else 0
    planned = plan(config, shard(config), way, beside)
    needed = planned.total * (1 if here.cuda else CPU_FACTOR)
    where = "on one GPU" if here.cuda else "of memory"
    sentence = f"needs {needed / GIB:.1f} GiB {where}, {here.free_bytes / GIB:.1f} GiB are free"
    return needed, sentence


def notes_of(model: Model, here: Room) -> tuple[str, ...]:
    """What a person should know before loading."""
    notes = []
    if not model.distilled:
        notes.append("not distilled for few steps: expect poor pictures, or merge a LoRA that is")
    if not here.cuda:
        notes.append("without a GPU it is far from live")
    if model.checkpoint.lora is not None and not model.checkpoint.lora.states_alpha:
        notes.append("its LoRA does not state alpha: taken as its rank")
    return tuple(notes)


def _strictest(licences: list[Licence]) -> Licence:
    """One that forbids commercial use, else the first that is stated."""
    named = [found for found in licences if found.name]
    return next((found for found in named if found.non_commercial), (named or licences)[0])


def _sources(recipe: Recipe) -> list[Path]:
    """Folders whose licences count: the base's and the LoRA's."""
    return [_folder(path) for path in (recipe.base, recipe.lora) if path is not None]


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _name(path: Path) -> str:
    return path.resolve().name if path.is_dir() else path.stem


def _named(entries: list[Entry]) -> list[Entry]:
    """Names made unique: a repeated one, or a built-in's, gets its folder in front."""
    taken = set(MODELS)
    result = []
    for entry in sorted(entries, key=lambda e: (e.name, str(e.path))):
        name = entry.name
        if name in taken:
            name = f"{entry.path.resolve().parent.name}/{name}"
        if name in taken:
            name = str(entry.path)
        taken.add(name)
        result.append(replace(entry, name=name))
    return result
