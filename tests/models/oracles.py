"""Public implementations with random weights, their tensors under official names, and measures.

The weights of a public module reach our model the way a checkpoint's do: through the official key
map and the builder, so that a name mapped wrongly is a number that differs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.fp8 import Linear
from engine.models.causal_dit import CausalDit, Way
from engine.models.checkpoint.names import from_diffusers
from engine.models.denoiser import build_cache
from engine.models.dit_config import DitConfig, preset, shard
from engine.models.synthetic_source import cut_tensor
from engine.models.wan_keys import wan_keys
from engine.models.wan_weights import Cut, build_weights

CPU = torch.device("cpu")
PLAIN = Way(fp8=False, fused_quantise=False, fused_elementwise=False)
TEXT_FEATURES = 24


class DictSource:
    """Tensors that lie in a dictionary; each name may be read once, and `unread` says the rest."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors
        self.unread = set(tensors)

    def tensor(self, name: str, cut: Cut | None = None, dtype: torch.dtype | None = None) -> Tensor:
        self.unread.remove(name)
        return cut_tensor(self._tensors[name], cut)

    def linear(
        self, names: list[str], cut: Cut | None = None, bias: bool = True, quantise: bool = True
    ) -> Linear:
        weight = torch.cat([self.tensor(f"{name}.weight", cut) for name in names])
        rows = cut if cut is not None and cut.axis == 0 else None
        return Linear(weight, torch.cat([self.tensor(f"{name}.bias", rows) for name in names]))


def wan_tiny(**changes: Any) -> DitConfig:
    """A text-to-video model of a thousandth of the size; nothing beside the text."""
    base = preset("tiny", audio_tokens=0, text_features=TEXT_FEATURES, sink_frames=0)
    return replace(base, **changes)


def shaken(module: torch.nn.Module, seed: int = 5) -> torch.nn.Module:
    """No parameter left at the one or zero it is born with: those hide mistakes."""
    source = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data.add_(0.1 * torch.randn(parameter.shape, generator=source))
    return module.eval()


def official(module: torch.nn.Module) -> dict[str, Tensor]:
    """A public module's tensors under the names of the original releases."""
    return {from_diffusers(name): value for name, value in module.state_dict().items()}


def our_model(config: DitConfig, tensors: dict[str, Tensor], way: Way = PLAIN) -> CausalDit:
    """Built through the map; every tensor of the module must be asked for, and have its shape."""
    expected = {name: spec.shape for name, spec in wan_keys(config).items()}
    assert expected == {name: tuple(value.shape) for name, value in tensors.items()}
    source, part = DictSource(tensors), shard(config)
    weights = build_weights(config, part, source)
    assert not source.unread
    cache = build_cache(config, part, way, CPU, torch.float32)
    return CausalDit(config, part, weights, cache, way, CPU, torch.float32)


def relative_error(got: Tensor, want: Tensor) -> float:
    """Of the whole: |got - want| / |want|."""
    return ((got.double() - want.double()).norm() / want.double().norm()).item()


def worst_error(got: Tensor, want: Tensor) -> float:
    """Of the worst number, against the largest."""
    return ((got.double() - want.double()).abs().max() / want.double().abs().max()).item()
