"""GEMM fused with communication, beside everything it has to beat, at the shapes of avatar-57b.

`rows_for(group, ...)` runs on every rank of a group (all make the same calls) and returns a table;
the caller starts the ranks. `python -m kernels.bench_comm` needs one GPU only: our GEMM without
ranks beside cuBLAS, and two ranks on the two halves of one device.

Floors of two ranks of avatar-57b at 748 rows (H200: 1.4 PFLOP/s reached by cuBLAS in FP8, 300 GB/s
each way over NVLink), and what we predicted before the first run, in us:

    layer           GFLOP  at 1.4 PF   MB moved  at 300 GB/s   predicted  GEMM + NCCL
    qkv (gather)    132.4         95        2.9         10         112
    cross_q          44.1         32        2.9         10          46
    ff1             176.5        126        2.9         10         134
    o (scatter)      44.1         32        5.9         20          46          82
    ff2             176.5        126        5.9         20         138         205

Predictions are whole waves of 128 x 128 tiles on 132 multiprocessors (43 us a tile and wave at
K = 15,360, measured: 130 us for 3 waves of ff2) plus 3 us of waiting, and 5 us for reading the
weights a second time, because a scatter computes remote rows first. `o` has tiles of 11 us, too
short to hide a burst of 132 x 32 KB (14 us).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from kernels import ops
from kernels.bench import replay_us
from kernels.peer import FLAGS, PeerBuffer, Workspace, buffer_bytes, gather_half, scatter_half
from kernels.reference import FP8

TOKENS, WIDTH, HIDDEN = 748, 7680, 30_720
CALLS = 12  # in one graph
PREDICTED = {"qkv": 112, "cross_q": 46, "ff1": 134, "o": 46, "ff2": 138}  # two ranks
LIBRARY = Callable[[str, Tensor, Tensor, Tensor, Tensor, Tensor], None]


class Group(Protocol):
    """What is asked of the ranks; `engine.parallel` has it."""

    rank: int
    ranks: int
    device: torch.device

    def gather_rows(self, local: Tensor, out: Tensor) -> None: ...
    def scatter_sum(self, partial: Tensor, out: Tensor) -> None: ...
    def sum_(self, values: Tensor) -> None: ...
    def barrier(self) -> None: ...
    def peer_buffer(self, count: int) -> PeerBuffer: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """One linear layer of one of several ranks."""

    name: str
    op: str
    inner: int
    columns: int

    @property
    def gathers(self) -> bool:
        return self.op == "gather_linear"


def layers_of(ranks: int) -> list[Layer]:
    return [
        Layer("qkv", "gather_linear", WIDTH, 3 * WIDTH // ranks),
        Layer("cross_q", "gather_linear", WIDTH, WIDTH // ranks),
        Layer("ff1", "gather_linear", WIDTH, HIDDEN // ranks),
        Layer("o", "linear_scatter", WIDTH // ranks, WIDTH),
        Layer("ff2", "linear_scatter", HIDDEN // ranks, WIDTH),
    ]


@dataclass
class Inputs:
    """One call's tensors: `a` of this rank, the whole `wide` of the plain ways, static scales."""

    a: Tensor
    w: Tensor
    scale: Tensor
    out: Tensor
    wide: Tensor  # gather: all ranks' a; scatter: this rank's share of all rows of the sum


def _fp8(*shape: int) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(FP8)


def inputs(layer: Layer, ranks: int, share: int) -> Inputs:
    whole = share * ranks
    kind = torch.bfloat16
    out = torch.empty(whole if layer.gathers else share, layer.columns, device="cuda", dtype=kind)
    if layer.gathers:
        wide = torch.empty(whole, layer.inner, device="cuda", dtype=FP8)
    else:
        wide = torch.empty(whole, layer.columns, device="cuda", dtype=kind)
    a = _fp8(share if layer.gathers else whole, layer.inner)
    scale = torch.full((4,), 0.02, device="cuda")[:1]
    return Inputs(a, _fp8(layer.columns, layer.inner), scale, out, wide)


def _filled(sets: list[Inputs]) -> list[Inputs]:
    """With random rows where a GEMM alone reads them: products of zeros run a tenth faster."""
    for i in sets:
        i.wide.copy_(torch.randn(i.wide.shape, device="cuda", dtype=torch.bfloat16))
    return sets


def plain(
    layer: Layer, group: Group, space: Workspace | None, i: Inputs, out: Tensor, **way: Any
) -> None:
    """cuBLAS and a collective: the library's, or, given a workspace, our two-shot."""
    linear = ops.choose("fp8_linear", "cuda")
    if layer.gathers:
        if space is None:
            group.gather_rows(i.a, i.wide)
        else:
            ops.choose("peer_gather", "cuda")(i.a, i.wide, space, **way)
        linear(i.wide, i.scale, i.w, i.scale, None, out)
        return
    linear(i.a, i.scale, i.w, i.scale, None, i.wide)
    if space is None:
        group.scatter_sum(i.wide, out)
    else:
        ops.choose("peer_scatter", "cuda")(i.wide, out, space, **way)


