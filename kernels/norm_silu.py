# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""Channel norm + SiLU + (fp8) + store into a convolution's ring, in one pass over the pixels.

Truth: `reference.norm_silu`. The ring slot comes from device memory, so a graph serves every chunk,
and the cache of the temporal convolution is this very ring: nothing is concatenated or copied.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from kernels.grid import Grid


@triton.jit
def _norm_silu(
    x_ptr, gamma_ptr, ring_ptr, base_ptr, pixels, height, width, pitch, rows, slots,
    C: tl.constexpr, RC: tl.constexpr, BLOCK: tl.constexpr, BC: tl.constexpr,
    NORM: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    line = pixel // width
    t = line // height
    inner = (line % height + 1) * pitch + pixel % width
    slot = (tl.load(base_ptr) + t) % slots
    col = tl.arange(0, BC)[None, :]
    inside = (pixel[:, None] < pixels) & (col < C)
    source = (t * rows + inner).to(tl.int64)[:, None] * C + col
    x = tl.load(x_ptr + source, mask=inside, other=0.0).to(tl.float32)
    if NORM:
        squares = tl.maximum(tl.sum(x * x, 1), 1e-24)
        x = x * (tl.rsqrt(squares / C))[:, None] * tl.load(gamma_ptr + col, mask=col < C, other=0.0)
        x = x / (1.0 + tl.exp(-x))
    if FP8:
        x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    target = (slot * rows + inner).to(tl.int64)[:, None] * RC + col
    tl.store(ring_ptr + target, x.to(ring_ptr.dtype.element_ty), mask=inside)


def norm_silu(
    x: Tensor, gamma: Tensor | None, ring: Tensor, base: Tensor, grid: Grid, frames: int
) -> None:
    """See `reference.norm_silu`."""
    channels = x.shape[-1]
    block_c = triton.next_power_of_2(channels)
    block = max(1, 4096 // block_c)
    pixels = frames * grid.height * grid.width
    _norm_silu[(triton.cdiv(pixels, block),)](
        x, base if gamma is None else gamma, ring, base, pixels, grid.height, grid.width,
        grid.pitch, grid.rows, ring.shape[0] // grid.rows, C=channels, RC=ring.shape[-1],
        BLOCK=block, BC=block_c, NORM=gamma is not None, FP8=ring.element_size() == 1, num_warps=4,
    )  # fmt: skip
