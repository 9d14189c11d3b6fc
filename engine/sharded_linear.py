"""Linear layers whose weights are cut over ranks; between them each rank holds a stretch of rows.

`columns`: this rank's rows in, all rows of its own output columns out (gather, then GEMM).
`rows`: all rows of its own input columns in, this rank's rows of the sum out (GEMM, then scatter).
Padding stays in the buffers of the exchange: no GEMM reads it, no window sees it.
Knows nothing of blocks, heads or norms' weights.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from engine.fp8 import Activation, Linear, LinearOp
from engine.marks import Marks
from engine.models.dit_config import DitConfig, Shard
from engine.parallel import Ranks, rows_of
from kernels import ops
from kernels.reference import FP8


class ShardedLinear(Protocol):
    """How a model applies the layers that its ranks share."""

    way: str  # of `Way.communication`, or "one rank"

    def columns(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        """x [share, K], rows of this rank -> out [count, own N]."""
        ...

    def rows(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        """x [count, own K] -> out [share, N], this rank's rows of the sum over ranks."""
        ...

    def whole(self, local: Tensor, out: Tensor, mark: Marks) -> None:
        """Rows [share, W] of each rank -> `out` [ranks * share, W], which is `local` on one."""
        ...

    def norm_sums(self, x: Tensor, groups: int, mark: Marks) -> Tensor | None:
        """Sums of squares over all ranks' columns, fp32 [count, groups], of the first `groups`
        groups of `x` [count, n * own width]; None when this rank has all columns itself.
        """
        ...

    def sum_squares(self, squares: Tensor) -> int:
        """Add up `squares` over ranks in place; returns the number of columns they are of."""
        ...

    def all_heads(self, values: Tensor, heads: int) -> Tensor:
        """[J, n, own heads, hd] of each rank -> [J, n, heads, hd], without padded heads."""
        ...


class WholeLinear:
    """One rank: nothing to exchange, norms see every column."""

    way = "one rank"

    def __init__(self, width: int, device: torch.device) -> None:
        self._width = width
        self._linear = LinearOp(device)

    def columns(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        mark("gemm")
        self._linear(x, layer, out)

    def rows(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        self.columns(x, layer, out, mark)

    def whole(self, local: Tensor, out: Tensor, mark: Marks) -> None:
        pass

    def norm_sums(self, x: Tensor, groups: int, mark: Marks) -> Tensor | None:
        return None

    def sum_squares(self, squares: Tensor) -> int:
        return self._width

    def all_heads(self, values: Tensor, heads: int) -> Tensor:
        return values


class CollectiveLinear:
    """The truth, and the way for shapes that nothing beats: the library's collective and a GEMM."""

    way = "collective"

    def __init__(self, ranks: Ranks, config: DitConfig, part: Shard, dtype: torch.dtype) -> None:
        device = ranks.device
        rows = rows_of(ranks, max(config.tokens, config.sink_tokens))
        self._ranks, self._width, self._inner = ranks, part.width, config.inner
        self._linear = LinearOp(device)
        self._square_sums = ops.choose("square_sums", device)
        shape = rows.padded, config.width
        self._wide = torch.zeros(shape, dtype=dtype, device=device)  # gathered, or to be summed
        self._narrow = torch.zeros(shape, dtype=torch.uint8, device=device).view(FP8)
        self._scales = torch.zeros(rows.padded, 1, device=device)
        self._sums = torch.zeros(2 * rows.count, device=device)

    def columns(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        mark("comm")
        values, scale = x.values, x.scale
        padded = values.shape[0] * self._ranks.ranks
        whole = (self._narrow if values.dtype == FP8 else self._wide)[:padded]
        self._gather(values, whole)
        if scale is not None and scale.ndim == 2:
            self._ranks.gather_rows(scale, self._scales[:padded])
            scale = self._scales[: out.shape[0]]
        mark("gemm")
        self._linear(Activation(whole[: out.shape[0]], scale), layer, out)

    def rows(self, x: Activation, layer: Linear, out: Tensor, mark: Marks) -> None:
        mark("gemm")
        count = x.values.shape[0]
        self._linear(x, layer, self._wide[:count])
        mark("comm")
        self._scatter(self._wide[: out.shape[0] * self._ranks.ranks], out)

    def whole(self, local: Tensor, out: Tensor, mark: Marks) -> None:
        mark("comm")
        self._gather(local, out)

    def _gather(self, local: Tensor, out: Tensor) -> None:
        self._ranks.gather_rows(local, out)

    def _scatter(self, partial: Tensor, out: Tensor) -> None:
        self._ranks.scatter_sum(partial, out)

    def norm_sums(self, x: Tensor, groups: int, mark: Marks) -> Tensor | None:
        mark("cache")
        sums = self._sums[: x.shape[0] * groups].view(-1, groups)
        self._square_sums(x, self._width, sums)
        mark("comm")
        self._ranks.sum_(sums)
        return sums

    def sum_squares(self, squares: Tensor) -> int:
        self._ranks.sum_(squares)
        return self._inner

    def all_heads(self, values: Tensor, heads: int) -> Tensor:
        places, count, own, head_dim = values.shape
        local = values.reshape(places * count, own * head_dim)
        out = local.new_empty(self._ranks.ranks * local.shape[0], local.shape[1])
        self._ranks.gather_rows(local, out)
        apart = out.view(-1, places, count, own, head_dim).permute(1, 2, 0, 3, 4)
        return apart.flatten(2, 3)[:, :, :heads]
