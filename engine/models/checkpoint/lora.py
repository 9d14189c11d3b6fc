"""A low-rank change to a model, merged while the model is read: W + (alpha / rank) B A.

PEFT's names (`lora_A`, `lora_B`, with or without an adapter's name) and `lora_down`, `lora_up`.
Whole tensors beside them replace the base's. Does not know which alpha a publisher trained with
when neither the file nor adapter_config.json states it: 1.0 times is taken, and said.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.models.checkpoint.cut import part_of
from engine.models.checkpoint.roles import is_lora
from engine.models.checkpoint.tensor_file import first_five, refused
from engine.models.checkpoint.tensor_set import Place, TensorSet
from engine.models.wan_weights import Cut

PAIR = re.compile(r"^(?P<module>.+)\.lora_(?P<half>A|B|down|up)(\.[^.]+)?\.weight$")
DOWN = ("A", "down")
STATED = ("lora_alpha", "alpha", "ss_network_alpha", "network_alpha")  # in a file's metadata
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Change of one layer: up [out, rank] @ down [rank, in] * scale."""

    down: Place
    up: Place
    scale: float

    @property
    def rank(self) -> int:
        return self.down.info.shape[0]

    def delta(self, cut: Cut | None, device: torch.device) -> Tensor:
        """fp32, of the part of the weight that `cut` names."""
        rows = cut if cut is not None and cut.axis == 0 else None
        columns = cut if cut is not None and cut.axis == 1 else None
        down = part_of(self.down.file.mapped(self.down.name), columns, device).float()
        up = part_of(self.up.file.mapped(self.up.name), rows, device).float()
        return torch.mm(up, down).mul_(self.scale)


class Lora:
    """`pairs[module]` and `whole[name]`, in official names."""

    def __init__(self, tensors: TensorSet) -> None:
        self.tensors = tensors
        halves: dict[str, dict[bool, Place]] = {}
        self.whole: dict[str, Place] = {}
        alphas: dict[str, Place] = {}
        for name, place in tensors.tensors.items():
            if match := PAIR.match(name):
                halves.setdefault(match["module"], {})[match["half"] in DOWN] = place
            elif name.endswith(".alpha"):
                alphas[name.removesuffix(".alpha")] = place
            else:
                self.whole[name] = place
        self._refuse_halves(halves)
        self.alpha = _stated_alpha(tensors)
        self.states_alpha = self.alpha is not None or bool(alphas)
        self.pairs = {m: self._pair(m, half, alphas) for m, half in halves.items()}

    def _refuse_halves(self, halves: dict[str, dict[bool, Place]]) -> None:
        if lonely := [module for module, half in halves.items() if len(half) < 2]:
            why = f"has one half only of {first_five(lonely)}"
            raise refused(self.tensors.path, why, "copy or download the file again")
        if odd := [name for name in self.whole if is_lora(name)]:
            why = f"names its parts in a way not known: {first_five(odd)}"
            raise refused(self.tensors.path, why, "convert it to PEFT's names")

    def _pair(self, module: str, half: dict[bool, Place], alphas: dict[str, Place]) -> Pair:
        down, up = half[True], half[False]
        shapes = down.info.shape, up.info.shape
        if len(shapes[0]) != 2 or len(shapes[1]) != 2 or shapes[0][0] != shapes[1][1]:
            why = f"its halves of {module} do not fit: {list(shapes[0])} and {list(shapes[1])}"
            raise refused(self.tensors.path, why, "copy or download the file again")
        rank, alpha = shapes[0][0], self.alpha
        if module in alphas:
            place = alphas[module]
            alpha = float(place.file.mapped(place.name).float())
        return Pair(down, up, 1.0 if alpha is None else alpha / rank)

    @property
    def bytes(self) -> int:
        return self.tensors.bytes

    @property
    def line(self) -> str:
        """`LoRA of rank 128 on 240 layers, 1.00 times (alpha not stated)`."""
        ranks = sorted({pair.rank for pair in self.pairs.values()})
        scales = sorted({pair.scale for pair in self.pairs.values()})
        rank = "/".join(map(str, ranks))
        scale = "/".join(f"{scale:.2f}" for scale in scales)
        note = "" if self.states_alpha else " (alpha not stated)"
        return f"LoRA of rank {rank} on {len(self.pairs)} layers, {scale} times{note}"

    def check(self, base: Shapes) -> None:
        """Every part of it has its place in the base. Raises EngineError("bad_checkpoint")."""
        path = self.tensors.path
        remedy = "use the base model that it was trained on"
        wanted = {f"{m}.weight" for m in self.pairs} | set(self.whole)
        if lost := wanted - set(base):
            raise refused(path, f"changes layers that the model lacks: {first_five(lost)}", remedy)
        bad = [n for n, p in self.whole.items() if p.info.shape != base[n]]
        bad += [
            f"{m}.weight"
            for m, p in self.pairs.items()
            if base[f"{m}.weight"] != (p.up.info.shape[0], p.down.info.shape[1])
        ]
        if bad:
            raise refused(path, f"does not fit the model's {first_five(bad)}", remedy)


def _stated_alpha(tensors: TensorSet) -> float | None:
    """From the file's metadata, or from PEFT's adapter_config.json beside it."""
    for key in STATED:
        if key in tensors.files[0].metadata:
            return _number(tensors.files[0].metadata[key])
    said = read_json(tensors.path.with_name("adapter_config.json"))
    return _number(said.get("lora_alpha"))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def read_json(path: Path) -> dict[str, Any]:
    """A small JSON table; empty when there is none or it is unreadable."""
    try:
        if path.stat().st_size > 1 << 20:
            return {}
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
