# ruff: noqa: ANN001, ANN202, C901, PLR0915 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false
"""FP8 GEMM + reduce-scatter in one kernel: tiles for other ranks first, sent on by a few programs.

Truth: `reference_peers.linear_scatter`. A persistent loop walks the tiles of the next rank, the one
after, ..., its own last. A tile for another rank is stored in bf16 in this rank's own memory; a few
programs (those that the last wave of tiles leaves idle anyway) carry it over and raise a flag
there. An own tile adds the others' tiles, in rank order from the next rank on, and the bias, in
fp32, and is final: no barrier, no pass of its own for the sum. The order of additions is fixed: the
result of a rank is the same bits every time.

No deadlock: programs compute all their remote tiles before they await any of another rank, those
that send await programs of their own rank only, and all programs are resident.

Why senders. All programs end their tiles at the same moment, and 132 x 32 KB are 14 us of NVLink.
Two H200, ff2: stored by the threads themselves 175 us, by the copy engine straight into the peer
163 (likely its loads for the next tile queue behind the store), where the same loop without ranks
took 128. Senders have two waves of time for it: 152 us with 12 that took one tile at a time.

The loop is flat, so that a tile's first loads overlap the last one's end. A flat loop holds no `if`
(Triton 3.6): a row beyond the shape stores nothing, and a wait may be told not to.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.gemm_blocks import WIDE, Blocks, senders_for, store_type
from kernels.peer import BOTH, Workspace
from kernels.peer_signals import await_flag, await_stores, data_of, flag_of, raise_flag


@triton.jit
def _fetch(
    kept, pointers_ptr, rank, rows, columns, base, epoch, t, end,
    RANKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Remote tile t once a program of this rank has computed it; nothing from `end` on."""
    down = tl.cdiv(rows, BM)
    tiles = down * tl.cdiv(columns, BN)
    turn = tl.minimum(t, end - 1) // tiles
    tile = t % tiles
    ri = (tile % down) * BM + tl.arange(0, BM)
    ci = (tile // down) * BN + tl.arange(0, BN)
    await_flag(flag_of(pointers_ptr, rank, RANKS + turn, tiles, tile), epoch, t < end, ASM)
    inside = (ri[:, None] < rows) & (ci[None, :] < columns) & (t < end)
    at = (base + (RANKS + turn) * down * BM + ri).to(tl.int64)
    return tl.load(kept + at[:, None] * columns + ci[None, :], mask=inside)


@triton.jit
def _deliver(
    value, pointers_ptr, rank, rows, columns, base, t, end,
    RANKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """Store a fetched tile at its owner; returns its flag there."""
    down = tl.cdiv(rows, BM)
    tiles = down * tl.cdiv(columns, BN)
    tile = t % tiles
    owner = (rank + 1 + tl.minimum(t, end - 1) // tiles) % RANKS
    ri = (tile % down) * BM + tl.arange(0, BM)
    ci = (tile // down) * BN + tl.arange(0, BN)
    inside = (ri[:, None] < rows) & (ci[None, :] < columns) & (t < end)
    at = (base + rank * down * BM + ri).to(tl.int64)
    there = data_of(pointers_ptr, owner, OUT)
    tl.store(there + at[:, None] * columns + ci[None, :], value, mask=inside)
    return flag_of(pointers_ptr, owner, rank, tiles, tile)


@triton.jit
def _send_tiles(
    pointers_ptr, rank, rows, columns, base, epoch, sender, senders,
    RANKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ASM: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """Every `senders`-th pair of remote tiles, in the order in which they are computed.

    The next pair is under way from memory while the flags of the last wait for its stores to have
    crossed over: one tile after another, a sender moved 6.7 GB/s and 12 could not keep up.
    """
    end = tl.cdiv(rows, BM) * tl.cdiv(columns, BN) * (RANKS - 1)
    kept = data_of(pointers_ptr, rank, OUT)
    t = 2 * sender
    one = _fetch(kept, pointers_ptr, rank, rows, columns, base, epoch, t, end,
                 RANKS, BM, BN, ASM)  # fmt: skip
    two = _fetch(kept, pointers_ptr, rank, rows, columns, base, epoch, t + 1, end,
                 RANKS, BM, BN, ASM)  # fmt: skip
    for t in tl.range(2 * sender, end, 2 * senders):
        first = _deliver(one, pointers_ptr, rank, rows, columns, base, t, end,
                         RANKS, BM, BN, OUT)  # fmt: skip
        second = _deliver(two, pointers_ptr, rank, rows, columns, base, t + 1, end,
                          RANKS, BM, BN, OUT)  # fmt: skip
        one = _fetch(kept, pointers_ptr, rank, rows, columns, base, epoch, t + 2 * senders, end,
                     RANKS, BM, BN, ASM)  # fmt: skip
        two = _fetch(kept, pointers_ptr, rank, rows, columns, base, epoch, t + 2 * senders + 1, end,
                     RANKS, BM, BN, ASM)  # fmt: skip
        raise_flag(first, epoch, senders > 0, ASM)
        raise_flag(second, epoch, t + 1 < end, ASM)


# one build for all ranks
@triton.jit(do_not_specialize=["rank", "base_row", "senders"])
def _linear_scatter(
    a_desc, w_desc, out_desc, kept_desc, a_scale_ptr, w_scale_ptr, bias_ptr,
    pointers_ptr, epochs_ptr, rank, rows, columns, inner, base_row, senders,
    RANKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ROW_SCALE: tl.constexpr, COLUMN_SCALE: tl.constexpr, BIAS: tl.constexpr,
    PHASE: tl.constexpr, ASM: tl.constexpr, FLAT: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    epoch = tl.load(epochs_ptr + pid) + 1
    workers = tl.num_programs(0) - senders
    down = tl.cdiv(rows, BM)
    tiles = down * tl.cdiv(columns, BN)  # of one owner
    base = (epoch & 1) * base_row
    remote = tiles * (RANKS - 1)
    if pid < workers:
        first = pid
        end = tiles * RANKS
        if PHASE == 1:
            end = remote
        if PHASE == 2:
            first += tl.cdiv(tl.maximum(remote - first, 0), workers) * workers
        for t in tl.range(first, end, workers, flatten=FLAT):
            turn = t // tiles
            owner = (rank + 1 + turn) % RANKS
            own = turn == RANKS - 1
            tile = t % tiles
            row = (tile % down) * BM
            col = (tile // down) * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, tl.cdiv(inner, BK)):
                a = a_desc.load([owner * rows + row, k * BK])
                acc = tl.dot(a, w_desc.load([col, k * BK]).T, acc)
            ri = row + tl.arange(0, BM)
            ci = col + tl.arange(0, BN)
            if COLUMN_SCALE:
                scale = tl.load(w_scale_ptr + ci, mask=ci < columns, other=0.0)[None, :]
            else:
                scale = tl.load(w_scale_ptr)
            if ROW_SCALE:
                acc *= tl.load(a_scale_ptr + owner * rows + ri, mask=ri < rows, other=0.0)[:, None]
            else:
                scale *= tl.load(a_scale_ptr)
            acc *= scale
            for step in tl.static_range(1, RANKS):
                source = (rank + step) % RANKS
                await_flag(flag_of(pointers_ptr, rank, source, tiles, tile), epoch, own, ASM)
                slot = (base + source * down * BM + ri).to(tl.int64)
                part = data_of(pointers_ptr, rank, OUT) + slot[:, None] * columns + ci[None, :]
                inside = (ri[:, None] < rows) & (ci[None, :] < columns) & own
                acc += tl.load(part, mask=inside, other=0.0).to(tl.float32)
            if BIAS:
                bias = tl.load(bias_ptr + ci, mask=(ci < columns) & own, other=0.0)
                acc += bias[None, :].to(tl.float32)
            value = acc.to(OUT).reshape(1, BM, BN)
            nowhere = 0x7F000000
            out_desc.store([0, tl.where(own, row, nowhere), col], value)
            if RANKS > 1:
                kept_row = base + (RANKS + turn) * down * BM + row
                kept_desc.store([0, tl.where(own, nowhere, kept_row), col], value)
                await_stores(own == 0, ASM)
                flag = flag_of(pointers_ptr, rank, tl.minimum(RANKS + turn, 2 * RANKS - 2), tiles,
                               tile)  # fmt: skip
                raise_flag(flag, epoch, own == 0, ASM, True)
    elif PHASE != 2:
        _send_tiles(pointers_ptr, rank, rows, columns, base, epoch, pid - workers, senders,
                    RANKS, BM, BN, ASM, OUT)  # fmt: skip
    if PHASE != 1:
        tl.store(epochs_ptr + pid, epoch)


def linear_scatter(
    a: Tensor,
    a_scale: Tensor,
    w: Tensor,
    w_scale: Tensor,
    bias: Tensor | None,
    out: Tensor,
    space: Workspace,
    phase: int = BOTH,
    blocks: Blocks | None = None,
    senders: int | None = None,
) -> None:
    """See `reference_peers.linear_scatter`. K and N multiples of 16, all contiguous."""
    (rows, columns), inner = out.shape, a.shape[1]
    assert a.shape[0] == space.ranks * rows and w.shape == (columns, inner), (a.shape, w.shape)
    b, parts = blocks or WIDE, 2 * space.ranks - 1  # slots: from each rank, then for each other
    down, across = triton.cdiv(rows, b.rows), triton.cdiv(columns, b.columns)
    row_bytes = columns * out.element_size()
    space.check(parts * down * b.rows, row_bytes, 2 * down * across)
    if senders is None:
        senders = senders_for(space.ranks * down * across, space.programs)
    block, kept = [1, b.rows, b.columns], space.rows(space.rank, row_bytes).view(out.dtype)
    _linear_scatter[(space.programs,)](
        TensorDescriptor.from_tensor(a, [b.rows, b.inner]),
        TensorDescriptor.from_tensor(w, [b.columns, b.inner]),
        TensorDescriptor.from_tensor(out[None], block),
        TensorDescriptor.from_tensor(kept[None], block),
        a_scale, w_scale, w_scale if bias is None else bias, space.buffer.pointers, space.epochs,
        space.rank, rows, columns, inner, space.base_row(row_bytes),
        senders if space.ranks > 1 else 0,
        RANKS=space.ranks, BM=b.rows, BN=b.columns, BK=b.inner, ROW_SCALE=a_scale.ndim == 2,
        COLUMN_SCALE=w_scale.ndim == 2, BIAS=bias is not None, PHASE=phase,
        ASM=a.is_cuda, FLAT=a.is_cuda, OUT=store_type(out), num_warps=b.warps, num_stages=b.stages,
    )  # fmt: skip
