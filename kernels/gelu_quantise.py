# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""GELU (tanh form) and quantisation in one pass; and quantisation alone.

Truths: `reference.gelu`, `reference.quantise`. With a static scale the work is elementwise and cut
into blocks of 2,048 columns, so that 748 rows fill the chip; a scale a row needs the whole row.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from kernels.residual_norm import scale_mode


@triton.jit
def _activate(
    h_ptr, out_ptr, scale_ptr, D: tl.constexpr, BLOCK: tl.constexpr,
    GELU: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < D
    x = tl.load(h_ptr + row * D + col, mask=inside, other=0.0).to(tl.float32)
    if GELU:
        # tanh(u) = 1 - 2 / (exp(2u) + 1): saturates right at both ends
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        x = x * (1.0 - 1.0 / (tl.exp(2.0 * inner) + 1.0))
    if MODE == 1:
        x /= tl.load(scale_ptr)
    if MODE == 2:
        largest = tl.maximum(tl.max(tl.abs(x), 0), 1e-12)
        tl.store(scale_ptr + row, largest / 448.0)
        x *= 448.0 / largest
    if MODE != 0:
        x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    tl.store(out_ptr + row * D + col, x.to(out_ptr.dtype.element_ty), mask=inside)


def _launch(h: Tensor, out: Tensor, out_scale: Tensor | None, with_gelu: bool) -> None:
    rows, width = h.shape
    mode = scale_mode(out, out_scale)
    block = triton.next_power_of_2(width) if mode == 2 else 2048
    _activate[(rows, triton.cdiv(width, block))](
        h, out, h if out_scale is None else out_scale, D=width, BLOCK=block,
        GELU=with_gelu, MODE=mode, num_warps=8 if block >= 8192 else 4,
    )  # fmt: skip


def gelu(h: Tensor, out: Tensor, out_scale: Tensor | None = None) -> None:
    """See `reference.gelu`."""
    _launch(h, out, out_scale, True)


def quantise(x: Tensor, out: Tensor, out_scale: Tensor) -> None:
    """See `reference.quantise`."""
    _launch(x, out, out_scale, False)
