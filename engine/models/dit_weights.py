"""Weights of one rank of the causal video DiT: plain records of tensors, and synthetic ones.

Synthetic weights make noise, not faces; they have the true shapes, sizes and magnitudes, so speed,
memory and numerical error measured on them hold. Knows nothing of the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.fp8 import Linear, quantise_linear, quantised_rows
from engine.models.dit_config import TIME_CHANNELS, DitConfig, Shard, shard
from engine.models.s2v_weights import SpeechWeights
from kernels.reference import FP8


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """One block. Norm weights are fp32 [D]; `cross_norm_*` is the affine norm before cross."""

    qkv: Linear
    o: Linear
    q_norm: Tensor
    k_norm: Tensor
    cross_q: Linear
    cross_o: Linear
    cross_q_norm: Tensor
    cross_norm_scale: Tensor  # stored minus one, as modulation is
    cross_norm_shift: Tensor
    ff1: Linear
    ff2: Linear
    modulation: Tensor  # [6, width] fp32: shift, scale, gate of attention; of feed-forward


@dataclass(frozen=True, slots=True)
class ImageWeights:
    """CLIP's tokens -> the model's width (norm, two layers, norm), and keys of their own."""

    norm_in: tuple[Tensor, Tensor]  # scale, shift [features]
    hidden: Linear
    out: Linear
    norm_out: tuple[Tensor, Tensor]
    kv: Linear  # [layers * 2 * rank width, width]
    k_norm: Tensor  # [layers, rank width]


@dataclass(frozen=True, slots=True)
class DitWeights:
    """All of one rank. `cross_kv` is one GEMM for all layers: [layers * 2 * rank width, width]."""

    blocks: list[BlockWeights]
    patch_in: Linear
    text_in: Linear
    audio_in: Linear | None  # of the models whose sound lies beside the text
    time_1: Linear
    time_2: Linear
    time_out: Linear  # -> 6 * width
    cross_kv: Linear
    cross_k_norm: Tensor  # [layers, rank width]
    head_modulation: Tensor  # [2, width]
    head: Linear
    text_out: Linear | None = None  # Wan's second layer, after a GELU
    image: ImageWeights | None = None
    speech: SpeechWeights | None = None


class _Source:
    """Seeded tensors. The full matrix is drawn, then cut: ranks agree whatever their count."""

    def __init__(self, device: torch.device, dtype: torch.dtype, seed: int) -> None:
        self.device, self.dtype, self.seed = device, dtype, seed
        self._count = 0

    def normal(self, *shape: int, std: float, dtype: torch.dtype | None = None) -> Tensor:
        self._count += 1
        source = torch.Generator(self.device).manual_seed(self.seed * 1_000_003 + self._count)
        kind = dtype or self.dtype
        return torch.randn(shape, generator=source, device=self.device, dtype=kind).mul_(std)


def pad_cut(full: Tensor, axis: int, share: int, part: Shard) -> Tensor:
    """Rank's `share` entries along `axis` of a matrix zero-padded to share * ranks."""
    if part.ranks == 1 and share == full.shape[axis]:
        return full
    missing = share * part.ranks - full.shape[axis]
    if missing:
        pad = [0, missing] if axis == 1 else [0, 0, 0, missing]
        full = F.pad(full, pad)
    # a copy always: a cut of rows is contiguous as it is, and would keep the whole matrix alive
    return full.narrow(axis, part.rank * share, share).clone(memory_format=torch.contiguous_format)