def gemm_alone(layer: Layer, i: Inputs) -> None:
    linear = ops.choose("fp8_linear", "cuda")
    if layer.gathers:
        linear(i.wide, i.scale, i.w, i.scale, None, i.out)
    else:
        linear(i.a, i.scale, i.w, i.scale, None, i.wide)


def fused(layer: Layer, space: Workspace, i: Inputs, out: Tensor, **way: Any) -> None:
    ops.choose(layer.op, "cuda")(i.a, i.scale, i.w, i.scale, None, out, space, **way)


def row_error(got: Tensor, want: Tensor) -> Tensor:
    """Largest relative error of a row. A stale tile is 128 of 7,680 columns: 0.18 of a row."""
    difference = (got.float() - want.float()).norm(dim=1)
    return (difference / want.float().norm(dim=1).clamp_min(1e-6)).nan_to_num(1e9).amax()


def worst_error(
    layer: Layer, group: Group, space: Workspace, repetitions: int, **way: Any
) -> float:
    """Against GEMM and the library's collective: new random inputs and poison each time."""
    i = inputs(layer, group.ranks, -(-TOKENS // group.ranks))
    want, worst = torch.empty_like(i.out), torch.zeros((), device="cuda")
    for _ in range(repetitions):
        i.a.copy_(torch.randn(i.a.shape, device="cuda", dtype=torch.bfloat16))
        plain(layer, group, None, i, want)
        i.out.fill_(float("nan"))
        fused(layer, space, i, i.out, **way)
        worst = torch.maximum(worst, row_error(i.out, want))
    return worst.item()


def timed(call: Callable[[Inputs], None], sets: list[Inputs], group: Group) -> float | str:
    """Microseconds a call, or why there are none."""
    from triton.runtime.errors import TritonError

    group.barrier()
    try:
        return replay_us([partial(call, sets[n % len(sets)]) for n in range(CALLS)])
    except (RuntimeError, TritonError) as error:
        return str(error).splitlines()[0][:120]


def layer_row(
    layer: Layer, group: Group, space: Workspace, library: LIBRARY | None, repetitions: int
) -> dict[str, Any]:
    """One line of the table. `library` calls PyTorch's fused operator of an op."""
    share = -(-TOKENS // group.ranks)
    count = max(1, (128 << 20) // (layer.inner * layer.columns) + 1)  # more than the L2 cache
    sets = _filled([inputs(layer, group.ranks, share) for _ in range(min(count, 5))])
    row: dict[str, Any] = {"layer": layer.name, "ranks": group.ranks}
    ways: dict[str, Callable[[Inputs], None]] = {
        "gemm": lambda i: gemm_alone(layer, i),
        "collective": lambda i: plain(layer, group, None, i, i.out),
        "two_shot": lambda i: plain(layer, group, space, i, i.out),
        "two_shot_16_warps": lambda i: plain(layer, group, space, i, i.out, chunk=8192, warps=16),
        "ours": lambda i: fused(layer, space, i, i.out),
    }
    from kernels.gemm_blocks import BROAD

    if layer.gathers:
        ways["ours_broad"] = lambda i: fused(layer, space, i, i.out, blocks=BROAD)
    else:
        ways["ours_18_senders"] = lambda i: fused(layer, space, i, i.out, senders=18)
    if library is not None:
        ways["library"] = lambda i: library(layer.op, i.a, i.scale, i.w, i.scale, i.out)
    row |= {f"{name}_us": timed(way, sets, group) for name, way in ways.items()}
    row["error"] = worst_error(layer, group, space, repetitions)
    gemm, apart, ours = row["gemm_us"], row["collective_us"], row["ours_us"]
    if all(isinstance(t, float) for t in (gemm, apart, ours)):
        row["over_gemm"] = ours / gemm
        row["hidden"] = 1 - max(0.0, ours - gemm) / max(apart - gemm, 1e-9)
    if group.ranks == 2:
        row["predicted_us"] = PREDICTED[layer.name]
    return row


def small_rows(group: Group, space: Workspace) -> list[dict[str, Any]]:
    """Sums of the norms, and a barrier, beside the library's all-reduce."""
    sums, width = torch.randn(TOKENS, 2, device="cuda"), WIDTH // group.ranks
    total = torch.empty_like(sums)
    qkv = torch.randn(TOKENS, 3 * width, device="cuda", dtype=torch.bfloat16)
    from kernels.collectives import peer_barrier  # Triton, hence CUDA machines only

    calls: dict[str, Callable[[], None]] = {
        "norm sums, all-reduce": lambda: group.sum_(sums),
        "norm sums, ours": lambda: ops.choose("peer_sum", "cuda")(sums, total, space),
        "squares and sums, ours": lambda: ops.choose("square_sum", "cuda")(qkv, total, space),
        "barrier": lambda: peer_barrier(space),
    }
    rows = []
    for name, call in calls.items():
        group.barrier()
        rows.append({"layer": name, "ranks": group.ranks, "us": replay_us([call] * CALLS)})
    return rows


def space_for(group: Group) -> Workspace:
    """One workspace for all layers."""
    share = -(-TOKENS // group.ranks)
    half = max(gather_half(share, WIDTH, group.ranks), scatter_half(share, WIDTH, group.ranks))
    programs = torch.cuda.get_device_properties(group.device).multi_processor_count
    return Workspace.over(group.peer_buffer(buffer_bytes(half)), programs)


def rows_for(
    group: Group, library: LIBRARY | None = None, repetitions: int = 1000, only: str = ""
) -> list[dict[str, Any]]:
    """The table of `group`, on every rank. About 20 s; all ranks call it alike."""
    torch.manual_seed(1 + group.rank)
    space = space_for(group)
    rows = [
        layer_row(layer, group, space, library, repetitions)
        for layer in layers_of(group.ranks)
        if only in layer.name
    ]
    return rows + small_rows(group, space)


class Alone:
    """A group of one."""

    rank, ranks = 0, 1

    def __init__(self) -> None:
        self.device = torch.device("cuda")

    def gather_rows(self, local: Tensor, out: Tensor) -> None:
        out.copy_(local)

    def scatter_sum(self, partial: Tensor, out: Tensor) -> None:
        out.copy_(partial)

    def sum_(self, values: Tensor) -> None: ...

    def barrier(self) -> None:
        torch.cuda.synchronize()

    def peer_buffer(self, count: int) -> PeerBuffer:
        return PeerBuffer.of([torch.zeros(count, dtype=torch.uint8, device="cuda")], 0)


def core_rows() -> list[dict[str, Any]]:
    """Our GEMM without ranks beside cuBLAS, at the shapes of two ranks, in several blocks."""
    from kernels.gemm_blocks import BROAD, WIDE

    group, rows = Alone(), []
    half = scatter_half(TOKENS, HIDDEN, 1)
    space = Workspace.over(group.peer_buffer(buffer_bytes(half)), 132)
    for layer in layers_of(2):
        sets = _filled([inputs(layer, 1, TOKENS) for _ in range(2)])
        row: dict[str, Any] = {"layer": layer.name, "ranks": 1}
        row["gemm_us"] = timed(lambda i, at=layer: gemm_alone(at, i), sets, group)
        for blocks in (WIDE, BROAD):
            label = f"{blocks.rows}x{blocks.columns} {blocks.warps}w {blocks.stages}s"

            def call(i: Inputs, at: Layer = layer, b: Any = blocks) -> None:
                fused(at, space, i, i.out, blocks=b)

            row[label] = timed(call, sets, group)
        rows.append(row)
    return rows


def _both(
    layer: Layer, spaces: list[Workspace], sets: list[Inputs], streams: list[torch.cuda.Stream]
) -> None:
    main = torch.cuda.current_stream()
    for stream, space, i in zip(streams, spaces, sets, strict=True):
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            fused(layer, space, i, i.out)
    for stream in streams:
        main.wait_stream(stream)


def halved_rows() -> list[dict[str, Any]]:
    """Two ranks on two streams of one device, half the multiprocessors each, without NVLink."""
    rows = []
    for layer in layers_of(2):
        sets = [inputs(layer, 2, TOKENS // 2) for _ in range(2)]
        half = max(gather_half(374, WIDTH, 2), scatter_half(374, WIDTH, 2))
        size = buffer_bytes(half)
        parts = [torch.zeros(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
        spaces = [Workspace.over(PeerBuffer.of(parts, rank), 66) for rank in range(2)]
        streams = [torch.cuda.Stream() for _ in range(2)]
        for part in parts:  # first calls wait for nothing: loading a kernel may wait for others
            part[: 4 * FLAGS].view(torch.int32).fill_(1 << 30)

        call = partial(_both, layer, spaces, sets, streams)
        call()
        torch.cuda.synchronize()
        for part in parts:
            part.zero_()
        rows.append({"layer": layer.name, "ranks": "2 on halves", "us": replay_us([call] * CALLS)})
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kernels.bench_comm", description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--halves", action="store_true", help="also two ranks on one device")
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        sys.stderr.write("kernels.bench_comm needs a CUDA device; this machine has none\n")
        return 1
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    report["rows"] = core_rows() + small_rows(Alone(), space_for(Alone()))
    if args.halves:
        report["rows"] += halved_rows()
    text = json.dumps(report, indent=1)
    if args.json:
        args.json.write_text(text)
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
