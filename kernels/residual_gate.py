# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""x += y * gate in place. Truth: `reference.residual_gate`. Used where no norm follows."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _residual_gate(
    x_ptr, y_ptr, gate_ptr, D: tl.constexpr, BLOCK: tl.constexpr, GATE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < D
    y = tl.load(y_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32)
    if GATE:
        y *= tl.load(gate_ptr + col, mask=inside, other=0.0)
    x = tl.load(x_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32) + y
    tl.store(x_ptr + row * D + col, x.to(x_ptr.dtype.element_ty), mask=inside)


def residual_gate(x: Tensor, y: Tensor, gate: Tensor | None) -> None:
    """See `reference.residual_gate`."""
    rows, width = x.shape
    grid = (rows, triton.cdiv(width, 2048))
    _residual_gate[grid](x, y, x if gate is None else gate, D=width, BLOCK=2048,
                         GATE=gate is not None, num_warps=4)  # fmt: skip
