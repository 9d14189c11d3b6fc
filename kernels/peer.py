"""Memory that every rank reaches: one buffer a rank, and the addresses of all of them.

Knows nothing of how it was mapped.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class PeerBuffer:
    """`local` uint8 [bytes] of this rank; `pointers` int64 [ranks] on the device, each rank's."""

    local: Tensor
    pointers: Tensor
    rank: int
    ranks: int
