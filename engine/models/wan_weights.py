"""From a Wan checkpoint's tensors, by their official names, to one rank's `DitWeights`.

Each tensor is asked for once and already cut to the rank, so a load holds one tensor more than the
rank's own. Where tensors come from (files, other layouts, adapters merged, FP8 or not) is the
source's business. Knows nothing of the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.fp8 import Linear
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import BlockWeights, DitWeights, ImageWeights
from engine.models.s2v_weights import AudioEncoderWeights, InjectorWeights, SpeechWeights


@dataclass(frozen=True, slots=True)
class Cut:
    """A stretch of an axis; entries beyond the tensor's end read as zeros (padding of ranks)."""

    axis: int
    start: int
    length: int


class WeightSource(Protocol):
    """Tensors by official names, on the run's device."""

    def tensor(self, name: str, cut: Cut | None = None, dtype: torch.dtype | None = None) -> Tensor:
        """dtype None: the run's precision."""
        ...

    def linear(
        self, names: list[str], cut: Cut | None = None, bias: bool = True, quantise: bool = True
    ) -> Linear:
        """Modules stacked along rows in the order given, each cut and padded; a bias is cut with
        its rows. `quantise`: to e4m3 when the run is FP8.
        """
        ...


class _Parts:
    """What every piece below asks of the source, for one rank."""

    def __init__(self, config: DitConfig, part: Shard, source: WeightSource) -> None:
        self.config, self.part, self.source = config, part, source
        self._first = part.rank == 0  # the rank that adds the bias of layers whose input is cut
        self.heads = Cut(0, part.rank * part.width, part.width)
        by_rows = part.cross_by_rows  # then whole, and every rank adds the bias itself
        self.cross = Cut(0, 0, part.cross_width) if by_rows else self.heads
        self.hidden = Cut(0, part.rank * part.hidden, part.hidden)

    def plain(self, name: str) -> Linear:
        """A small layer, whole on every rank, never quantised. Convolutions come flat."""
        layer = self.source.linear([name], quantise=False)
        return Linear(layer.weight.flatten(1), layer.bias)

    def vector(self, name: str, cut: Cut | None = None) -> Tensor:
        return self.source.tensor(name, cut, torch.float32)

    def rows(self, names: list[str], cut: Cut) -> Linear:
        return self.source.linear(names, cut)

    def columns(self, name: str, cut: Cut) -> Linear:
        across = Cut(1, cut.start, cut.length)
        whole = cut is self.cross and self.part.cross_by_rows
        return self.source.linear([name], across, bias=self._first or whole)

    def norms(self, names: list[str]) -> Tensor:
        """[names, rank width]."""
        return torch.stack([self.vector(name, self.heads) for name in names])


def build_weights(config: DitConfig, part: Shard, source: WeightSource) -> DitWeights:
    """One rank's weights of a Wan model. The source raises EngineError for what it cannot give."""
    parts = _Parts(config, part, source)
    crosses = [f"blocks.{i}.cross_attn" for i in range(config.layers)]
    return DitWeights(
        blocks=[_block(parts, f"blocks.{i}") for i in range(config.layers)],
        patch_in=parts.plain("patch_embedding"),
        text_in=parts.plain("text_embedding.0"),
        text_out=parts.plain("text_embedding.2"),
        audio_in=None,
        time_1=parts.plain("time_embedding.0"),
        time_2=parts.plain("time_embedding.2"),
        time_out=parts.plain("time_projection.1"),
        cross_kv=parts.rows([f"{c}.{x}" for c in crosses for x in "kv"], parts.heads),
        cross_k_norm=parts.norms([f"{c}.norm_k.weight" for c in crosses]),
        head_modulation=parts.vector("head.modulation")[0],
        head=_head(parts),
        image=_image(parts, crosses) if config.image_tokens else None,
        speech=_speech(parts) if config.speech is not None else None,
    )


