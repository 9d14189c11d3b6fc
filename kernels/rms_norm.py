# ruff: noqa: ANN001, ANN202, SIM108 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""RMSNorm over all heads: the query of cross-attention; and the sums that let ranks share a norm.

Truths: `reference.rms_norm`, `reference.square_sums`. Knows nothing of how sums cross ranks.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rms_norm(
    x_ptr, weight_ptr, out_ptr, sums_ptr, full, eps,
    D: tl.constexpr, BLOCK: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < D
    x = tl.load(x_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + col, mask=inside, other=0.0).to(tl.float32)
    if SUMS:
        total = tl.load(sums_ptr + row)
    else:
        total = tl.sum(x * x, 0)
    value = x * tl.rsqrt(total / full + eps) * weight
    tl.store(out_ptr + row * D + col, value.to(out_ptr.dtype.element_ty), mask=inside)


def rms_norm(
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    sums: Tensor | None = None,
    full_width: int = 0,
    eps: float = 1e-6,
) -> None:
    """See `reference.rms_norm`. Contiguous rows."""
    rows, width = x.shape
    block = triton.next_power_of_2(width)
    full = width if sums is None else full_width
    _rms_norm[(rows,)](
        x, weight, out, x if sums is None else sums, float(full), eps,
        D=width, BLOCK=block, SUMS=sums is not None, num_warps=8 if block >= 4096 else 4,
    )  # fmt: skip


@triton.jit
def _square_sums(x_ptr, sums_ptr, stride, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + group * D + col, mask=col < D, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row * tl.num_programs(1) + group, tl.sum(x * x, 0))


def square_sums(x: Tensor, width: int, sums: Tensor) -> None:
    """See `reference.square_sums`. Contiguous rows."""
    rows, groups = sums.shape
    block = triton.next_power_of_2(width)
    _square_sums[(rows, groups)](
        x, sums, x.shape[1], D=width, BLOCK=block, num_warps=8 if block >= 4096 else 4
    )
