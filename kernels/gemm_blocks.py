"""Block shapes of the GEMMs that talk, and what their wrappers share. Knows nothing of ranks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Blocks:
    """rows x columns x channels of a tile; warps and pipeline stages of a program."""

    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


WIDE = Blocks(128, 128, 128, 4, 5)  # within 4 % of cuBLAS at M = 748
BROAD = Blocks(128, 256, 128, 8, 3)  # half as many tiles: better where they fill whole waves
SENDERS = 12  # at least this many programs send: about 20 GB/s each


def senders_for(tiles: int, programs: int) -> int:
    """How many programs the last wave of `tiles` tiles can spare, within reason."""
    waves = -(-tiles // programs)
    spare = programs - -(-tiles // waves)
    return max(1, min(max(spare, SENDERS), 2 * SENDERS, programs // 2))


def store_type(out: Tensor) -> tl.dtype:
    return {torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}[out.dtype]
