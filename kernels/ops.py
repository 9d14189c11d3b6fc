"""Every op by name, on the fastest path this device has: Triton, a library, or the plain truth.

Knows nothing of models. Importing it imports neither Triton nor CUDA; the fast module of an op is
imported when the op is first called with a tensor it can serve.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import torch

from kernels import reference, reference_peers

# op -> (module of the fast path, lowest compute capability). Triton's fp8 needs 8.9; the tensor
# descriptors of attention and convolution need 9.0.
FAST: dict[str, tuple[str, tuple[int, int]]] = {
    "residual_norm": ("kernels.residual_norm", (8, 9)),
    "residual_gate": ("kernels.residual_gate", (8, 0)),
    "rms_norm": ("kernels.rms_norm", (8, 0)),
    "square_sums": ("kernels.rms_norm", (8, 0)),
    "gelu": ("kernels.gelu_quantise", (8, 9)),
    "quantise": ("kernels.gelu_quantise", (8, 9)),
    "qk_norm_rope_store": ("kernels.qk_store", (8, 9)),
    "rotate_rows": ("kernels.qk_store", (8, 9)),
    "ring_attention": ("kernels.attention", (9, 0)),
    "fp8_linear": ("kernels.fp8_linear", (8, 9)),
    "norm_silu": ("kernels.norm_silu", (8, 9)),
    "causal_conv": ("kernels.causal_conv", (9, 0)),
    "upsample": ("kernels.upsample", (8, 0)),
    "spread": ("kernels.upsample", (8, 0)),
}
# Between ranks; truths in `reference_peers`, which cannot wait: see there.
PEERS: dict[str, tuple[str, tuple[int, int]]] = {
    "gather_linear": ("kernels.gather_gemm", (9, 0)),
    "linear_scatter": ("kernels.gemm_scatter", (9, 0)),
    "peer_gather": ("kernels.collectives", (8, 0)),
    "peer_scatter": ("kernels.collectives", (8, 0)),
    "peer_sum": ("kernels.collectives", (8, 0)),
    "square_sum": ("kernels.collectives", (8, 0)),
}
ALL = FAST | PEERS
NEEDS_TRITON = frozenset(ALL) - {"fp8_linear"}


def capability(device: torch.device) -> tuple[int, int]:
    """(0, 0) for anything but a CUDA device."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else (0, 0)


def path(op: str, device: torch.device | str) -> str:
    """Which path `op` takes on `device`: "fast" or "truth: <why>". For doctor and telemetry."""
    device = torch.device(device)
    _, needed = ALL[op]
    have = capability(device)
    if have < needed:
        where = "CPU" if have == (0, 0) else f"capability {have[0]}.{have[1]}"
        return f"truth: {where}, the fast path needs CUDA capability {needed[0]}.{needed[1]}"
    if op in NEEDS_TRITON and importlib.util.find_spec("triton") is None:
        return "truth: Triton is not installed"
    return "fast"


def paths(device: torch.device | str) -> dict[str, str]:
    """`path` of every op of one device."""
    return {op: path(op, device) for op in FAST}


def choose(op: str, device: torch.device | str) -> Callable[..., Any]:
    """The function of `op` for `device`; all of one op share the truth's signature."""
    if path(op, device) == "fast":
        return getattr(importlib.import_module(ALL[op][0]), op)
    return getattr(reference_peers if op in PEERS else reference, op)
