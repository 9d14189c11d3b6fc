# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false
"""Plain collectives over a `Workspace`: gather, sum of shares ("two-shot"), small sums, a barrier.

Truths: `reference_peers`. In each, program p of every rank deals with the same part of the data: it
pushes that part to every peer, raises its flag there, then awaits the flags of its counterparts
only. A small sum costs one trip over NVLink instead of a library call of 15 to 20 us, of which a
step of avatar-57b would need 480.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gather_gemm import send_rows
from kernels.gemm_blocks import store_type
from kernels.peer import BOTH, SCALES, Workspace
from kernels.peer_signals import await_flag, data_of, flag_of, raise_flag

CHUNK = 2048  # words a program moves at a time
SUM_BLOCK = 256  # numbers of a small sum a program
SAME = ["rank", "base_row", "count"]  # one build for all ranks


@triton.jit(do_not_specialize=SAME)
def _gather(
    x_ptr, out_ptr, pointers_ptr, epochs_ptr, rank, rows, row_words, base_row,
    RANKS: tl.constexpr, CHUNK: tl.constexpr, SCALES: tl.constexpr, PHASE: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    pid, programs = tl.program_id(0), tl.num_programs(0)
    epoch = tl.load(epochs_ptr + pid) + 1
    words = rows * row_words
    if PHASE != 2:
        send_rows(x_ptr, 0, words, x_ptr, rows, row_words, pointers_ptr, epoch, rank, base_row, pid,
                  programs, False, RANKS, CHUNK, False, SCALES, ASM)  # fmt: skip
    if PHASE != 1:
        for c in tl.range(pid * CHUNK, words, programs * CHUNK):
            at = c + tl.arange(0, CHUNK)
            value = tl.load(x_ptr + at, mask=at < words)
            tl.store(out_ptr + rank * words + at, value, mask=at < words)
        for step in tl.static_range(1, RANKS):
            source = (rank + step) % RANKS
            flag = flag_of(pointers_ptr, rank, source, programs, pid)
            await_flag(flag, epoch, programs > 0, ASM)
            slot = ((epoch & 1) * base_row + source * rows).to(tl.int64) * row_words
            part = data_of(pointers_ptr, rank, tl.int32) + slot
            for c in tl.range(pid * CHUNK, words, programs * CHUNK):
                at = c + tl.arange(0, CHUNK)
                value = tl.load(part + at, mask=at < words)
                tl.store(out_ptr + source * words + at, value, mask=at < words)
        tl.store(epochs_ptr + pid, epoch)


@triton.jit(do_not_specialize=SAME)
def _scatter(
    x_ptr, words_ptr, out_ptr, pointers_ptr, epochs_ptr, rank, rows, row_words, base_row,
    RANKS: tl.constexpr, CHUNK: tl.constexpr, SCALES: tl.constexpr, PHASE: tl.constexpr,
    PER_WORD: tl.constexpr, ASM: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    pid, programs = tl.program_id(0), tl.num_programs(0)
    epoch = tl.load(epochs_ptr + pid) + 1
    words = rows * row_words
    if PHASE != 2:
        send_rows(words_ptr, words, words, words_ptr, rows, row_words, pointers_ptr, epoch, rank,
                  base_row, pid, programs, False, RANKS, CHUNK, False, SCALES, ASM)  # fmt: skip
    if PHASE != 1:
        for step in tl.static_range(1, RANKS):
            flag = flag_of(pointers_ptr, rank, (rank + step) % RANKS, programs, pid)
            await_flag(flag, epoch, programs > 0, ASM)
        parts = data_of(pointers_ptr, rank, OUT)
        for c in tl.range(pid * CHUNK, words, programs * CHUNK):
            at = c * PER_WORD + tl.arange(0, CHUNK * PER_WORD)
            inside = at < words * PER_WORD
            total = tl.load(x_ptr + rank * words * PER_WORD + at, mask=inside).to(tl.float32)
            for step in tl.static_range(1, RANKS):
                slot = (epoch & 1) * base_row + (rank + step) % RANKS * rows
                part = parts + slot.to(tl.int64) * row_words * PER_WORD
                total += tl.load(part + at, mask=inside).to(tl.float32)
            tl.store(out_ptr + at, total.to(OUT), mask=inside)
        tl.store(epochs_ptr + pid, epoch)


@triton.jit(do_not_specialize=SAME)
def _sum(
    x_ptr, out_ptr, pointers_ptr, epochs_ptr, rank, count, stride, base_row,
    RANKS: tl.constexpr, BLOCK: tl.constexpr, PHASE: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    pid, programs = tl.program_id(0), tl.num_programs(0)
    epoch = tl.load(epochs_ptr + pid) + 1
    base = (epoch & 1) * base_row
    # program 0 always takes part: a call must await every peer, and a barrier is a sum of nothing
    if pid * BLOCK < tl.maximum(count, 1):
        if PHASE != 2:
            for step in tl.static_range(1, RANKS):
                peer = (rank + step) % RANKS
                slot = data_of(pointers_ptr, peer, tl.float32) + (base + rank) * stride
                for c in tl.range(pid * BLOCK, count, programs * BLOCK):
                    at = c + tl.arange(0, BLOCK)
                    tl.store(slot + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)
                raise_flag(flag_of(pointers_ptr, peer, rank, programs, pid), epoch, stride > 0, ASM)
        if PHASE != 1:
            for step in tl.static_range(1, RANKS):
                flag = flag_of(pointers_ptr, rank, (rank + step) % RANKS, programs, pid)
                await_flag(flag, epoch, stride > 0, ASM)
            slots = data_of(pointers_ptr, rank, tl.float32) + base * stride
            for c in tl.range(pid * BLOCK, count, programs * BLOCK):
                at = c + tl.arange(0, BLOCK)
                own = tl.load(x_ptr + at, mask=at < count, other=0.0)
                total = tl.zeros((BLOCK,), tl.float32)
                for source in tl.static_range(RANKS):  # one order: the same bits on every rank
                    mask = (at < count) & (source != rank)
                    other = tl.load(slots + source * stride + at, mask=mask, other=0.0)
                    total += tl.where(source == rank, own, other)
                tl.store(out_ptr + at, total, mask=at < count)
    if PHASE != 1:
        tl.store(epochs_ptr + pid, epoch)


@triton.jit(do_not_specialize=SAME)
def _square_sum(
    x_ptr, out_ptr, pointers_ptr, epochs_ptr, rank, rows, row_stride, stride, base_row,
    D: tl.constexpr, BLOCK: tl.constexpr, RANKS: tl.constexpr, PHASE: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    pid, programs = tl.program_id(0), tl.num_programs(0)
    epoch = tl.load(epochs_ptr + pid) + 1
    base = (epoch & 1) * base_row
    col = tl.arange(0, BLOCK)
    both = tl.arange(0, 2)
    if PHASE != 2:
        for row in tl.range(pid, rows, programs, num_stages=3):
            start = x_ptr + row * row_stride  # int32: 2^31 elements are 70,000 rows of avatar-57b
            q = tl.load(start + col, mask=col < D, other=0.0).to(tl.float32)
            k = tl.load(start + D + col, mask=col < D, other=0.0).to(tl.float32)
            sums = tl.where(both == 0, tl.sum(q * q, 0), tl.sum(k * k, 0))
            for target in tl.static_range(RANKS):  # ourselves included
                slot = data_of(pointers_ptr, target, tl.float32) + (base + rank) * stride
                tl.store(slot + row * 2 + both, sums)
        for step in tl.static_range(1, RANKS):
            peer = (rank + step) % RANKS
            raise_flag(flag_of(pointers_ptr, peer, rank, programs, pid), epoch, stride > 0, ASM)
    if PHASE != 1:
        tl.debug_barrier()
        for step in tl.static_range(1, RANKS):
            flag = flag_of(pointers_ptr, rank, (rank + step) % RANKS, programs, pid)
            await_flag(flag, epoch, stride > 0, ASM)
        slots = data_of(pointers_ptr, rank, tl.float32) + base * stride
        for row in tl.range(pid, rows, programs):
            total = tl.zeros((2,), tl.float32)
            for source in tl.static_range(RANKS):
                total += tl.load(slots + source * stride + row * 2 + both)
            tl.store(out_ptr + row * 2 + both, total)
        tl.store(epochs_ptr + pid, epoch)


def peer_gather(
    x: Tensor,
    out: Tensor,
    space: Workspace,
    phase: int = BOTH,
    chunk: int = CHUNK,
    warps: int = 4,
) -> None:
    """See `reference_peers.peer_gather`. Rows of a multiple of 16 bytes, contiguous."""
    rows, row_bytes = x.shape[0], x[0].numel() * x.element_size()
    assert out.shape == (space.ranks * rows, *x.shape[1:]), out.shape
    space.check(space.ranks * rows, row_bytes)
    _gather[(space.programs,)](
        x.view(torch.int32), out.view(torch.int32), space.buffer.pointers, space.epochs, space.rank,
        rows, row_bytes // 4, space.base_row(row_bytes), RANKS=space.ranks, CHUNK=chunk,
        SCALES=SCALES, PHASE=phase, ASM=x.is_cuda, num_warps=warps,
    )  # fmt: skip


def peer_scatter(
    x: Tensor,
    out: Tensor,
    space: Workspace,
    phase: int = BOTH,
    chunk: int = CHUNK,
    warps: int = 4,
) -> None:
    """See `reference_peers.peer_scatter`. Rows of a multiple of 16 bytes, contiguous."""
    rows, row_bytes = out.shape[0], out[0].numel() * out.element_size()
    assert x.shape == (space.ranks * rows, *out.shape[1:]), x.shape
    space.check(space.ranks * rows, row_bytes)
    _scatter[(space.programs,)](
        x, x.view(torch.int32), out, space.buffer.pointers, space.epochs, space.rank, rows,
        row_bytes // 4, space.base_row(row_bytes), RANKS=space.ranks, CHUNK=chunk, SCALES=SCALES,
        PHASE=phase, PER_WORD=4 // x.element_size(), ASM=x.is_cuda, OUT=store_type(out),
        num_warps=warps,
    )  # fmt: skip


def peer_sum(x: Tensor, out: Tensor, space: Workspace, phase: int = BOTH) -> None:
    """See `reference_peers.peer_sum`. Contiguous fp32; `out` may be `x`."""
    stride = max(4, -(-x.numel() // 4) * 4)
    space.check(space.ranks, 4 * stride)
    _sum[(space.programs,)](
        x, out, space.buffer.pointers, space.epochs, space.rank, x.numel(), stride,
        space.base_row(4 * stride), RANKS=space.ranks, BLOCK=SUM_BLOCK, PHASE=phase,
        ASM=x.is_cuda, num_warps=2,
    )  # fmt: skip


def square_sum(qkv: Tensor, out: Tensor, space: Workspace, phase: int = BOTH) -> None:
    """See `reference_peers.square_sum`. Contiguous."""
    rows, row_stride = qkv.shape
    stride = -(-2 * rows // 4) * 4
    space.check(space.ranks, 4 * stride)
    width = row_stride // 3
    _square_sum[(space.programs,)](
        qkv, out, space.buffer.pointers, space.epochs, space.rank, rows, row_stride, stride,
        space.base_row(4 * stride), D=width, BLOCK=triton.next_power_of_2(width),
        RANKS=space.ranks, PHASE=phase, ASM=qkv.is_cuda, num_warps=8,
    )  # fmt: skip


def peer_barrier(space: Workspace) -> None:
    """Returns on the device once every rank's stream has come here."""
    nothing = space.scales(space.rank)
    _sum[(space.programs,)](
        nothing, nothing, space.buffer.pointers, space.epochs, space.rank, 0, 4,
        space.base_row(16), RANKS=space.ranks, BLOCK=SUM_BLOCK, PHASE=BOTH,
        ASM=space.epochs.is_cuda, num_warps=2,
    )  # fmt: skip
