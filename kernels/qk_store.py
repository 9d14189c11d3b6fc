# ruff: noqa: ANN001, ANN202, SIM108 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""qk-norm + rotary + store into the ring (+ fp8), and the rotation of the sink.

Truths: `reference.qk_norm_rope_store`, `reference.rotate_rows`. This is all the upkeep a ring cache
needs: each new key is touched once and never moved. The ring row comes from device memory, so that
a captured graph serves every chunk.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _qk_store(
    qkv_ptr, qw_ptr, kw_ptr, cos_ptr, sin_ptr, row_ptr, q_ptr, k_ptr, v_ptr, sums_ptr, full, eps,
    D: tl.constexpr, PAIRS: tl.constexpr, HALF: tl.constexpr,
    FP8: tl.constexpr, Q_FP8: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    # program (token, part): part 0 is q, 1 is k, 2 is v (not launched when v goes transposed)
    token = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    ring_row = tl.load(row_ptr).to(tl.int64) + token
    pair = tl.arange(0, PAIRS)[:, None]
    col = pair * 2 + tl.arange(0, 2)[None, :]
    inside = col < D
    x = tl.load(qkv_ptr + (token * 3 + part) * D + col, mask=inside, other=0.0).to(tl.float32)
    if part == 2:
        if FP8:
            x = tl.minimum(tl.maximum(x, -448.0), 448.0)
        tl.store(v_ptr + ring_row * D + col, x.to(v_ptr.dtype.element_ty), mask=inside)
    else:
        weight_ptr = qw_ptr if part == 0 else kw_ptr
        weight = tl.load(weight_ptr + col, mask=inside, other=0.0).to(tl.float32)
        if SUMS:
            total = tl.load(sums_ptr + token * 2 + part)
        else:
            total = tl.sum(tl.sum(x * x, 1), 0)
        x = x * tl.rsqrt(total / full + eps) * weight
        even, odd = tl.split(x)
        index = token * HALF + tl.arange(0, PAIRS) % HALF
        cos = tl.load(cos_ptr + index)
        sin = tl.load(sin_ptr + index)
        turned = tl.join(even * cos - odd * sin, even * sin + odd * cos)
        if part == 0:
            if Q_FP8:
                turned = tl.minimum(tl.maximum(turned, -448.0), 448.0)
            tl.store(q_ptr + token * D + col, turned.to(q_ptr.dtype.element_ty), mask=inside)
        else:
            if FP8:
                turned = tl.minimum(tl.maximum(turned, -448.0), 448.0)
            tl.store(k_ptr + ring_row * D + col, turned.to(k_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _v_transposed(
    qkv_ptr, row_ptr, v_ptr, rows, ring_rows, D: tl.constexpr, HD: tl.constexpr, BLOCK: tl.constexpr
):
    # fp8 tensor cores want both operands along the summed axis: V is kept [head, hd, row]
    head = tl.program_id(1)
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = head * HD + tl.arange(0, HD)
    at = qkv_ptr + token.to(tl.int64)[:, None] * (3 * D) + 2 * D + col[None, :]
    x = tl.load(at, mask=token[:, None] < rows, other=0.0).to(tl.float32)
    x = tl.trans(tl.minimum(tl.maximum(x, -448.0), 448.0).to(v_ptr.dtype.element_ty))
    ring_row = tl.load(row_ptr).to(tl.int64) + token
    target = v_ptr + col.to(tl.int64)[:, None] * ring_rows + ring_row[None, :]
    tl.store(target, x, mask=token[None, :] < rows)


def qk_norm_rope_store(
    qkv: Tensor,
    q_weight: Tensor,
    k_weight: Tensor,
    cos: Tensor,
    sin: Tensor,
    row: Tensor,
    q_out: Tensor,
    k_ring: Tensor,
    v_ring: Tensor,
    v_transposed: bool = False,
    sums: Tensor | None = None,
    full_width: int = 0,
    eps: float = 1e-6,
) -> None:
    """See `reference.qk_norm_rope_store`. Everything contiguous."""
    rows, heads, head_dim = q_out.shape
    width = heads * head_dim
    pairs = triton.next_power_of_2(width // 2)
    grid = (rows, 2 if v_transposed else 3)
    _qk_store[grid](
        qkv, q_weight, k_weight, cos, sin, row, q_out, k_ring, v_ring,
        cos if sums is None else sums, float(width if sums is None else full_width), eps,
        D=width, PAIRS=pairs, HALF=head_dim // 2,
        FP8=k_ring.element_size() == 1, Q_FP8=q_out.element_size() == 1, SUMS=sums is not None,
        num_warps=8 if pairs >= 2048 else 4,
    )  # fmt: skip
    if v_transposed:
        _v_transposed[(triton.cdiv(rows, 64), heads)](
            qkv, row, v_ring, rows, v_ring.shape[2], D=width, HD=head_dim, BLOCK=64, num_warps=4
        )


@triton.jit
def _rotate_rows(
    raw_ptr, cos_ptr, sin_ptr, out_ptr, rows, out_stride,
    D: tl.constexpr, PAIRS: tl.constexpr, HALF: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    layer = tl.program_id(1).to(tl.int64)
    col = tl.arange(0, PAIRS)[:, None] * 2 + tl.arange(0, 2)[None, :]
    inside = col < D
    x = tl.load(raw_ptr + (layer * rows + row) * D + col, mask=inside, other=0.0).to(tl.float32)
    even, odd = tl.split(x)
    index = row * HALF + tl.arange(0, PAIRS) % HALF
    cos = tl.load(cos_ptr + index)
    sin = tl.load(sin_ptr + index)
    turned = tl.join(even * cos - odd * sin, even * sin + odd * cos)
    if FP8:
        turned = tl.minimum(tl.maximum(turned, -448.0), 448.0)
    at = out_ptr + layer * out_stride + row * D + col
    tl.store(at, turned.to(out_ptr.dtype.element_ty), mask=inside)


def rotate_rows(raw: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    """See `reference.rotate_rows`. `out` may be the sink's view of a larger ring."""
    layers, rows, heads, head_dim = raw.shape
    width = heads * head_dim
    pairs = triton.next_power_of_2(width // 2)
    _rotate_rows[(rows, layers)](
        raw, cos, sin, out, rows, out.stride(0), D=width, PAIRS=pairs, HALF=head_dim // 2,
        FP8=out.element_size() == 1, num_warps=4,
    )  # fmt: skip
