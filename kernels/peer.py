"""Memory shared by the ranks of a group, laid out for kernels that write into each other's rows.

A `Workspace` is one symmetric allocation a rank: flags, epochs, row scales, then two halves of
data. A call works in the half of its epoch's parity. Epochs are counted on the device, one counter
a program, by the kernels themselves: nothing of a call is baked into a captured graph, and nothing
is ever reset.

Why two halves are enough, without a barrier: rank A writes into B's half at call e only after A's
call e - 1 has ended, which needed a signal that B sent in its call e - 1, which B started after its
call e - 2 had ended, and call e - 2 was the last to read that half. This needs every rank to make
the same calls in the same order on one stream, and every call to await every peer. Flags hold the
epoch and only grow (compared by wrapping difference), so a peer one call ahead does no harm.

Knows nothing of how the memory was shared: tests build it from ordinary tensors of one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

PUSH, TAKE, BOTH = 1, 2, 3  # the phases of a call; BOTH outside tests

FLAGS = 16_384  # int32, one a (source, tile or program)
EPOCHS = 1024  # int32, one a program: calls so far; local, kept here so that they outlive an object
SCALES = 16_384  # fp32 row scales of one half
DATA = 4 * (FLAGS + EPOCHS + 2 * SCALES)  # bytes before the first half
SLACK = 65_536  # the second half starts up to one row early, see Workspace.base_row


@dataclass(frozen=True, slots=True)
class PeerBuffer:
    """One symmetric allocation: every rank's part as a 1-D uint8 tensor this process can reach."""

    peers: tuple[Tensor, ...]
    pointers: Tensor  # int64 [ranks] on this rank's device: where each part begins
    rank: int

    @classmethod
    def of(cls, peers: Sequence[Tensor], rank: int) -> PeerBuffer:
        """peers[i] is rank i's part; peers[rank] is local. 16-byte aligned, all of one size."""
        sizes = {p.numel() for p in peers}
        if len(sizes) != 1 or any(p.dtype != torch.uint8 or p.data_ptr() % 16 for p in peers):
            raise ValueError("peers must be aligned uint8 tensors of one size")
        addresses = [p.data_ptr() for p in peers]
        pointers = torch.tensor(addresses, dtype=torch.int64, device=peers[rank].device)
        return cls(tuple(peers), pointers, rank)

    @property
    def ranks(self) -> int:
        return len(self.peers)

    @property
    def local(self) -> Tensor:
        return self.peers[self.rank]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A `PeerBuffer`, zeroed before its first use and only then. `programs` is the grid of every
    call: at most what the device runs at once (its multiprocessors), the same on every rank."""

    buffer: PeerBuffer
    epochs: Tensor  # int32 [programs], a view of our part

    @classmethod
    def over(cls, buffer: PeerBuffer, programs: int) -> Workspace:
        """A second one over the same buffer continues the first, given as many programs."""
        if buffer.local.numel() <= DATA + 2 * SLACK:
            raise ValueError(f"a workspace needs more than {DATA + 2 * SLACK} bytes")
        if programs > EPOCHS:
            raise ValueError(f"{programs} programs: a workspace counts for {EPOCHS}")
        counts = buffer.local[4 * FLAGS : 4 * (FLAGS + EPOCHS)].view(torch.int32)
        return cls(buffer, counts[:programs])

    @property
    def rank(self) -> int:
        return self.buffer.rank

    @property
    def ranks(self) -> int:
        return self.buffer.ranks

    @property
    def programs(self) -> int:
        return self.epochs.numel()

    @property
    def half_bytes(self) -> int:
        return (self.buffer.local.numel() - DATA) // 2

    def base_row(self, row_bytes: int) -> int:
        """Where the second half begins, in rows: halves are whole rows, so that one 2-D view of the
        data spans both and the parity is a row number. SLACK pays for the rounding."""
        return self.half_bytes // row_bytes

    def check(self, rows: int, row_bytes: int, tiles: int = 0, scales: bool = False) -> None:
        """Raise unless a half holds `rows` rows, and the flags `tiles` tiles a source."""
        need = rows * row_bytes + SLACK
        if need > self.half_bytes:
            raise ValueError(
                f"workspace too small: {rows} rows of {row_bytes} bytes need a half of {need}"
                f" bytes, this one has {self.half_bytes}; size it at the largest shape at start"
            )
        if row_bytes > SLACK or row_bytes % 16:
            raise ValueError(f"rows of {row_bytes} bytes: a multiple of 16, {SLACK} at most")
        if scales and rows > SCALES:
            raise ValueError(f"{rows} row scales: a workspace holds {SCALES}")
        if self.ranks * max(tiles, self.programs) > FLAGS:
            raise ValueError(f"{tiles} tiles of {self.ranks} ranks: more than {FLAGS} flags")

    def rows(self, rank: int, row_bytes: int) -> Tensor:
        """uint8 [rows of both halves, row_bytes] of `rank`'s part."""
        count = self.base_row(row_bytes) * 2
        return self.buffer.peers[rank][DATA : DATA + count * row_bytes].view(count, row_bytes)

    def scales(self, rank: int) -> Tensor:
        """fp32 [2, SCALES] of `rank`'s part."""
        part = self.buffer.peers[rank][4 * (FLAGS + EPOCHS) : DATA]
        return part.view(torch.float32).view(2, SCALES)


def buffer_bytes(half: int) -> int:
    """Size of one rank's part for halves of `half` bytes."""
    return DATA + 2 * half


def gather_half(rows: int, row_bytes: int, ranks: int) -> int:
    """Half for gathering `rows` rows of `row_bytes` from each of `ranks` ranks."""
    return _rounded(ranks * rows * row_bytes + SLACK)


def scatter_half(rows: int, columns: int, ranks: int, block: int = 128) -> int:
    """Half for bf16 shares of `rows` x `columns`, rows rounded to a tile: one from each rank, and
    one for each other rank until it has been sent."""
    return _rounded((2 * ranks - 1) * -(-rows // block) * block * columns * 2 + SLACK)


def sum_half(count: int, ranks: int) -> int:
    """Half for summing `count` fp32 numbers of each rank."""
    return _rounded(ranks * 4 * (count + 3) + SLACK)


def _rounded(size: int) -> int:
    return -(-size // 256) * 256