def synthetic_weights(
    config: DitConfig,
    part: Shard,
    device: torch.device,
    dtype: torch.dtype = torch.bfloat16,
    fp8: bool = False,
    seed: int = 57,
) -> DitWeights:
    """Random weights whose activations stay of order one through any depth."""
    source = _Source(device, dtype, seed)
    wrap: Callable[[Tensor, Tensor | None], Linear] = quantise_linear if fp8 else Linear
    blocks = [_block(source, config, part, wrap) for _ in range(config.layers)]
    width = config.width
    cross_kv = _cross_kv(source, config, part, fp8)
    plain = _plain(source, width)
    ones = torch.ones(config.layers, part.width, device=device)
    return DitWeights(
        blocks=blocks,
        patch_in=plain(width, config.token_channels),
        text_in=plain(width, width),
        audio_in=plain(width, config.audio_features),
        time_1=plain(width, TIME_CHANNELS),
        time_2=plain(width, width),
        time_out=plain(6 * width, width),
        cross_kv=cross_kv,
        cross_k_norm=ones,
        head_modulation=source.normal(2, width, std=0.1, dtype=torch.float32),
        head=plain(config.token_channels, width),
    )


def _plain(source: _Source, width: int) -> Callable[[int, int], Linear]:
    def make(out_width: int, in_width: int) -> Linear:
        weight = source.normal(out_width, in_width, std=in_width**-0.5)
        return Linear(weight, source.normal(out_width, std=0.02))

    return make


def _cross_kv(source: _Source, config: DitConfig, part: Shard, fp8: bool) -> Linear:
    """Filled in place, a tensor at a time: at 57B a second copy is 5 GB on each of 3 ranks."""
    pieces, std = 2 * config.layers, config.width**-0.5
    dtype = FP8 if fp8 else source.dtype
    shape = pieces, part.width, config.width
    weight = torch.empty(shape, dtype=dtype, device=source.device)
    scales = torch.empty(shape[:2], device=source.device)
    for piece, scale in zip(weight, scales, strict=True):
        drawn = source.normal(config.inner, config.width, std=std)
        cut = pad_cut(drawn, 0, part.width, part)
        if fp8:
            stored, found = quantised_rows(cut)
            piece.copy_(stored)
            scale.copy_(found)
        else:
            piece.copy_(cut)
    by_row = scales.view(1, -1) if fp8 else None
    return Linear(weight.flatten(0, 1), None, by_row, by_row)


def _block(
    source: _Source, config: DitConfig, part: Shard, wrap: Callable[[Tensor, Tensor | None], Linear]
) -> BlockWeights:
    width, inner = config.width, config.heads * config.head_dim
    cross = shard(config) if part.cross_by_rows else part

    def rows(out_width: int, share: int, std: float, of: Shard = part) -> tuple[Tensor, Tensor]:
        weight = source.normal(out_width, width, std=std)
        bias = source.normal(1, out_width, std=0.02)
        return pad_cut(weight, 0, share, of), pad_cut(bias, 1, share, of)[0]

    def columns(in_width: int, share: int, std: float, of: Shard = part) -> Linear:
        weight, bias = source.normal(width, in_width, std=std), source.normal(width, std=0.02)
        # one of the ranks that share a layer adds its bias
        return wrap(pad_cut(weight, 1, share, of), bias if of.rank == 0 else None)

    q, k, v = (rows(inner, part.width, width**-0.5) for _ in range(3))
    qkv = wrap(torch.cat([q[0], k[0], v[0]]), torch.cat([q[1], k[1], v[1]]))
    ones = torch.ones(part.width, device=source.device)
    modulation = source.normal(6, width, std=0.1, dtype=torch.float32)
    modulation[2] += 0.5
    modulation[5] += 0.5
    return BlockWeights(
        qkv=qkv,
        o=columns(inner, part.width, inner**-0.5),
        q_norm=ones,
        k_norm=ones,
        cross_q=wrap(*rows(inner, cross.width, width**-0.5, cross)),
        cross_o=columns(inner, cross.width, 0.3 * inner**-0.5, cross),
        cross_q_norm=torch.ones(cross.width, device=source.device),
        cross_norm_scale=source.normal(width, std=0.1, dtype=torch.float32),
        cross_norm_shift=source.normal(width, std=0.1, dtype=torch.float32),
        ff1=wrap(*rows(config.hidden, part.hidden, width**-0.5)),
        ff2=columns(config.hidden, part.hidden, config.hidden**-0.5),
        modulation=modulation,
    )
