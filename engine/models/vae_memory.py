"""How much device memory a video decoder takes, told by building it without any.

Knows nothing of what else is on the device.
"""

from __future__ import annotations

import torch

from engine.models.causal_vae import QUERIES_AT_ONCE, CausalVae
from engine.models.vae_config import VaeConfig
from engine.models.vae_weights import weight_shapes

# Of what a decode allocates besides: 12.2 GiB were measured for Wan2.2's 11.9 at 704x1088
BESIDE_BYTES = 300 << 20


def decoder_bytes(config: VaeConfig, dtype: torch.dtype = torch.bfloat16) -> int:
    """Rings, buffers, weights and the attention's scores of a `CausalVae`; fp8 takes fewer."""
    meta = torch.device("meta")
    weights = {
        name: torch.empty(shape, device=meta, dtype=dtype)
        for name, shape in weight_shapes(config).items()
    }
    pixels = config.latent_grid[0] * config.latent_grid[1]
    scores = min(QUERIES_AT_ONCE, pixels) * pixels * (4 + 4 + dtype.itemsize)
    return CausalVae(config, weights, meta, dtype).held_bytes + scores + BESIDE_BYTES
