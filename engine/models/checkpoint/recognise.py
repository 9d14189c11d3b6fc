"""From a folder or file to one recognised model: layout, geometry, changes, and one line about it.

Knows nothing of how a model runs, nor whether its tensors are complete (see `strict`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.errors import EngineError
from engine.models.checkpoint.folder import Contents, look, only
from engine.models.checkpoint.geometry import Geometry, geometry_of
from engine.models.checkpoint.lora import Lora, read_json
from engine.models.checkpoint.roles import ROLES, role_of
from engine.models.checkpoint.tensor_file import refused, size_text
from engine.models.checkpoint.tensor_set import TensorSet, open_set

DTYPE_NAMES = {
    torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A recognised video model; nothing of it has been read but names and shapes."""

    path: Path  # as the user gave it
    tensors: TensorSet
    lora: Lora | None
    geometry: Geometry
    config: dict[str, Any]  # config.json beside the model, or empty
    contents: Contents  # of its folder: decoders and encoders

    @property
    def layout(self) -> str:
        return layout_of(self.tensors, self.lora, self.geometry)

    @property
    def dtype(self) -> torch.dtype:
        """Which most of its bytes have."""
        count: Counter[torch.dtype] = Counter()
        for place in self.tensors.tensors.values():
            count[place.info.dtype] += place.info.bytes
        return count.most_common(1)[0][0]

    @property
    def bytes(self) -> int:
        return self.tensors.bytes + (self.lora.bytes if self.lora else 0)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the model as it runs, under official names."""
        return self.tensors.shapes

    @property
    def identity(self) -> tuple[tuple[str, int, int], ...]:
        """Path, time and size of every file that goes into the weights, as they are now."""
        files = [*self.tensors.files, *(self.lora.tensors.files if self.lora else [])]
        told = [(str(file.path), file.path.stat()) for file in files]
        return tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in told)

    @property
    def line(self) -> str:
        """`Self-Forcing generator_ema, Wan2.1 1.3B geometry, 30 layers, bf16, 2.8 GB`."""
        dtype = DTYPE_NAMES.get(self.dtype, str(self.dtype).removeprefix("torch."))
        parts = [self.layout, self.geometry.line, dtype, size_text(self.bytes)]
        return ", ".join(parts + ([self.lora.line] if self.lora else []))


def layout_of(tensors: TensorSet, lora: Lora | None, geometry: Geometry) -> str:
    """Whose way of writing it is, as far as names tell.

    CausVid, StreamDiffusionV2 and LongLive's base write alike: a `generator` dict.
    """
    branch = tensors.branch
    if tensors.diffusers:
        return "diffusers transformer"
    if lora is not None and geometry.speech:
        return "LiveAvatar (base and LoRA)"
    if lora is not None and branch.startswith("generator"):
        return f"LongLive {branch} and LoRA"
    if branch == "generator_ema":
        return "Self-Forcing generator_ema"
    if branch == "generator":
        return "CausVid or LongLive generator"
    if branch:
        return f"checkpoint with a dict {branch!r}"
    if tensors.prefixed:
        return "single file with prefixed names (Krea)"
    return "Wan original"


def recognise(path: Path, lora: Path | None = None) -> Checkpoint:
    """`path` is a model's folder or its weights file; `lora` a change that lies elsewhere.

    A folder's one LoRA is merged; beside a named file only `lora` is. Raises
    EngineError("bad_checkpoint" or "missing_asset") in one line.
    """
    if not path.exists():
        raise EngineError("missing_asset", f"{path} does not exist", "check the spelling")
    if path.is_dir():
        contents = look(path)
        tensors = only(contents.of("transformer"), "video model", path)
        found = contents.of("lora")
        change = only(found, "LoRA", path) if found and lora is None else None
    else:
        tensors, change = _open_as(path, "transformer"), None
        contents = look(path.parent)
    if lora is not None:
        change = _open_as(lora, "lora")
    tensors, own = _split(tensors)
    config = read_json(tensors.path.with_name("config.json"))
    try:
        geometry = geometry_of(tensors.shapes, config)
    except ValueError as error:
        raise refused(tensors.path, str(error), "use a complete Wan-family model") from error
    merged = Lora(change) if change is not None else own
    if merged is not None:
        merged.check(tensors.shapes)
    return Checkpoint(path, tensors, merged, geometry, config, contents)


def _open_as(path: Path, role: str) -> TensorSet:
    if not path.is_file():
        raise EngineError("missing_asset", f"{path} is not a file", "check the spelling")
    tensors = open_set(path)
    found = role_of(tensors.tensors)
    if found != role:
        raise refused(path, f"is {ROLES[found]}, not {ROLES[role]}", "choose another file")
    return tensors


def _split(tensors: TensorSet) -> tuple[TensorSet, Lora | None]:
    """A model saved with its LoRA still beside its layers, as PEFT does: base and change."""
    from engine.models.checkpoint.roles import is_lora

    changes = {n: p for n, p in tensors.tensors.items() if is_lora(n)}
    if not changes:
        return tensors, None
    base, change = TensorSet(tensors.files), TensorSet(tensors.files)
    base.tensors = {n: p for n, p in tensors.tensors.items() if n not in changes}
    change.tensors = changes
    return base, Lora(change)
