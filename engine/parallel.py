# pyright: reportPrivateImportUsage=false
"""The ranks of one engine: the collectives its model needs, each into tensors that exist already.

Sole importer of torch.distributed. Every call must be made by all ranks in the same order; on CUDA
all of them may be captured in a graph. Knows nothing of models: rows are rows.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from engine.errors import EngineError, first_line
from kernels.peer import PeerBuffer

SET_UP_SECONDS = 60.0
CALL_SECONDS = 600.0  # loading may differ by minutes between ranks; the dead are found by others
PEER_BYTES = 64 << 20  # enough for every preset: a second model in a process fits the first's


@dataclass(frozen=True, slots=True)
class Rows:
    """One rank's stretch of a sequence of `count` tokens, as equal over ranks as can be."""

    count: int  # of all ranks
    share: int  # a rank, padded
    first: int  # this rank's first
    own: int  # this rank's without padding
    padded: int  # of all ranks, share times their number


class Ranks(Protocol):
    """What a model asks of its ranks, be they one or many."""

    rank: int
    ranks: int
    device: torch.device

    def gather_rows(self, local: Tensor, out: Tensor) -> None:
        """out [ranks * m, W] = the `local` [m, W] of every rank, in rank order; any type."""
        ...

    def scatter_sum(self, partial: Tensor, out: Tensor) -> None:
        """out [m, W] = this rank's rows of the sum over ranks of `partial` [ranks * m, W]."""
        ...

    def sum_(self, values: Tensor) -> None:
        """Sum over ranks, in place."""
        ...

    def max_(self, values: Tensor) -> None:
        """Largest over ranks, in place."""
        ...

    def broadcast_(self, values: Tensor) -> None:
        """Rank 0's values on every rank, in place."""
        ...

    def barrier(self) -> None:
        """Wait, on the host, until every rank's device has come here."""
        ...

    def peer_buffer(self, count: int) -> PeerBuffer:
        """`count` bytes, zero, of memory that every rank reaches: one buffer a group, mapped once.

        A later call gets the same memory, cleared: whoever had it must be gone. Raises EngineError
        when that call asks for more than was mapped (PEER_BYTES at least).
        """
        ...

    def wait_ms(self) -> float:
        """Host milliseconds in exchanges since last asked; 0 on CUDA, where the device waits."""
        ...

    def close(self) -> None:
        """Leave. Graphs that captured collectives must be gone before."""
        ...


