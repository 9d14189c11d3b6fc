# ruff: noqa: ANN001, ANN201, ANN202, C901 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false
"""All-gather + FP8 GEMM in one kernel: own rows first, while a few programs send them to peers.

Truth: `reference_peers.gather_linear`. Reading a peer's rows in place would fetch them once a
column of tiles (90 times for QKV of two ranks: 258 MB over NVLink where 2.9 are needed), so every
rank pushes its fp8 rows and their scales once into each peer's workspace. The pushing programs are
those that the last wave of tiles leaves idle anyway: QKV of two ranks is 540 tiles, 5 waves on 108
to 132 programs alike. The others compute one wave of own tiles, then await all ranks' rows; from
there on a column of tiles is computed for all rows at once, so that the weights of all but the
first columns are read from memory once (twice, were all own rows to come first).

No deadlock: senders never wait, and all programs are resident.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.gemm_blocks import WIDE, Blocks, senders_for, store_type
from kernels.peer import BOTH, SCALES, Workspace
from kernels.peer_signals import await_senders, data_of, flag_of, raise_flag, scales_of

CHUNK = 8192  # words a sender moves at a time: 32 KB, 16 loads of 16 bytes a thread in flight


@triton.jit
def send_rows(
    x_ptr, apart, words, scale_ptr, rows, row_words, pointers_ptr, epoch, rank, base_row, sender,
    senders, OWN: tl.constexpr, RANKS: tl.constexpr, CHUNK: tl.constexpr, SCALED: tl.constexpr,
    SCALES: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """This sender's share of `words` 32-bit words (rows x row_words) to every peer, `apart` words
    apart in x (0: all get the same), and to ourselves last when OWN."""
    parity = epoch & 1
    slot = (parity * base_row + rank * rows).to(tl.int64) * row_words
    for step in tl.static_range(1, RANKS + OWN):
        peer = (rank + RANKS - step) % RANKS
        target = data_of(pointers_ptr, peer, tl.int32) + slot
        for c in tl.range(sender * CHUNK, words, senders * CHUNK):
            at = c + tl.arange(0, CHUNK)
            value = tl.load(x_ptr + peer * apart + at, mask=at < words)
            tl.store(target + at, value, mask=at < words)
        if SCALED:
            scales = scales_of(pointers_ptr, peer) + parity * SCALES + rank * rows
            for c in tl.range(sender * 1024, rows, senders * 1024):
                at = c + tl.arange(0, 1024)
                tl.store(scales + at, tl.load(scale_ptr + at, mask=at < rows), mask=at < rows)
        flag = flag_of(pointers_ptr, peer, rank, tl.num_programs(0), sender)
        raise_flag(flag, epoch, senders > 0, ASM)


@triton.jit
def _finish(
    acc, row, col, source, out_desc, scale_ptr, w_scale_ptr, bias_ptr, rows, columns,
    BM: tl.constexpr, BN: tl.constexpr, ROW_SCALE: tl.constexpr, COLUMN_SCALE: tl.constexpr,
    BIAS: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """Scale a tile, add the bias, store; rows of the tile beyond the source's are clipped."""
    ri = row + tl.arange(0, BM)
    ci = col + tl.arange(0, BN)
    if COLUMN_SCALE:
        scale = tl.load(w_scale_ptr + ci, mask=ci < columns, other=0.0)[None, :]
    else:
        scale = tl.load(w_scale_ptr)
    if ROW_SCALE:
        acc *= tl.load(scale_ptr + ri, mask=ri < rows, other=0.0)[:, None]
    else:
        scale *= tl.load(scale_ptr)
    acc *= scale
    if BIAS:
        acc += tl.load(bias_ptr + ci, mask=ci < columns, other=0.0)[None, :].to(tl.float32)
    out_desc.store([source, row, col], acc.to(OUT).reshape(1, BM, BN))


