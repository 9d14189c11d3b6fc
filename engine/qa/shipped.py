"""A job's files as bytes for another machine: packed here, laid out there, and paths put back.

Audio, character, alignment and finished video of a job, and SyncNet's and the face models of a run,
each under its SHA-256. Knows nothing of who carries the bytes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from engine.portrait.face_model import DETECTOR, MESH, default_folder
from engine.qa.jobs import Job
from engine.qa.report import ClipResult
from engine.qa.run_folder import write_whole
from engine.qa.workers import Task, Tools

PATHS = ("audio", "character_file", "alignment", "video")  # the fields of a Job that name files
LASTING = ("character_file",)  # a worker keeps a gauge under that path for its whole life
KEPT_BYTES = 512 << 20  # of files put for workers and not in use; 53 clips and faces are 8 MB
SHORT = 32  # hex digits in folders' names


class Parcel(msgspec.Struct, frozen=True):
    """A file: where it lay at home, and its hash; none for a file that could not be read."""

    path: str
    sha256: str = ""

    def below(self, folder: Path) -> Path:
        """Where it is laid: under its own name, which results tell, in a folder of its hash."""
        return folder / (self.sha256[:SHORT] or "missing") / Path(self.path).name


class Shipment(msgspec.Struct, frozen=True):
    """`parcels` in the order in which their contents follow."""

    task: Task
    parcels: list[Parcel]


class Kit(msgspec.Struct, frozen=True):
    """What a worker needs once; `parcels` as above."""

    tools: Tools
    parcels: list[Parcel]


@dataclass(slots=True)
class Store:
    """Puts each file where workers can take it, once; above KEPT_BYTES the longest unused go.

    `put` gives a handle of bytes, which keeps them as long as somebody holds it.
    """

    put: Callable[[bytes], Any]
    _held: OrderedDict[str, tuple[Parcel, Any, int]] = field(default_factory=OrderedDict)

    def packed(self, paths: Iterable[str]) -> tuple[list[Parcel], list[Any]]:
        """A parcel each, and the handles of those that could be read, in the same order."""
        found = [self._take(path) for path in dict.fromkeys(filter(None, paths))]
        return [parcel for parcel, _ in found], [ref for parcel, ref in found if parcel.sha256]

    def _take(self, path: str) -> tuple[Parcel, Any]:
        if path not in self._held:
            try:
                data = Path(path).read_bytes()
            except OSError:  # the worker then says what a local one would
                return Parcel(path), None
            parcel = Parcel(path, hashlib.sha256(data).hexdigest())
            self._held[path] = (parcel, self.put(data), len(data))
        self._held.move_to_end(path)
        parcel, ref, _ = self._held[path]
        while len(self._held) > 1 and sum(size for _, _, size in self._held.values()) > KEPT_BYTES:
            self._held.popitem(last=False)
        return parcel, ref


def pack_task(task: Task, store: Store) -> tuple[bytes, list[Any]]:
    """A Shipment and the handles of its contents."""
    parcels, refs = store.packed(getattr(task.job, name) for name in PATHS)
    return msgspec.json.encode(Shipment(task, parcels)), refs


def pack_tools(tools: Tools, store: Store) -> tuple[bytes, list[Any]]:
    """A Kit and the handles of its contents: SyncNet's weights, if any, and the face models."""
    models = Path(tools.models) if tools.models else default_folder()
    parcels, refs = store.packed([tools.syncnet, str(models / DETECTOR), str(models / MESH)])
    return msgspec.json.encode(Kit(tools, parcels)), refs


def lay_tools(kit: Kit, contents: Sequence[bytes], folder: Path, cache: Path) -> Tools:
    """The same tools from files in `folder`, with the cache of this machine."""
    models = folder / "models"
    places = {}
    for parcel, data in zip(kit.parcels, contents, strict=True):
        flat = Path(parcel.path).name in (DETECTOR, MESH)
        places[parcel.path] = _lay(models / Path(parcel.path).name if flat else
                                   parcel.below(folder), data)  # fmt: skip
    syncnet = str(places[kit.tools.syncnet]) if kit.tools.syncnet else ""
    return msgspec.structs.replace(
        kit.tools, cache=str(cache), models=str(models), syncnet=syncnet, checkpoints=()
    )


def lay_task(
    shipment: Shipment, contents: Sequence[bytes], lasting: Path, passing: Path
) -> tuple[Task, dict[str, str]]:
    """The task with paths of this machine, and those paths -> the ones at home.

    Characters are laid below `lasting`, the rest and our video below `passing`.
    """
    job, home = shipment.task.job, {}
    left = iter(contents)
    places: dict[str, str] = {"": ""}
    for parcel in shipment.parcels:
        stays = all(getattr(job, n) != parcel.path or n in LASTING for n in PATHS)
        place = parcel.below(lasting if stays else passing)
        if parcel.sha256:
            _lay(place, next(left))
        places[parcel.path] = str(place)
        home[str(place)] = parcel.path
    video = passing / "ours" / Path(shipment.task.video).name
    home[str(video)] = shipment.task.video
    moved: Job = msgspec.structs.replace(job, **{n: places[getattr(job, n)] for n in PATHS})
    return Task(moved, str(video)), home


def at_home(result: ClipResult, home: dict[str, str]) -> ClipResult:
    """The result as it would be had it been made at home: reasons name the files there."""
    why = result.failed
    for there, here in home.items():
        why = why.replace(there, here)
    return msgspec.structs.replace(result, failed=why)


def _lay(path: Path, data: bytes) -> Path:
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    return path
