# ruff: noqa: ANN001, ANN202 - the arguments of a Triton kernel are typed by its compiler
# pyright: reportIndexIssue=false, reportCallIssue=false, reportArgumentType=false
"""Attention that reads the ring in place: valid length from device memory, bf16 or fp8 operands.

Truth: `reference.ring_attention`. One program per (64 queries, head) walks the keys once with a
running softmax. The result can leave as fp8, which saves the quantisation pass after it. fp8 keys
come as [row, head, hd] and fp8 values transposed, as the tensor cores want them.
Knows nothing of slots: order of keys does not matter to softmax, their number does.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.residual_norm import scale_mode
from kernels.shapes import attention_blocks


@triton.jit
def _block(
    q, k_desc, v_desc, acc, total, top, start, head, length, scale,
    HD: tl.constexpr, BN: tl.constexpr, V_T: tl.constexpr, MASK: tl.constexpr, LIFT: tl.constexpr,
):  # fmt: skip
    """Fold BN keys from `start` into the running softmax; scores are in powers of two."""
    k = k_desc.load([start, head * HD])
    s = tl.dot(q, k.T)
    if MASK:
        s = tl.where((start + tl.arange(0, BN))[None, :] < length, s, float("-inf"))
    new_top = tl.maximum(top, tl.max(s, 1) * scale)
    # LIFT 8 spreads fp8 probabilities over 2^-14..256 instead of losing those below 2^-9
    p = tl.exp2(s * scale - (new_top - LIFT)[:, None])
    keep = tl.exp2(top - new_top)
    total = total * keep + tl.sum(p, 1)
    acc = acc * keep[:, None]
    p = p.to(q.dtype)
    if V_T:
        acc = tl.dot(p, v_desc.load([head * HD, start]).T, acc)
    else:
        acc = tl.dot(p, v_desc.load([start, head * HD]), acc)
    return acc, total, new_top


@triton.jit
def _attention(
    q_desc, k_desc, v_desc, out_desc, length_ptr, out_scale_ptr, scale,
    HD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    V_T: tl.constexpr, MODE: tl.constexpr, LIFT: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * BM
    head = tl.program_id(1)
    length = tl.load(length_ptr)
    q = q_desc.load([first, head * HD])
    acc = tl.zeros((BM, HD), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1e30, tl.float32)
    whole = (length // BN) * BN
    for start in tl.range(0, whole, BN):
        acc, total, top = _block(q, k_desc, v_desc, acc, total, top, start, head, length, scale,
                                 HD, BN, V_T, False, LIFT)  # fmt: skip
    if whole < length:
        acc, total, top = _block(q, k_desc, v_desc, acc, total, top, whole, head, length, scale,
                                 HD, BN, V_T, True, LIFT)  # fmt: skip
    acc = acc / total[:, None]
    if MODE == 1:
        acc /= tl.load(out_scale_ptr)
        acc = tl.minimum(tl.maximum(acc, -448.0), 448.0)
    out_desc.store([first, head * HD], acc.to(OUT))


def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    length: Tensor,
    out: Tensor,
    out_scale: Tensor | None = None,
    v_transposed: bool = False,
) -> None:
    """See `reference.ring_attention`. hd a power of two; rows of V a multiple of 16 when fp8."""
    count, heads, head_dim = q.shape
    fp8 = q.element_size() == 1
    bm, bn, warps, stages = attention_blocks(count, heads, fp8)
    mode = scale_mode(out, out_scale)
    assert mode != 2, "attention quantises with a static scale only"
    wide = heads * head_dim
    v_flat = v.view(wide, -1) if v_transposed else v.reshape(-1, wide)
    v_block = [head_dim, bn] if v_transposed else [bn, head_dim]
    out_type = {1: tl.float8e4nv, 2: tl.bfloat16, 4: tl.float32}[out.element_size()]
    _attention[(triton.cdiv(count, bm), heads)](
        TensorDescriptor.from_tensor(q.view(count, wide), [bm, head_dim]),
        TensorDescriptor.from_tensor(k.reshape(-1, wide), [bn, head_dim]),
        TensorDescriptor.from_tensor(v_flat, v_block),
        TensorDescriptor.from_tensor(out, [bm, head_dim]),
        length, length if out_scale is None else out_scale, head_dim**-0.5 * 1.4426950408889634,
        HD=head_dim, BM=bm, BN=bn, V_T=v_transposed, MODE=mode, LIFT=8.0 if fp8 else 0.0,
        OUT=out_type, num_warps=warps, num_stages=stages,
    )  # fmt: skip