def _block(parts: _Parts, name: str) -> BlockWeights:
    own, cross = f"{name}.self_attn", f"{name}.cross_attn"
    return BlockWeights(
        qkv=parts.rows([f"{own}.{x}" for x in "qkv"], parts.heads),
        o=parts.columns(f"{own}.o", parts.heads),
        q_norm=parts.vector(f"{own}.norm_q.weight", parts.heads),
        k_norm=parts.vector(f"{own}.norm_k.weight", parts.heads),
        cross_q=parts.rows([f"{cross}.q"], parts.cross),
        cross_o=parts.columns(f"{cross}.o", parts.cross),
        cross_q_norm=parts.vector(f"{cross}.norm_q.weight", parts.cross),
        cross_norm_scale=parts.vector(f"{name}.norm3.weight") - 1,
        cross_norm_shift=parts.vector(f"{name}.norm3.bias"),
        ff1=parts.rows([f"{name}.ffn.0"], parts.hidden),
        ff2=parts.columns(f"{name}.ffn.2", parts.hidden),
        modulation=parts.vector(f"{name}.modulation")[0],
    )


def _head(parts: _Parts) -> Linear:
    """Upstream's rows run over (down, across, channel) of a patch, ours over (channel, down,
    across), as a flattened picture does.
    """
    layer, p = parts.plain("head.head"), parts.config.patch
    assert layer.bias is not None
    weight = layer.weight.view(p, p, -1, parts.config.width).permute(2, 0, 1, 3)
    bias = layer.bias.view(p, p, -1).permute(2, 0, 1)
    return Linear(weight.flatten(0, 2).contiguous(), bias.flatten().contiguous())


def _image(parts: _Parts, crosses: list[str]) -> ImageWeights:
    name = "img_emb.proj"
    return ImageWeights(
        norm_in=(parts.vector(f"{name}.0.weight"), parts.vector(f"{name}.0.bias")),
        hidden=parts.plain(f"{name}.1"),
        out=parts.plain(f"{name}.3"),
        norm_out=(parts.vector(f"{name}.4.weight"), parts.vector(f"{name}.4.bias")),
        kv=parts.rows([f"{c}.{x}_img" for c in crosses for x in "kv"], parts.heads),
        k_norm=parts.norms([f"{c}.norm_k_img.weight" for c in crosses]),
    )


def _speech(parts: _Parts) -> SpeechWeights:
    assert parts.config.speech is not None
    name = "audio_injector.injector"
    places = [f"{name}.{j}" for j in range(len(parts.config.speech.layers))]
    return SpeechWeights(
        injectors=[_injector(parts, place, j) for j, place in enumerate(places)],
        kv=parts.rows([f"{place}.{x}" for place in places for x in "kv"], parts.heads),
        k_norm=parts.norms([f"{place}.norm_k.weight" for place in places]),
        roles=parts.vector("trainable_cond_mask.weight"),
        pose_in=parts.plain("cond_encoder"),
        packs=[parts.plain(f"frame_packer.{x}") for x in ("proj", "proj_2x", "proj_4x")],
        encoder=_audio_encoder(parts, "casual_audio_encoder"),
    )


def _injector(parts: _Parts, place: str, index: int) -> InjectorWeights:
    return InjectorWeights(
        q=parts.rows([f"{place}.q"], parts.heads),
        o=parts.columns(f"{place}.o", parts.heads),
        q_norm=parts.vector(f"{place}.norm_q.weight", parts.heads),
        adain=parts.plain(f"audio_injector.injector_adain_layers.{index}.linear"),
    )


def _audio_encoder(parts: _Parts, name: str) -> AudioEncoderWeights:
    """fp32 and as convolutions: a few million numbers, once a chunk."""

    def conv(place: str) -> tuple[Tensor, Tensor]:
        stem = f"{name}.encoder.{place}"
        return parts.vector(f"{stem}.weight"), parts.vector(f"{stem}.bias")

    return AudioEncoderWeights(
        states=parts.vector(f"{name}.weights").flatten(),
        local=conv("conv1_local.conv"),
        whole=conv("conv1_global.conv"),
        second=conv("conv2.conv"),
        third=conv("conv3.conv"),
        final=conv("final_linear"),
        padding=parts.vector(f"{name}.encoder.padding_tokens").flatten(),
    )
