# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""Doubling a picture in `Grid` layout, plain and as the decoder's shortcut. Memory-bound copies.

Truths: `reference.upsample`, `reference.spread`.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from kernels.grid import Grid


@triton.jit
def _gather(
    x_ptr, out_ptr, pixels, height, width, pitch, rows, out_rows, skip,
    XC: tl.constexpr, OC: tl.constexpr, C: tl.constexpr, TIMES: tl.constexpr, SPREAD: tl.constexpr,
    BLOCK: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    # height, width, pitch, rows are the source's; the target has twice the lines and columns
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    line = pixel // (2 * width)
    x = pixel % (2 * width)
    y = line % (2 * height)
    t = line // (2 * height)
    a = (t + skip) % TIMES
    source_row = ((t + skip) // TIMES) * rows + (y // 2 + 1) * pitch + x // 2
    target_row = t * out_rows + (y + 1) * (2 * width + 1) + x
    col = tl.arange(0, BC)[None, :]
    if SPREAD:
        part = 4 * TIMES * C // XC
        channel = (col * (4 * TIMES) + (a * 4 + (y % 2) * 2 + x % 2)[:, None]) // part
    else:
        channel = col + (a * C)[:, None]
    inside = (pixel[:, None] < pixels) & (col < C)
    value = tl.load(x_ptr + source_row.to(tl.int64)[:, None] * XC + channel, mask=inside)
    at = out_ptr + target_row.to(tl.int64)[:, None] * OC + col
    tl.store(at, value.to(out_ptr.dtype.element_ty), mask=inside)


def _launch(
    x: Tensor, out: Tensor, grid: Grid, frames: int, times: int, spreading: bool, skip: int
) -> None:
    channels = out.shape[-1] if spreading else x.shape[-1] // times
    block_c = triton.next_power_of_2(channels)
    block = max(1, 2048 // block_c)
    pixels = (frames * times - skip) * 4 * grid.height * grid.width
    _gather[(triton.cdiv(pixels, block),)](
        x, out, pixels, grid.height, grid.width, grid.pitch, grid.rows, grid.doubled().rows, skip,
        XC=x.shape[-1], OC=out.shape[-1], C=channels, TIMES=times, SPREAD=spreading,
        BLOCK=block, BC=block_c, num_warps=4,
    )  # fmt: skip


def upsample(x: Tensor, out: Tensor, grid: Grid, frames: int, halves: int) -> None:
    """See `reference.upsample`."""
    _launch(x, out, grid, frames, halves, False, 0)


def spread(x: Tensor, out: Tensor, grid: Grid, frames: int, times: int, skip: int = 0) -> None:
    """See `reference.spread`."""
    _launch(x, out, grid, frames, times, True, skip)
