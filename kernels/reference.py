"""The truth of every op in plain torch: same signature, any device, any shape, fp32 arithmetic.

Knows nothing of Triton or of which path was chosen. Outputs are written into the tensors given, as
the fast paths do, so that a caller's buffers keep their addresses.

Quantised outputs are e4m3. A scale of shape [1] is static (given, values beyond 448 saturate); one
of shape [rows, 1] is dynamic and is written: the row's largest magnitude / 448.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from kernels.grid import Grid

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0  # largest finite e4m3


def write_quantised(value: Tensor, out: Tensor, out_scale: Tensor | None) -> None:
    """Store fp32 `value` [rows, D] in `out`'s type; fp8 divides by the scale (see the module)."""
    if out.dtype != FP8:
        out.copy_(value)
        return
    assert out_scale is not None, "an fp8 output needs a scale"
    if out_scale.ndim == 2:
        out_scale.copy_(value.abs().amax(-1, keepdim=True).clamp_min(1e-12) / FP8_MAX)
    out.copy_((value / out_scale).clamp(-FP8_MAX, FP8_MAX))


def quantise(x: Tensor, out: Tensor, out_scale: Tensor) -> None:
    """x [rows, D] -> fp8 `out`."""
    write_quantised(x.float(), out, out_scale)


def residual_norm(
    x: Tensor,
    y: Tensor | None,
    gate: Tensor | None,
    shift: Tensor,
    scale: Tensor,
    out: Tensor,
    out_scale: Tensor | None = None,
    eps: float = 1e-6,
) -> None:
    """x [rows, D] += y * gate (when y is given), then out = LayerNorm(x) * (1 + scale) + shift.

    `gate`, `shift`, `scale` [D] fp32; a gate of None is 1. x is updated in place in its own type.
    """
    if y is not None:
        residual_gate(x, y, gate)
    normed = F.layer_norm(x.float(), (x.shape[-1],), eps=eps)
    write_quantised(normed * (1 + scale) + shift, out, out_scale)


def residual_gate(x: Tensor, y: Tensor, gate: Tensor | None) -> None:
    """x [rows, D] += y * gate, in fp32, in place."""
    x.copy_(x.float() + (y.float() if gate is None else y.float() * gate))


def rms_norm(
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    sums: Tensor | None = None,
    full_width: int = 0,
    eps: float = 1e-6,
) -> None:
    """out [rows, D] = x / rms(x) * weight [D].

    When other ranks hold the rest of `full_width` columns, `sums` fp32 [rows] are of all squares.
    """
    value = x.float()
    if sums is None:
        sums, full_width = value.square().sum(-1), x.shape[-1]
    inverse = torch.rsqrt(sums.view(-1, 1) / full_width + eps)
    out.copy_(value * inverse * weight.float())


def square_sums(x: Tensor, width: int, sums: Tensor) -> None:
    """sums fp32 [rows, groups] = sums of squares of the first groups of `width` columns of x."""
    groups = sums.shape[1]
    wanted = x[:, : groups * width].float().unflatten(-1, (groups, width))
    sums.copy_(wanted.square().sum(-1))


