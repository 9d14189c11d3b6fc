"""The library's attention over a dense prefix of the window: cuDNN where there is CUDA.

cuDNN does 442 TFLOP/s where the flash backend does 230 on 748 queries, 20 heads, 6,000 keys, and it
takes the cache's own layout: no copy. It has no device-side length, so a graph is captured per
window length. Knows nothing of rings.
"""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q [M, H, hd], k and v [rows, H, hd] -> [M, H*hd]."""
    query, keys, values = (t.transpose(0, 1)[None] for t in (q, k, v))
    if q.is_cuda:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = F.scaled_dot_product_attention(query, keys, values)
    else:
        out = F.scaled_dot_product_attention(query, keys, values)
    return out[0].transpose(0, 1).reshape(q.shape[0], -1)
