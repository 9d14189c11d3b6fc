"""The video decoders on a GPU, in bf16 and from a graph, against fp32 on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.models.causal_vae import CausalVae
from engine.models.taehv import LAST, TinyConfig, TinyDecoder, tiny_shapes
from engine.models.vae_config import wan_2_1, wan_2_2
from engine.models.vae_weights import synthetic_vae_weights

GRID, CLIP = (6, 4), 5
Make = Callable[[torch.device, torch.dtype], Any]


def full(config: Any) -> Make:
    def make(device: torch.device, dtype: torch.dtype) -> CausalVae:
        weights = synthetic_vae_weights(config, torch.device("cpu"), torch.float32)
        return CausalVae(config, weights, device, dtype)

    return make


def tiny(config: TinyConfig) -> Make:
    def make(device: torch.device, dtype: torch.dtype) -> TinyDecoder:
        source = torch.Generator().manual_seed(4)
        weights = {
            name: torch.randn(shape, generator=source) * (2 / torch.Size(shape[1:]).numel()) ** 0.5
            for name, shape in tiny_shapes(config).items()
        }
        weights[f"decoder.{LAST}.weight"] *= 0.003  # mostly within 0..1: not all clamped
        weights[f"decoder.{LAST}.bias"] = torch.full((3 * config.patch**2,), 0.5)
        return TinyDecoder(config, weights, device, dtype)

    return make


DECODERS: dict[str, tuple[Make, int]] = {
    "2.1": (full(wan_2_1(GRID, 96)), 16),
    "2.2": (full(wan_2_2(GRID, 64)), 48),
    "tiny 2.1": (tiny(TinyConfig(GRID)), 16),
    "tiny 2.2": (tiny(TinyConfig(GRID, 48, patch=2)), 48),
}


def played(decoder: Any, latents: Tensor) -> Tensor:
    """All pictures [n, h, w, 3]. Copies: a decoder on the CPU gives its one buffer every time."""
    shown = [decoder.decode(latents[:, i].to(decoder.device)).cpu().clone() for i in range(CLIP)]
    return torch.cat(shown)[..., :3].float()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("make", "channels"), DECODERS.values(), ids=DECODERS.keys())
def test_a_gpu_decodes_as_the_cpu_does(make: Make, channels: int) -> None:
    source = torch.Generator().manual_seed(3)
    latents = 0.5 * torch.randn(channels, CLIP, *GRID, generator=source)
    want = played(make(torch.device("cpu"), torch.float32), latents)
    assert not torch.equal(want[1:5], want[-4:])
    decoder = make(torch.device("cuda"), torch.bfloat16)
    eager = played(decoder, latents)
    decoder.capture()
    replayed = played(decoder, latents)
    assert torch.equal(replayed, eager)
    off = float((eager - want).square().mean().sqrt())
    assert want.std() > 10 and off < 0.05 * float(want.std())