class OneRank:
    """A group of one: nothing to exchange."""

    rank, ranks = 0, 1

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def gather_rows(self, local: Tensor, out: Tensor) -> None:
        out.copy_(local)

    def scatter_sum(self, partial: Tensor, out: Tensor) -> None:
        out.copy_(partial)

    def sum_(self, values: Tensor) -> None:
        pass

    def max_(self, values: Tensor) -> None:
        pass

    def broadcast_(self, values: Tensor) -> None:
        pass

    def barrier(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def peer_buffer(self, count: int) -> PeerBuffer:
        return PeerBuffer.of([torch.zeros(count, dtype=torch.uint8, device=self.device)], 0)

    def wait_ms(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


class ManyRanks:
    """A process group: NCCL between GPUs, gloo on CPUs. Made by `join`."""

    def __init__(self, rank: int, ranks: int, device: torch.device) -> None:
        self.rank, self.ranks, self.device = rank, ranks, device
        self._peers: PeerBuffer | None = None
        self._waited_s = 0.0
        self._mapping: tuple[Any, Tensor] | None = None  # keeps the peers' memory mapped
        # torch 2.13 renamed both; 2.11 has the old names only
        self._gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        self._scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

    def gather_rows(self, local: Tensor, out: Tensor) -> None:
        if local.element_size() == 1:  # fp8 travels as bytes: no library knows the type
            local, out = local.view(torch.uint8), out.view(torch.uint8)
        self._run(self._gather, out, local)

    def scatter_sum(self, partial: Tensor, out: Tensor) -> None:
        self._run(self._scatter, out, partial)

    def sum_(self, values: Tensor) -> None:
        self._run(dist.all_reduce, values)

    def max_(self, values: Tensor) -> None:
        self._run(dist.all_reduce, values, dist.ReduceOp.MAX)

    def broadcast_(self, values: Tensor) -> None:
        self._run(dist.broadcast, values, 0)

    def barrier(self) -> None:
        token = torch.zeros(1, device=self.device)
        self._run(dist.all_reduce, token)
        token.item()

    def _run(self, collective: Callable[..., object], *arguments: Any) -> None:
        begun = time.perf_counter()
        collective(*arguments)
        self._waited_s += time.perf_counter() - begun

    def wait_ms(self) -> float:
        waited, self._waited_s = 1000 * self._waited_s, 0.0
        return waited if self.device.type == "cpu" else 0.0

    def peer_buffer(self, count: int) -> PeerBuffer:
        if self._peers is None:
            self._peers = self._mapped(max(count, PEER_BYTES))
        elif count > self._peers.local.numel():
            raise EngineError(
                "internal",
                f"{count} bytes of peer memory asked for, {self._peers.local.numel()} were mapped",
                "sizes are fixed when the ranks start: restart the engine with the larger model",
            )
        self.barrier()  # everyone has left the memory
        self._peers.local.zero_()
        self.barrier()  # no rank writes into a part that its owner has yet to clear
        return PeerBuffer.of([part[:count] for part in self._peers.peers], self.rank)

    def _mapped(self, count: int) -> PeerBuffer:
        """Either all ranks succeed or all raise."""
        parts, reason = [], ""
        try:
            parts = self._symmetric(count) if self.device.type == "cuda" else self._shared(count)
        except (RuntimeError, OSError) as error:
            reason = first_line(error)
        failed = torch.tensor([float(not parts)], device=self.device)
        self.max_(failed)
        if failed.item():
            reason = reason or "another rank has none"
            raise EngineError(
                "bad_config", f"no memory that all ranks reach: {reason}",
                'use communication "collective", or GPUs joined by NVLink',
            )  # fmt: skip
        return PeerBuffer.of(parts, self.rank)

    def _symmetric(self, count: int) -> list[Tensor]:
        # Never used, and a program that dies with multicast set up can disable the host's GPUs
        os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
        import torch.distributed._symmetric_memory as symmetric

        group = dist.group.WORLD
        assert group is not None
        local = symmetric.empty(count, dtype=torch.uint8, device=self.device)
        self._mapping = symmetric.rendezvous(local, group.group_name), local
        handle = self._mapping[0]
        return [handle.get_buffer(r, (count,), torch.uint8) for r in range(self.ranks)]

    def _shared(self, count: int) -> list[Tensor]:
        """Between processes on a CPU: anonymous memory, gone with the last of them."""
        mine = os.memfd_create("ranks")
        os.ftruncate(mine, count)
        places = torch.zeros(self.ranks, 2, dtype=torch.int64)
        self.gather_rows(torch.tensor([[os.getpid(), mine]]), places)
        parts = []
        for process, descriptor in places.tolist():
            with Path(f"/proc/{process}/fd/{descriptor}").open("r+b") as file:
                part = mmap.mmap(file.fileno(), count)
            parts.append(torch.frombuffer(part, dtype=torch.uint8))
        self.barrier()
        os.close(mine)
        return parts

    def close(self) -> None:
        self._peers = self._mapping = None
        if dist.is_initialized():
            dist.destroy_process_group()


def rows_of(group: Ranks, count: int) -> Rows:
    """The rows of `group.rank`; the last ranks may have padding, or nothing else."""
    share = -(-count // group.ranks)
    first = min(group.rank * share, count)
    return Rows(count, share, first, min(share, count - first), share * group.ranks)


def join(
    rank: int, ranks: int, device: torch.device, meeting: str, timeout_s: float = SET_UP_SECONDS
) -> Ranks:
    """Meet the other ranks; one group a process. A group of one needs no meeting.

    `meeting` is a path that does not exist yet, in a folder of this engine's own (two engines on a
    host then never collide), or "tcp://127.0.0.1:PORT". Raises EngineError in one line: "timeout"
    when not all came, "bad_config" for a rank that cannot be, "device_lost" when the library fails.
    """
    if not 0 <= rank < ranks:
        raise EngineError(
            "bad_config", f"rank {rank} of {ranks} does not exist", "use a rank from 0 to ranks - 1"
        )
    if ranks == 1:
        return OneRank(device)
    if dist.is_initialized():
        raise EngineError(
            "bad_config", "this process is a rank of another group already",
            "start each rank in a process of its own",
        )  # fmt: skip
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        store = _store(rank, ranks, meeting, timeout_s)
        _count_in(store, rank, ranks, timeout_s)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=ranks,
            timeout=timedelta(seconds=CALL_SECONDS),
            device_id=device if backend == "nccl" else None,
        )  # fmt: skip
        group = ManyRanks(rank, ranks, device)
        group.barrier()
    except (RuntimeError, ValueError) as error:  # torch's own errors derive from RuntimeError
        if dist.is_initialized():
            dist.destroy_process_group()
        raise EngineError(
            "device_lost", f"rank {rank} of {ranks} cannot join over {backend}: "
            f"{first_line(error)}",
            "see that every GPU is free and listed by `avatar-engine doctor`, then start again",
        ) from error  # fmt: skip
    return group


def _store(rank: int, ranks: int, meeting: str, timeout_s: float) -> dist.Store:
    if not meeting.startswith("tcp://"):
        return dist.FileStore(meeting, ranks)
    host, port = meeting.removeprefix("tcp://").rsplit(":", 1)
    limit = timedelta(seconds=timeout_s)
    return dist.TCPStore(host, int(port), ranks, rank == 0, limit, wait_for_workers=False)


def _count_in(store: dist.Store, rank: int, ranks: int, timeout_s: float) -> None:
    """Names who is missing, which the libraries' own time-outs do not."""
    store.set(f"here{rank}", "1")
    keys = [f"here{r}" for r in range(ranks)]
    try:
        store.wait(keys, timedelta(seconds=timeout_s))
    except RuntimeError as error:
        missing = [str(r) for r in range(ranks) if not store.check([keys[r]])]
        raise EngineError(
            "timeout", f"rank {rank} of {ranks} waited {timeout_s:g} s for rank "
            f"{' and '.join(missing)}",
            "the report of that rank says why; then start again",
        ) from error  # fmt: skip


def library_linear(
    op: str, a: Tensor, a_scale: Tensor, w: Tensor, w_scale: Tensor, out: Tensor
) -> None:
    """PyTorch's own fused operator of "gather_linear" or "linear_scatter", for benchmarks only:
    it allocates at every call and was slower than a GEMM and NCCL after it.
    """
    import torch.distributed._symmetric_memory  # registers the operators

    name = dist.group.WORLD.group_name  # type: ignore[union-attr]
    scales, kind = (a_scale.reshape(()), w_scale.reshape(())), torch.bfloat16
    if op == "gather_linear":
        _, (found,) = torch.ops.symm_mem.fused_all_gather_scaled_matmul(
            a, [w.t()], scales[0], [scales[1]], 0, name, [None], [None], [kind], [True]
        )
    else:
        found = torch.ops.symm_mem.fused_scaled_matmul_reduce_scatter(
            a, w.t(), *scales, "sum", 0, 0, name, [a.shape[0], w.shape[0]], None, None, kind, True
        )
    out.copy_(found)
