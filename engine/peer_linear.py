"""Shared linear layers over memory that every rank reaches, by our own kernels.

"two_shot" moves rows by our kernels and multiplies by the library's GEMM; "fused" does both in one
kernel, so that the transfer hides behind the arithmetic; "best" takes for each shape what made the
step shorter where it was measured. Workspaces are laid out once, at the largest shape. Knows
nothing of how the memory was shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from engine.errors import EngineError
from engine.fp8 import Activation, Linear
from engine.marks import Marks
from engine.models.dit_config import DitConfig, Shard
from engine.parallel import Ranks, rows_of
from engine.sharded_linear import CollectiveLinear, ShardedLinear, WholeLinear
from kernels import ops
from kernels.peer import (
    BOTH,
    PUSH,
    TAKE,
    PeerBuffer,
    Workspace,
    buffer_bytes,
    gather_half,
    scatter_half,
    sum_half,
)  # fmt: skip


class PeerLinear(CollectiveLinear):
    """Rows by our kernels ("two_shot"); row scales and odd widths go by the library."""

    way = "two_shot"

    def __init__(self, ranks: Ranks, config: DitConfig, part: Shard, dtype: torch.dtype) -> None:
        super().__init__(ranks, config, part, dtype)
        self._lay_out(ranks, config, dtype)
        choose = ops.choose
        self._peer_gather = choose("peer_gather", ranks.device)
        self._peer_scatter = choose("peer_scatter", ranks.device)
        self._peer_sum = choose("peer_sum", ranks.device)
        self._square_sum = choose("square_sum", ranks.device)

    def _lay_out(self, ranks: Ranks, config: DitConfig, dtype: torch.dtype) -> None:
        """Three workspaces, one a kind of exchange, within the group's one buffer."""
        rows, n = rows_of(ranks, max(config.tokens, config.sink_tokens)), ranks.ranks
        halves = (
            gather_half(rows.share, config.width * dtype.itemsize, n),
            scatter_half(rows.share, config.width * dtype.itemsize // 2, n),
            sum_half(2 * rows.count, n),
        )
        sizes = [buffer_bytes(half) for half in halves]
        whole = ranks.peer_buffer(sum(sizes))
        # the grid of every call: all its programs must run at once, because they await each other
        programs = 1
        if ranks.device.type == "cuda":
            programs = torch.cuda.get_device_properties(ranks.device).multi_processor_count
        spaces, start = [], 0
        for size in sizes:
            parts = [part[start : start + size] for part in whole.peers]
            spaces.append(Workspace.over(PeerBuffer.of(parts, whole.rank), programs))
            start += size
        self._gathers, self._scatters, self._norms = spaces

    def _call(self, op: Callable[..., None], *arguments: Any) -> None:
        """The plain truths of a CPU cannot await a rank: all send, all meet, all receive."""
        if self._ranks.device.type == "cuda" or self._ranks.ranks == 1:
            op(*arguments, BOTH)
            return
        op(*arguments, PUSH)
        self._ranks.barrier()
        op(*arguments, TAKE)

    def _gather(self, local: Tensor, out: Tensor) -> None:
        if local.shape[1] * local.element_size() % 16:
            super()._gather(local, out)
        else:
            self._call(self._peer_gather, local, out, self._gathers)

    def _scatter(self, partial: Tensor, out: Tensor) -> None:
        self._call(self._peer_scatter, partial, out, self._scatters)

    def norm_sums(self, x: Tensor, groups: int, mark: Marks) -> Tensor | None:
        sums = self._sums[: x.shape[0] * groups].view(-1, groups)
        mark("comm")
        if groups == 2:  # q and k of qkv: squared, sent and added in one kernel
            self._call(self._square_sum, x, sums, self._norms)
        else:
            self._square_sums(x, self._width, sums)
            self._call(self._peer_sum, sums, sums, self._norms)
        return sums


class FusedLinear(PeerLinear):
    """One kernel for e4m3 layers ("fused"); others as "two_shot"."""

    way = "fused"
    fused_gather_flops = fused_scatter_flops = float("inf")  # larger GEMMs go by two_shot

    def __init__(self, ranks: Ranks, config: DitConfig, part: Shard, dtype: torch.dtype) -> None:
        super().__init__(ranks, config, part, dtype)
        self._gather_linear = ops.choose("gather_linear", ranks.device)
        self._linear_scatter = ops.choose("linear_scatter", ranks.device)
        self._biases: dict[int, Tensor] = {}

    def columns(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        padded = _padded(out, x.values.shape[0] * self._ranks.ranks)
        too_large = self._above(self.fused_gather_flops, out, layer)
        if layer.scale is None or padded is None or too_large:
            super().columns(x, layer, out, mark)
            return
        mark("gemm")  # and what of the exchange it cannot hide
        rest = layer.weight, layer.scale, layer.bias, padded, self._gathers
        self._call(self._gather_linear, x.values, x.scale, *rest)

    def rows(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        count = out.shape[0] * self._ranks.ranks
        values, scale = _padded(x.values, count), x.scale
        if scale is not None and scale.ndim == 2:
            scale = _padded(scale, count)
        too_large = self._above(self.fused_scatter_flops, x.values, layer)
        if layer.scale is None or values is None or scale is None or too_large:
            super().rows(x, layer, out, mark)
            return
        bias = self._bias_of(layer)
        mark("gemm")  # and what of the exchange it cannot hide
        rest = layer.weight, layer.scale, bias, out, self._scatters
        self._call(self._linear_scatter, values, scale, *rest)

    def _above(self, limit: float, all_rows: Tensor, layer: Linear) -> bool:
        return 2.0 * all_rows.shape[0] * layer.weight.numel() > limit

    def _bias_of(self, layer: Linear) -> Tensor:
        """Rank 0's, on every rank: the owner of a row adds it. Fetched at the first forward, which
        is never one that is being captured.
        """
        bias = self._biases.get(id(layer))
        if bias is None:
            shape = layer.weight.shape[0]
            bias = torch.zeros(shape, dtype=self._wide.dtype, device=self._ranks.device)
            if layer.bias is not None:
                bias.copy_(layer.bias)
            self._ranks.broadcast_(bias)
            self._biases[id(layer)] = bias
        return bias


class BestLinear(FusedLinear):
    """What made the shortest step where it was measured ("best"): GEMMs of up to so many operations
    go within one kernel. None does: alone, our kernels win some shapes (ff2 152 us against 158, ff1
    148 against 152), but in the whole step of avatar-57b two H200 sit at their power cap, and the
    library's GEMM costs less: two-shot 202.6 ms, o in one kernel 206.1, all in one kernel 209.7.
    """

    way = "best"
    fused_gather_flops = fused_scatter_flops = 0.0


def _padded(values: Tensor, count: int) -> Tensor | None:
    """The first rows of a buffer, with its padding: [count, W]; None when there is none behind."""
    needed = (values.storage_offset() + count * values.shape[1]) * values.element_size()
    if needed > values.untyped_storage().nbytes():
        return None
    return values.as_strided((count, values.shape[1]), values.stride())


WAYS: dict[str, type[CollectiveLinear]] = {
    "collective": CollectiveLinear, "two_shot": PeerLinear, "fused": FusedLinear,
    "best": BestLinear,
}  # fmt: skip


def sharded_linear(
    ranks: Ranks, config: DitConfig, part: Shard, communication: str, dtype: torch.dtype
) -> ShardedLinear:
    """The way that `communication` names; its `way` says what it is. "best" is "collective" where
    ranks have no memory in common. Raises EngineError("bad_config") for one unknown.
    """
    if communication not in WAYS:
        known = ", ".join(WAYS)
        raise EngineError("bad_config", f"no communication is {communication!r}", f"use {known}")
    if ranks.ranks == 1:
        return WholeLinear(part.width, ranks.device)
    try:
        return WAYS[communication](ranks, config, part, dtype)
    except EngineError as error:  # on every rank, or on none
        if communication != "best" or error.code != "bad_config":
            raise
        return CollectiveLinear(ranks, config, part, dtype)
