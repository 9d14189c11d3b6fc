# ruff: noqa: ANN001, ANN201 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false
"""Signals between ranks, for use inside Triton kernels: epochs, flags, waits, other ranks' memory.

Layout and reasoning: `kernels.peer`. A signal is a release at system scope after a barrier of the
program, so it covers what every thread of the program stored; a wait is an acquire by one thread
followed by a barrier, or, in PTX (`ASM`), by every thread for itself. PTX exists because a `while`
cannot stand in a flattened loop (Triton 3.6) and because the tensor copy engine's stores complete
by a wait of their own; Triton's interpreter has no PTX and takes the other form.
"""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.peer import DATA, EPOCHS, FLAGS

_DATA = tl.constexpr(DATA)
_SCALES_AT = tl.constexpr(4 * (FLAGS + EPOCHS))

_SPIN = tl.constexpr("""
{
    .reg .pred again;
    .reg .b32 seen;
    setp.eq.s32 again, $3, 0;
    @again bra DONE;
    AGAIN:
    ld.acquire.sys.global.b32 seen, [$1];
    sub.s32 seen, seen, $2;
    setp.lt.s32 again, seen, 0;
    @again bra AGAIN;
    DONE:
    mov.b32 $0, 0;
}
""")


_COMPLETE = tl.constexpr("""
{
    .reg .pred wanted;
    setp.ne.s32 wanted, $1, 0;
    @wanted cp.async.bulk.wait_group 0;
    mov.b32 $0, 0;
}
""")


@triton.jit
def part_of(pointers_ptr, rank, TYPE: tl.constexpr):
    """Where the part of `rank` begins, as a pointer to TYPE; parts are aligned to 16 bytes."""
    address = tl.multiple_of(tl.load(pointers_ptr + rank), 16)
    return tl.multiple_of(address.to(tl.pointer_type(TYPE)), 16)


@triton.jit
def data_of(pointers_ptr, rank, TYPE: tl.constexpr):
    """The same, of its rows of data."""
    return tl.multiple_of(
        (part_of(pointers_ptr, rank, tl.int8) + _DATA).to(tl.pointer_type(TYPE)), 16
    )


@triton.jit
def scales_of(pointers_ptr, rank):
    """The same, of its fp32 row scales."""
    return (part_of(pointers_ptr, rank, tl.int8) + _SCALES_AT).to(tl.pointer_type(tl.float32))


@triton.jit
def flag_of(pointers_ptr, rank, source, tiles, tile):
    """At `rank`: the epoch of which `source` has delivered `tile` (of `tiles`)."""
    return part_of(pointers_ptr, rank, tl.int32) + source * tiles + tile


@triton.jit
def barrier(ASM: tl.constexpr):
    """All threads of the program. In PTX, because Triton leaves a loop with its own unpipelined."""
    if ASM:
        tl.inline_asm_elementwise(
            "bar.sync 0; mov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        tl.debug_barrier()


@triton.jit
def raise_flag(flag_ptr, epoch, wanted, ASM: tl.constexpr, NEAR: tl.constexpr = False):
    """Release everything this program stored so far; no flag where not `wanted`. NEAR: to programs
    of this device only."""
    barrier(ASM)
    if NEAR:
        tl.atomic_xchg(flag_ptr, epoch, mask=wanted, sem="release", scope="gpu")
    else:
        tl.atomic_xchg(flag_ptr, epoch, mask=wanted, sem="release", scope="sys")


@triton.jit
def await_flag(flag_ptr, value, wanted, ASM: tl.constexpr):
    """Until the flag has reached `value`, by wrapping difference; at once where not `wanted`."""
    if ASM:
        tl.inline_asm_elementwise(
            _SPIN, "=r,l,r,r", [flag_ptr, value, wanted.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    else:
        while wanted & (tl.atomic_add(flag_ptr, 0, sem="acquire", scope="sys") - value < 0):
            pass
        tl.debug_barrier()


@triton.jit
def await_senders(pointers_ptr, rank, source, count, most, epoch, ASM: tl.constexpr):
    """Until `count` <= 32 senders of `source` have delivered; then the copy engine may read, too.

    In PTX a lane a flag: one after another, 12 flags would take as many trips to the L2 cache.
    """
    flags = flag_of(pointers_ptr, rank, source, most, 0)
    if ASM:
        await_flag(flags + tl.minimum(tl.arange(0, 32), count - 1), epoch, count > 0, ASM)
        barrier(ASM)
        tl.inline_asm_elementwise(
            "fence.proxy.async; mov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        for sender in range(0, count):
            await_flag(flags + sender, epoch, count > 0, ASM)


@triton.jit
def await_stores(wanted, ASM: tl.constexpr):
    """Until the copy engine has completed every store this thread gave it, where `wanted`."""
    if ASM:
        tl.inline_asm_elementwise(
            _COMPLETE, "=r,r", [wanted.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1
        )