@triton.jit(do_not_specialize=["rank", "base_row", "senders", "early"])  # one build for all ranks
def _gather_linear(
    a_desc, peers_desc, w_desc, out_desc, a_ptr, a_scale_ptr, w_scale_ptr, bias_ptr,
    pointers_ptr, epochs_ptr, rank, rows, columns, inner, words, row_words, base_row, senders,
    early, RANKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ROW_SCALE: tl.constexpr, COLUMN_SCALE: tl.constexpr, BIAS: tl.constexpr,
    PHASE: tl.constexpr, CHUNK: tl.constexpr, SCALES: tl.constexpr, ASM: tl.constexpr,
    FLAT: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    epoch = tl.load(epochs_ptr + pid) + 1
    if pid < senders:
        if PHASE != 2:
            send_rows(
                a_ptr, 0, words, a_scale_ptr, rows, row_words, pointers_ptr, epoch, rank, base_row,
                pid, senders, True, RANKS, CHUNK, ROW_SCALE, SCALES, ASM,
            )  # fmt: skip
    elif PHASE != 1:
        workers = tl.num_programs(0) - senders
        worker = pid - senders
        down = tl.cdiv(rows, BM)
        turns = tl.cdiv(inner, BK)
        for t in tl.range(worker, early, workers, flatten=FLAT):
            row = (t % down) * BM
            col = (t // down) * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, turns):
                acc = tl.dot(a_desc.load([row, k * BK]), w_desc.load([col, k * BK]).T, acc)
            _finish(acc, row, col, rank, out_desc, a_scale_ptr, w_scale_ptr, bias_ptr, rows,
                    columns, BM, BN, ROW_SCALE, COLUMN_SCALE, BIAS, OUT)  # fmt: skip
        if RANKS > 1:
            base = (epoch & 1) * base_row
            scales = scales_of(pointers_ptr, rank) + (epoch & 1) * SCALES
            for sent in tl.static_range(RANKS):
                await_senders(pointers_ptr, rank, sent, senders, tl.num_programs(0), epoch, ASM)
            # peers' rows of the first columns, then all rows of the others, a column at a time
            begun = (RANKS - 1) * early
            total = RANKS * down * tl.cdiv(columns, BN)
            start = worker + tl.cdiv(tl.maximum(early - worker, 0), workers) * workers
            for t in tl.range(start - early, total - early, workers, flatten=FLAT):
                late = t >= begun
                each = tl.where(late, RANKS * down, (RANKS - 1) * down)  # tiles of a column
                place = tl.where(late, t - begun, t)
                source = (rank + place % each // down + tl.where(late, 0, 1)) % RANKS
                row = (place % down) * BM
                col = (place // each + tl.where(late, early // down, 0)) * BN
                first = base + source * rows + row
                acc = tl.zeros((BM, BN), tl.float32)
                for k in range(0, turns):
                    acc = tl.dot(
                        peers_desc.load([first, k * BK]), w_desc.load([col, k * BK]).T, acc
                    )
                scale_ptr = scales + source * rows if ROW_SCALE else a_scale_ptr
                _finish(acc, row, col, source, out_desc, scale_ptr, w_scale_ptr, bias_ptr, rows,
                        columns, BM, BN, ROW_SCALE, COLUMN_SCALE, BIAS, OUT)  # fmt: skip
    if PHASE != 1:
        tl.store(epochs_ptr + pid, epoch)


def gather_linear(
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
    """See `reference_peers.gather_linear`. K and N multiples of 16, all contiguous."""
    rows, inner = a.shape
    columns, row_bytes = w.shape[0], inner * a.element_size()
    assert out.shape == (space.ranks * rows, columns), out.shape
    space.check(space.ranks * rows, row_bytes, scales=a_scale.ndim == 2)
    b = blocks or WIDE
    down, across = triton.cdiv(rows, b.rows), triton.cdiv(columns, b.columns)
    if senders is None:
        senders = senders_for(space.ranks * down * across, space.programs)
    assert senders <= 32, "await_senders looks at 32 flags"
    early = across  # columns of own tiles computed while nothing has come yet: one wave
    if space.ranks > 1:
        early = min(across, max(1, (space.programs - senders) // down))
    _gather_linear[(space.programs,)](
        TensorDescriptor.from_tensor(a, [b.rows, b.inner]),
        TensorDescriptor.from_tensor(
            space.rows(space.rank, row_bytes).view(a.dtype), [b.rows, b.inner]
        ),
        TensorDescriptor.from_tensor(w, [b.columns, b.inner]),
        TensorDescriptor.from_tensor(
            out.view(space.ranks, rows, columns), [1, b.rows, b.columns]
        ),
        a.view(torch.int32), a_scale, w_scale, w_scale if bias is None else bias,
        space.buffer.pointers, space.epochs, space.rank, rows, columns, inner,
        rows * row_bytes // 4, row_bytes // 4, space.base_row(row_bytes),
        senders if space.ranks > 1 else 0, early * down,
        RANKS=space.ranks, BM=b.rows, BN=b.columns, BK=b.inner, ROW_SCALE=a_scale.ndim == 2,
        COLUMN_SCALE=w_scale.ndim == 2, BIAS=bias is not None, PHASE=phase, CHUNK=CHUNK,
        SCALES=SCALES, ASM=a.is_cuda, FLAT=a.is_cuda, OUT=store_type(out),
        num_warps=b.warps, num_stages=b.stages,
    )  # fmt: skip
