# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""RMSNorm over all heads of a rank: the query of cross-attention. Truth: `reference.rms_norm`."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rms_norm(x_ptr, weight_ptr, out_ptr, eps, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < D
    x = tl.load(x_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + col, mask=inside, other=0.0).to(tl.float32)
    value = x * tl.rsqrt(tl.sum(x * x, 0) / D + eps) * weight
    tl.store(out_ptr + row * D + col, value.to(out_ptr.dtype.element_ty), mask=inside)


def rms_norm(x: Tensor, weight: Tensor, out: Tensor, eps: float = 1e-6) -> None:
    """See `reference.rms_norm`. Contiguous rows."""
    rows, width = x.shape
    block = triton.next_power_of_2(width)
    _rms_norm[(rows,)](
        x, weight, out, eps, D=width, BLOCK=block, num_warps=8 if block >= 4096 else 4
    )
