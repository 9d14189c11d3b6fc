"""A model's weights under their official names, read when asked for: cut, converted, merged, FP8.

What the builders of models see: everything about files, wrappers and low-rank changes is behind it.
At no time more than the parts already handed out plus one tensor is held. Knows nothing of what a
model does with its weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.errors import EngineError
from engine.fp8 import Linear, quantised_rows
from engine.models.base import Progress
from engine.models.checkpoint.cut import cut_shape, part_of
from engine.models.checkpoint.fp8_cache import Fp8Cache
from engine.models.checkpoint.lora import Lora
from engine.models.checkpoint.tensor_set import Place, TensorSet
from engine.models.wan_weights import Cut
from kernels.reference import FP8


class WeightSource:
    """`tensor` and `linear` hand out; `read` names what was asked for so far."""

    def __init__(
        self, tensors: TensorSet, lora: Lora | None, device: torch.device, dtype: torch.dtype,
        fp8: bool = False, cache: Fp8Cache | None = None,
    ) -> None:  # fmt: skip
        self._places = dict(tensors.tensors) | (lora.whole if lora else {})
        self._pairs = lora.pairs if lora else {}
        self.device, self.dtype, self.fp8 = device, dtype, fp8
        self._cache = cache
        self.read: set[str] = set()
        self._total = max(1, sum(place.info.bytes for place in self._places.values()))
        self._done = 0
        self._progress: Progress = lambda fraction, what: None
        self._cancelled: Callable[[], bool] = lambda: False

    def watch(self, progress: Progress, cancelled: Callable[[], bool]) -> None:
        """Report bytes read as a fraction; ask `cancelled` before every tensor."""
        self._progress, self._cancelled = progress, cancelled

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        return self._places[name].info.shape

    def tensor(self, name: str, cut: Cut | None = None, dtype: torch.dtype | None = None) -> Tensor:
        """One tensor or a rank's part of it, on the run's device in the run's precision."""
        return self._part(name, cut).to(dtype or self.dtype)

    def linear(
        self, names: Sequence[str], cut: Cut | None = None, bias: bool = True,
        quantise: bool = True,
    ) -> Linear:  # fmt: skip
        """Layers of those names, stacked along their outputs, as one; see `Cut` for a rank's part.

        A cut along axis 1 (inputs) leaves the bias whole: only one rank may ask for it.
        `quantise` False keeps the run's precision in an FP8 run.
        """
        biases = [f"{name}.bias" for name in names]
        has_bias = bias and biases[0] in self._places
        bias_cut = cut if cut is not None and cut.axis == 0 else None
        parts = [self.tensor(n, bias_cut) for n in biases] if has_bias else []
        whole_bias = torch.cat(parts) if parts else None
        if self.fp8 and quantise:
            return self._quantised(names, cut, whole_bias)
        shapes = [self._part_shape(f"{name}.weight", cut) for name in names]
        stacked = self._empty(shapes, self.dtype)
        at = 0
        for name, shape in zip(names, shapes, strict=True):
            stacked[at : at + shape[0]].copy_(self._matrix(f"{name}.weight", cut))
            at += shape[0]
        return Linear(stacked, whole_bias)

    def _quantised(self, names: Sequence[str], cut: Cut | None, bias: Tensor | None) -> Linear:
        """e4m3 with a scale an output channel; from the cache where it has them."""
        shapes = [self._part_shape(f"{name}.weight", cut) for name in names]
        stacked = self._empty(shapes, FP8)
        scale = torch.empty(1, stacked.shape[0], device=self.device)
        at = 0
        for name, shape in zip(names, shapes, strict=True):
            rows = slice(at, at + shape[0])
            values, row_scale = self._quantised_part(f"{name}.weight", cut)
            stacked.view(torch.uint8)[rows].copy_(values.view(torch.uint8))
            scale[0, rows].copy_(row_scale)
            at += shape[0]
        return Linear(stacked, bias, scale, scale)

    def _quantised_part(self, name: str, cut: Cut | None) -> tuple[Tensor, Tensor]:
        shape = self._part_shape(name, cut)
        kept = self._cache.get(name, shape) if self._cache is not None else None
        if kept is not None:
            self._account(self._places[name])
            self.read.add(name)
            return kept[0].to(self.device), kept[1].to(self.device)
        made = quantised_rows(self._matrix(name, cut))
        if self._cache is not None:
            self._cache.put(name, *made)
        return made

    def _empty(self, shapes: list[tuple[int, int]], dtype: torch.dtype) -> Tensor:
        rows, columns = sum(s[0] for s in shapes), shapes[0][1]
        return torch.empty(rows, columns, dtype=dtype, device=self.device)

    def _part_shape(self, name: str, cut: Cut | None) -> tuple[int, int]:
        """[out, in]; a convolution's patch is flattened."""
        rows, *inputs = cut_shape(self.shape(name), cut)
        return rows, math.prod(inputs)

    def _matrix(self, name: str, cut: Cut | None) -> Tensor:
        part = self._part(name, cut)
        return part if part.ndim == 2 else part.flatten(1)

    def _part(self, name: str, cut: Cut | None) -> Tensor:
        """On the device in the file's precision, or fp32 when a change was merged into it."""
        if name not in self._places:
            raise EngineError("internal", f"the model asks for {name}, which no file holds")
        place = self._places[name]
        self._account(place)
        self.read.add(name)
        view = place.file.mapped(place.name)
        part = part_of(view, cut, self.device)
        place.file.release(view)
        pair = self._pairs.get(name.removesuffix(".weight")) if name.endswith(".weight") else None
        return part if pair is None else part.float().add_(pair.delta(cut, self.device))

    def _account(self, place: Place) -> None:
        if self._cancelled():
            raise EngineError("cancelled", "loading the model was cancelled")
        self._progress(min(1.0, self._done / self._total), f"reading {place.file.path.name}")
        self._done += place.info.bytes
