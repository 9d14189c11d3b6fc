# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""x += y * gate; LayerNorm(x) * (1 + scale) + shift; quantise: one pass, one program a row.

Truth: `reference.residual_norm`. Unfused this is six kernels that each move the row through memory;
here x and y are read once, x and the fp8 result written once. Knows nothing of scales' origin.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _residual_norm(
    x_ptr, y_ptr, gate_ptr, shift_ptr, scale_ptr, out_ptr, out_scale_ptr, eps,
    D: tl.constexpr, BLOCK: tl.constexpr, ADD: tl.constexpr, GATE: tl.constexpr,
    MODE: tl.constexpr,  # 0 plain, 1 fp8 with the given scale, 2 fp8 with a scale a row
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < D
    x = tl.load(x_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32)
        if GATE:
            y *= tl.load(gate_ptr + col, mask=inside, other=0.0)
        # rounded as stored, so that the norm sees what the next layer will read
        x = (x + y).to(x_ptr.dtype.element_ty)
        tl.store(x_ptr + row * D + col, x, mask=inside)
        x = x.to(tl.float32)
    mean = tl.sum(x, 0) / D
    centred = tl.where(inside, x - mean, 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, 0) / D + eps)
    scale = tl.load(scale_ptr + col, mask=inside, other=0.0)
    shift = tl.load(shift_ptr + col, mask=inside, other=0.0)
    value = centred * inverse * (1.0 + scale) + shift
    if MODE == 1:
        value /= tl.load(out_scale_ptr)
    if MODE == 2:
        largest = tl.maximum(tl.max(tl.where(inside, tl.abs(value), 0.0), 0), 1e-12)
        tl.store(out_scale_ptr + row, largest / 448.0)
        value *= 448.0 / largest
    if MODE != 0:
        value = tl.minimum(tl.maximum(value, -448.0), 448.0)
    tl.store(out_ptr + row * D + col, value.to(out_ptr.dtype.element_ty), mask=inside)


def scale_mode(out: Tensor, out_scale: Tensor | None) -> int:
    """Which of the kernel's MODEs an output asks for."""
    if out.dtype != torch.float8_e4m3fn:
        return 0
    assert out_scale is not None, "an fp8 output needs a scale"
    return 2 if out_scale.ndim == 2 else 1


def residual_norm(
    x: Tensor,
    y: Tensor | None,
    gate: Tensor | None,
    shift: Tensor,
    scale: Tensor,
    out: Tensor,
    out_scale: Tensor | None = None,
    eps: float = 1e-6,
) -> None:
    """See `reference.residual_norm`. Rows of at most 16,384; contiguous."""
    rows, width = x.shape
    block = triton.next_power_of_2(width)
    _residual_norm[(rows,)](
        x, x if y is None else y, shift if gate is None else gate, shift, scale, out,
        shift if out_scale is None else out_scale, eps,
        D=width, BLOCK=block, ADD=y is not None, GATE=gate is not None,
        MODE=scale_mode(out, out_scale), num_warps=8 if block >= 4096 else 4,
    )  # fmt: skip