def gelu(h: Tensor, out: Tensor, out_scale: Tensor | None = None) -> None:
    """out [rows, D] = GELU(h), tanh form, quantised when `out` is fp8."""
    write_quantised(F.gelu(h.float(), approximate="tanh"), out, out_scale)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate interleaved pairs of x [rows, H, hd] by phases [rows, hd/2]; fp32 result."""
    pairs = x.float().unflatten(-1, (-1, 2))
    even, odd = pairs[..., 0], pairs[..., 1]
    c, s = cos[:, None], sin[:, None]
    return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)


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
    """Norm q and k over all heads, rotate both, write q out and k, v into the ring at `row`.

    qkv [rows, 3*H*hd]; weights [H*hd]; cos, sin [rows, hd/2] fp32; row int32 [1] on the device;
    q_out [rows, H, hd]; k_ring, v_ring [ring rows, H, hd], or v_ring [H, hd, ring rows] when
    `v_transposed`. `sums` [rows, 2] of q and k, and `full_width`, as in `rms_norm`. fp8 rings hold
    the values unscaled: e4m3 is accurate from 2^-6 to 448.
    """
    count, (heads, head_dim) = qkv.shape[0], q_out.shape[1:]
    q, k, v = qkv.view(count, 3, heads * head_dim).unbind(1)
    rows = row.long() + torch.arange(count, device=qkv.device)
    q_sums, k_sums = (None, None) if sums is None else sums.t().contiguous()
    for value, weight, target, total in ((q, q_weight, q_out, q_sums), (k, k_weight, None, k_sums)):
        normed = torch.empty_like(value, dtype=torch.float32)
        rms_norm(value, weight, normed, total, full_width, eps)
        turned = rotate(normed.view(count, heads, head_dim), cos, sin)
        if target is not None:
            target.copy_(_saturated(turned, target))
        else:
            _put_rows(k_ring, rows, turned)
    values = v.reshape(count, heads, head_dim).float()
    if v_transposed:
        _put_rows(v_ring.permute(2, 0, 1), rows, values)
    else:
        _put_rows(v_ring, rows, values)


def _saturated(value: Tensor, like: Tensor) -> Tensor:
    return value.clamp(-FP8_MAX, FP8_MAX) if like.dtype == FP8 else value


def _put_rows(ring: Tensor, rows: Tensor, value: Tensor) -> None:
    """ring[rows] = value; fp8 goes through its bytes because index writes lack the type."""
    stored = _saturated(value, ring).to(ring.dtype)
    if ring.dtype == FP8:
        ring.view(torch.uint8)[rows] = stored.view(torch.uint8)
    else:
        ring[rows] = stored


def rotate_rows(raw: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    """out [L, rows, H, hd] = raw rotated by cos, sin [rows, hd/2]: the sink, once a chunk."""
    for layer in range(raw.shape[0]):
        out[layer].copy_(_saturated(rotate(raw[layer], cos, sin), out))


def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    length: Tensor,
    out: Tensor,
    out_scale: Tensor | None = None,
    v_transposed: bool = False,
) -> None:
    """Softmax attention of q [M, H, hd] over the first `length` (int32 [1]) rows of the ring.

    k, v [ring rows, H, hd] (v [H, hd, ring rows] when transposed); out [M, H*hd], quantised with
    a static scale when fp8.
    """
    valid = int(length.item())
    values = v.permute(2, 0, 1) if v_transposed else v
    result = F.scaled_dot_product_attention(
        q.float().transpose(0, 1)[None],
        k[:valid].float().transpose(0, 1)[None],
        values[:valid].float().transpose(0, 1)[None],
    )
    write_quantised(result[0].transpose(0, 1).flatten(1), out, out_scale)


def fp8_linear(
    a: Tensor, a_scale: Tensor, w: Tensor, w_scale: Tensor, bias: Tensor | None, out: Tensor
) -> None:
    """out [M, N] = (a * a_scale) @ (w * w_scale).T + bias, from fp8 a [M, K] and w [N, K]."""
    product = (a.float() @ w.float().T) * (a_scale * w_scale)
    out.copy_(product if bias is None else product + bias.float())


def norm_silu(
    x: Tensor, gamma: Tensor | None, ring: Tensor, base: Tensor, grid: Grid, frames: int
) -> None:
    """Ring slots (base + t) mod R = SiLU(x / |x| * sqrt(C) * gamma); a gamma of None copies.

    x [frames * rows, C] in `Grid` layout, ring [R * rows, C'] (C' >= C, the rest stays zero), base
    int32 [1]. Only pixels are written: the ring's border stays zero.
    """
    value = grid.pixels(x)[:frames].float()
    if gamma is not None:
        length = value.square().sum(-1, keepdim=True).sqrt().clamp_min(1e-12)
        value = F.silu(value / length * x.shape[-1] ** 0.5 * gamma.float())
    target = grid.pixels(ring)[..., : x.shape[-1]]
    for t in range(frames):
        slot = (int(base.item()) + t) % target.shape[0]
        target[slot] = _saturated(value[t], ring).to(ring.dtype)


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
    """Convolution over time and picture, causal in time, of the ring's newest `frames` frames.

    weight [N, kt * ks * ks * C] for taps (kt, ks), kt 1 or 3, ks 1 or 3, times `w_scale`; bias [N]
    fp32; out, residual [frames * rows, N]. Frame t sees slots base + t - kt + 1 .. base + t, mod R.
    Rows of `out` that are no pixels hold anything.
    """
    kt, ks = taps
    framed = grid.pixels(ring).float()
    slots, channels = framed.shape[0], framed.shape[-1]
    start = int(base.item()) - kt + 1
    picked = framed[[(start + i) % slots for i in range(frames + kt - 1)]]
    kernel = weight.float().view(-1, kt, ks, ks, channels).permute(0, 4, 1, 2, 3) * w_scale
    pad = ks // 2
    result = F.conv3d(picked.permute(3, 0, 1, 2)[None], kernel, bias, padding=(0, pad, pad))
    value = result[0].permute(1, 2, 3, 0)
    if residual is not None:
        value = value + grid.pixels(residual)[:frames].float()
    grid.pixels(out)[:frames] = value.to(out.dtype)


def upsample(x: Tensor, out: Tensor, grid: Grid, frames: int, halves: int) -> None:
    """Each pixel becomes 2 x 2, each frame `halves` frames taken from as many shares of channels.

    x [frames * rows, halves * C] -> out [frames * halves * doubled rows, C'], pixels only;
    channels of `out` beyond C are left as they are.
    """
    value = grid.pixels(x)[:frames].unflatten(-1, (halves, -1))
    value = value.permute(0, 3, 1, 2, 4).flatten(0, 1)
    value = value.repeat_interleave(2, 1).repeat_interleave(2, 2)
    target = grid.doubled().pixels(out)[: frames * halves, ..., : value.shape[-1]]
    target.copy_(_saturated(value, out))


def spread(x: Tensor, out: Tensor, grid: Grid, frames: int, times: int, skip: int = 0) -> None:
    """The decoder's shortcut: channels unfolded into 2 x 2 pixels and `times` frames.

    x [frames * rows, C] -> out [(frames * times - skip) * doubled rows, N]: output channel n at
    sub-position (a, b, d) is input channel (n * 4 * times + 4 a + 2 b + d) // (4 * times * N / C).
    """
    value = grid.pixels(x)[:frames]
    width = out.shape[-1]
    value = value.repeat_interleave(4 * times * width // value.shape[-1], -1)
    value = value.unflatten(-1, (width, times, 2, 2)).permute(0, 4, 1, 5, 2, 6, 3)
    value = value.flatten(4, 5).flatten(2, 3).flatten(0, 1)[skip:]
    grid.doubled().pixels(out)[: value.shape[0]] = value.to(out.dtype)
