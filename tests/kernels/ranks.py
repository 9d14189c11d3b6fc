"""Several ranks in one process: hand-made peers over ordinary tensors of one device, and inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.peer import PUSH, TAKE, PeerBuffer, Workspace, buffer_bytes
from kernels.reference import FP8
from tests.kernels.cases import Draw


def group(ranks: int, half: int, programs: int, device: str) -> list[Workspace]:
    """A zeroed workspace for each rank."""
    size = -(-buffer_bytes(half) // 16) * 16
    parts = [torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(ranks)]
    return [Workspace.over(PeerBuffer.of(parts, rank), programs) for rank in range(ranks)]


@dataclass(frozen=True)
class Call:
    """One op on all ranks: arguments by rank (without the workspace), which one is the output, and
    what it must hold by a formula of its own."""

    op: str
    args: list[tuple[Any, ...]]
    out: int
    want: list[Tensor]

    def outputs(self) -> list[Tensor]:
        return [args[self.out] for args in self.args]

    def poison(self) -> None:
        for out in self.outputs():
            out.fill_(77.0)


def run(call: Call, function: Callable[..., None], spaces: list[Workspace], **more: Any) -> None:
    """All ranks push, then all take."""
    for phase in (PUSH, TAKE):
        for args, space in zip(call.args, spaces, strict=True):
            function(*args, space, phase, **more)


def linear_call(
    draw: Draw, op: str, ranks: int, rows: int, columns: int, inner: int, scaled: bool, bias: bool
) -> Call:
    """`gather_linear` or `linear_scatter`; `scaled`: a scale a row and a scale a column."""
    gather = op == "gather_linear"
    count = rows if gather else ranks * rows
    static = torch.tensor([0.05], device=draw.device)
    b = draw(columns) if bias else None
    args, shares = [], []
    for _ in range(ranks):
        a, w = draw(count, inner).to(FP8), draw(columns, inner).to(FP8)
        a_scale = draw(count, 1, dtype=torch.float32).abs() * 0.1 if scaled else static
        w_scale = draw(1, columns, dtype=torch.float32).abs() * 0.1 if scaled else static
        out = draw.blank(ranks * rows if gather else rows, columns)
        args.append((a, a_scale, w, w_scale, b, out))
        shares.append((a.float() * a_scale) @ (w.float() * w_scale.reshape(-1, 1)).T)
    added = 0.0 if b is None else b.float()
    if gather:
        whole = torch.cat([a.float() * s for a, s, *_ in args])
        want = [whole @ (w.float() * s.reshape(-1, 1)).T + added for _, _, w, s, *_ in args]
    else:
        want = list((torch.stack(shares).sum(0) + added).split(rows))
    return Call(op, args, 5, want)


def plain_call(draw: Draw, op: str, ranks: int, rows: int, columns: int) -> Call:
    """The collectives without a GEMM."""
    if op == "peer_gather":
        shares = [draw(rows, columns) for _ in range(ranks)]
        args = [(x, draw.blank(ranks * rows, columns)) for x in shares]
        return Call(op, args, 1, [torch.cat(shares).float()] * ranks)
    if op == "peer_scatter":
        shares = [draw(ranks * rows, columns) for _ in range(ranks)]
        args = [(x, draw.blank(rows, columns)) for x in shares]
        return Call(op, args, 1, list(torch.stack(shares).float().sum(0).split(rows)))
    if op == "peer_sum":
        shares = [draw(rows, 2, dtype=torch.float32) for _ in range(ranks)]
        args = [(x, draw.blank(rows, 2, dtype=torch.float32)) for x in shares]
        return Call(op, args, 1, [torch.stack(shares).sum(0)] * ranks)
    shares = [draw(rows, 3 * columns) for _ in range(ranks)]
    args = [(x, draw.blank(rows, 2, dtype=torch.float32)) for x in shares]
    parts = [x.float().unflatten(1, (3, -1)).square().sum(-1)[:, :2] for x in shares]
    return Call("square_sum", args, 1, [torch.stack(parts).sum(0)] * ranks)
