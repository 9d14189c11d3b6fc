# ruff: noqa: ANN001, ANN202, C901, PLR0915 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false
"""FP8 GEMM + reduce-scatter in one kernel: tiles for other ranks first, stored into their memory.

Truth: `reference_peers.linear_scatter`. A persistent loop walks the tiles of the next rank, the one
after, ..., its own last. A tile for another rank goes to that rank's workspace in bf16 and raises a
flag there; an own tile adds the others' tiles, in rank order from the next rank on, and the bias,
in fp32, and is final: no barrier, no pass of its own for the sum. The order of additions is fixed:
the result of a rank is the same bits every time.

No deadlock: a program raises all its flags before its first wait, and all programs are resident.

How tiles leave (ENGINE): by the tensor copy engine, which needs no thread to wait while NVLink
drains. All 132 programs end their tiles at the same moment: 132 x 32 KB at 300 GB/s are 14 us in
which plain stores would hold up the next tile's arithmetic. Its flag follows one tile later, when
the store has long completed. A copy descriptor reaches two addresses by a stride of their distance,
and a row beyond the shape stores nothing, so no tile needs an `if` (which a flattened loop cannot
hold in Triton 3.6). Without ENGINE the destination is chosen by address arithmetic.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.gemm_blocks import WIDE, Blocks, store_type
from kernels.peer import BOTH, Workspace
from kernels.peer_signals import await_flag, await_stores, data_of, flag_of, raise_flag


# one build for all ranks
@triton.jit(do_not_specialize=["rank", "base_row", "near_flip", "far_flip"])
def _linear_scatter(
    a_desc, w_desc, out_desc, near_desc, far_desc, out_ptr, a_scale_ptr, w_scale_ptr, bias_ptr,
    pointers_ptr, epochs_ptr, rank, rows, columns, inner, base_row, near_flip, far_flip,
    RANKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ROW_SCALE: tl.constexpr, COLUMN_SCALE: tl.constexpr, BIAS: tl.constexpr,
    PHASE: tl.constexpr, ENGINE: tl.constexpr, ASM: tl.constexpr, FLAT: tl.constexpr,
    OUT: tl.constexpr,
):  # fmt: skip
    epoch = tl.load(epochs_ptr + tl.program_id(0)) + 1
    programs = tl.num_programs(0)
    down = tl.cdiv(rows, BM)
    tiles = down * tl.cdiv(columns, BN)  # of one owner
    base = (epoch & 1) * base_row
    remote = tiles * (RANKS - 1)
    first = tl.program_id(0)
    end = tiles * RANKS
    if PHASE == 1:
        end = remote
    if PHASE == 2:
        first += tl.cdiv(tl.maximum(remote - first, 0), programs) * programs
    for t in tl.range(first, end, programs, flatten=FLAT):
        turn = t // tiles
        owner = (rank + 1 + turn) % RANKS
        own = turn == RANKS - 1
        tile = t % tiles
        row = (tile % down) * BM
        col = (tile // down) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(inner, BK)):
            a = a_desc.load([owner * rows + row, k * BK])
            w = w_desc.load([col, k * BK])
            acc = tl.dot(a, w.T, acc)
        ri = row + tl.arange(0, BM)
        ci = col + tl.arange(0, BN)
        inside = (ri[:, None] < rows) & (ci[None, :] < columns)
        if COLUMN_SCALE:
            scale = tl.load(w_scale_ptr + ci, mask=ci < columns, other=0.0)[None, :]
        else:
            scale = tl.load(w_scale_ptr)
        if ROW_SCALE:
            acc *= tl.load(a_scale_ptr + owner * rows + ri, mask=ri < rows, other=0.0)[:, None]
        else:
            scale *= tl.load(a_scale_ptr)
        acc *= scale
        if ENGINE:
            # the tile before this one has left by now: one whole tile's arithmetic ago
            await_stores(ASM)
            before = tl.maximum(t - programs, 0)
            raise_flag(
                flag_of(pointers_ptr, (rank + 1 + before // tiles) % RANKS, rank, tiles,
                          before % tiles),
                epoch, (t >= programs) & (before < remote), ASM,
            )  # fmt: skip
        for step in tl.static_range(1, RANKS):
            source = (rank + step) % RANKS
            await_flag(flag_of(pointers_ptr, rank, source, tiles, tile), epoch, own, ASM)
            slot = (base + source * down * BM + ri).to(tl.int64)
            part = data_of(pointers_ptr, rank, OUT) + slot[:, None] * columns + ci[None, :]
            acc += tl.load(part, mask=inside & own, other=0.0).to(tl.float32)
        if BIAS:
            acc += tl.load(bias_ptr + ci, mask=(ci < columns) & own, other=0.0)[None, :].to(
                tl.float32
            )
        value = acc.to(OUT)
        slot_row = base + rank * down * BM + row
        if ENGINE:
            nowhere = 0x7F000000
            out_desc.store([0, tl.where(own, row, nowhere), col], value.reshape(1, BM, BN))
            if RANKS > 3:
                at = tl.where((turn >= 2) & (turn != RANKS - 1), slot_row, nowhere)
                far_desc.store([(turn & 1) ^ far_flip, at, col], value.reshape(1, BM, BN))
            if RANKS > 1:
                at = tl.where((turn < 2) & (turn != RANKS - 1), slot_row, nowhere)
                near_desc.store([(turn & 1) ^ near_flip, at, col], value.reshape(1, BM, BN))
        else:
            there = data_of(pointers_ptr, owner, OUT).to(tl.int64)
            there = tl.where(own, out_ptr.to(tl.int64), there)
            target = tl.multiple_of(there.to(tl.pointer_type(OUT)), 16)
            at = (tl.where(own, row, slot_row) + tl.arange(0, BM)).to(tl.int64)
            tl.store(target + at[:, None] * columns + ci[None, :], value, mask=inside)
            flag = flag_of(pointers_ptr, owner, rank, tiles, tile)
            raise_flag(flag, epoch, turn < RANKS - 1, ASM)
    if ENGINE:
        await_stores(ASM)
        last = first + tl.cdiv(tl.maximum(end - first, 0), programs) * programs - programs
        at = tl.maximum(last, 0)
        raise_flag(
            flag_of(pointers_ptr, (rank + 1 + at // tiles) % RANKS, rank, tiles, at % tiles),
            epoch, (last >= 0) & (last < remote), ASM,
        )  # fmt: skip
    if PHASE != 1:
        tl.store(epochs_ptr + tl.program_id(0), epoch)


FARTHEST = 1 << 40  # bytes: what a stride of a copy descriptor can span


def pair_descriptor(
    space: Workspace, steps: tuple[int, ...], columns: int, out: Tensor, block: list[int]
) -> tuple[TensorDescriptor, int] | None:
    """Both halves of one or two peers, `steps` ranks on, as one descriptor [peers, rows, columns].

    Returns it with 1 where the first step lies at the higher address (so that index and step are
    swapped), else 0; None when the two lie too far apart.
    """
    parts = [
        space.rows((space.rank + step) % space.ranks, columns * out.element_size()).view(out.dtype)
        for step in steps
    ]
    low = min(parts, key=Tensor.data_ptr)
    distance = max(p.data_ptr() for p in parts) - low.data_ptr()
    if distance >= FARTHEST:
        return None
    stride = distance // out.element_size() if len(parts) > 1 else low.numel()
    shape = [len(parts), *low.shape]
    return TensorDescriptor(low, shape, [stride, columns, 1], block), int(low is not parts[0])


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
    engine: bool = True,
) -> None:
    """See `reference_peers.linear_scatter`. K and N multiples of 16, all contiguous.

    `engine` False stores tiles by the program's own threads, as more than 5 ranks always do.
    """
    (rows, columns), inner = out.shape, a.shape[1]
    assert a.shape[0] == space.ranks * rows and w.shape == (columns, inner), (a.shape, w.shape)
    b = blocks or WIDE
    down, across = triton.cdiv(rows, b.rows), triton.cdiv(columns, b.columns)
    row_bytes = columns * out.element_size()
    space.check(space.ranks * down * b.rows, row_bytes, down * across)
    block = [1, b.rows, b.columns]
    out_desc = TensorDescriptor.from_tensor(out[None], block)
    steps = tuple(range(1, space.ranks))
    pairs = [
        pair_descriptor(space, steps[i : i + 2], columns, out, block) for i in (0, 2) if steps[i:]
    ]
    engine = engine and space.ranks <= 5 and None not in pairs
    (near, near_flip), (far, far_flip) = ([p for p in pairs if p] + [(out_desc, 0)] * 2)[:2]
    _linear_scatter[(space.programs,)](
        TensorDescriptor.from_tensor(a, [b.rows, b.inner]),
        TensorDescriptor.from_tensor(w, [b.columns, b.inner]),
        out_desc, near, far, out, a_scale, w_scale, w_scale if bias is None else bias,
        space.buffer.pointers, space.epochs, space.rank, rows, columns, inner,
        space.base_row(row_bytes), near_flip, far_flip,
        RANKS=space.ranks, BM=b.rows, BN=b.columns, BK=b.inner, ROW_SCALE=a_scale.ndim == 2,
        COLUMN_SCALE=w_scale.ndim == 2, BIAS=bias is not None, PHASE=phase, ENGINE=engine,
        ASM=a.is_cuda, FLAT=a.is_cuda, OUT=store_type(out), num_warps=b.warps, num_stages=b.stages,
    )  # fmt: skip
