# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""Causal 3-D convolution as one GEMM over shifted rows, from a ring of frames, bf16 or fp8.

Truth: `reference.causal_conv`. In `Grid` layout a tap is a constant shift of rows, so the tensor
copy engine fetches the operand of every tap as an ordinary tile: no im2col, no concatenated cache,
no padding pass. The inner loop runs over taps x channels; bias and residual are in the epilogue.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.grid import TILE, Grid
from kernels.shapes import conv_blocks


@triton.jit
def _conv(
    a_desc, w_desc, out_desc, residual_desc, bias_ptr, base_ptr, w_scale,
    tiles, n_tiles, slots, rows, pitch,
    C: tl.constexpr, KT: tl.constexpr, KS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, RESIDUAL: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    # neighbours in the grid share their rows: the picture is read from memory once
    n = tl.program_id(0) % n_tiles
    m = tl.program_id(0) // n_tiles
    t = m // tiles
    first = (m % tiles) * BM
    newest = tl.load(base_ptr) + t + slots - (KT - 1)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in tl.range(0, KT * KS * KS * (C // BK)):
        tap = i // (C // BK)
        slot = (newest + tap // (KS * KS)) % slots
        shift = ((tap // KS) % KS - KS // 2) * pitch + tap % KS - KS // 2
        a = a_desc.load([slot * rows + first + shift, (i % (C // BK)) * BK])
        w = w_desc.load([n * BN, i * BK])
        acc = tl.dot(a, w.T, acc)
    acc = acc * w_scale + tl.load(bias_ptr + n * BN + tl.arange(0, BN))[None, :]
    if RESIDUAL:
        acc += residual_desc.load([t * rows + first, n * BN]).to(tl.float32)
    out_desc.store([t * rows + first, n * BN], acc.to(OUT))


def causal_conv(
    ring: Tensor,
    weight: Tensor,
    bias: Tensor,
    out: Tensor,
    base: Tensor,
    grid: Grid,
    frames: int,
    taps: tuple[int, int],
    residual: Tensor | None = None,
    w_scale: float = 1.0,
) -> None:
    """See `reference.causal_conv`. C a multiple of 64 (128 in fp8), N of 16."""
    channels, wide = ring.shape[-1], weight.shape[0]
    bn, bk, warps, stages = conv_blocks(wide, ring.element_size() == 1)
    assert channels % bk == 0 and wide % bn == 0, (channels, bk, wide, bn)
    tiles, n_tiles = grid.rows // TILE, wide // bn
    out_desc = TensorDescriptor.from_tensor(out, [TILE, bn])
    _conv[(frames * tiles * n_tiles,)](
        TensorDescriptor.from_tensor(ring, [TILE, bk]),
        TensorDescriptor.from_tensor(weight, [bn, bk]),
        out_desc,
        out_desc if residual is None else TensorDescriptor.from_tensor(residual, [TILE, bn]),
        bias, base, w_scale, tiles, n_tiles, ring.shape[0] // grid.rows, grid.rows, grid.pitch,
        C=channels, KT=taps[0], KS=taps[1], BM=TILE, BN=bn, BK=bk, RESIDUAL=residual is not None,
        OUT={2: tl.bfloat16, 4: tl.float32}[out.element_size()],
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
