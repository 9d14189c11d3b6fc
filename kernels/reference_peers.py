"""The truth of every op between ranks, in plain torch, over the same `Workspace`.

Same signatures and the same memory as the kernels, but no waiting: a plain tensor operation cannot
await another rank. With several ranks in one process all of them PUSH, then all of them TAKE; BOTH
works for one rank alone. Processes without a GPU use their library's collectives instead.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.peer import BOTH, PUSH, TAKE, Workspace
from kernels.reference import fp8_linear


def _epoch(space: Workspace, phase: int) -> int:
    """Of this call; ends the call when it takes."""
    if phase == BOTH and space.ranks > 1:
        raise ValueError("the truth cannot wait for other ranks: all PUSH, then all TAKE")
    epoch = int(space.epochs[0].item()) + 1
    if phase & TAKE:
        space.epochs.add_(1)
    return epoch


def _slot(space: Workspace, rank: int, source: int, like: Tensor, rows: int, epoch: int) -> Tensor:
    """[like.shape[0], ...] at `rank`: what `source` sends there, `rows` rows apart."""
    row_bytes = like[0].numel() * like.element_size()
    space.check(space.ranks * rows, row_bytes)
    first = (epoch & 1) * space.base_row(row_bytes) + source * rows
    return space.rows(rank, row_bytes)[first : first + like.shape[0]].view(like.dtype).view_as(like)


def gather_linear(
    a: Tensor,
    a_scale: Tensor,
    w: Tensor,
    w_scale: Tensor,
    bias: Tensor | None,
    out: Tensor,
    space: Workspace,
    phase: int = BOTH,
) -> None:
    """out [ranks * m, N] = all ranks' rows a [m, K], in rank order, through one linear layer.

    a e4m3 with a_scale [1] (the same on every rank) or [m, 1] fp32, which travels with its rows;
    w [N, K] e4m3 with w_scale [1] or [1, N]; bias [N] or None.
    """
    epoch, rows = _epoch(space, phase), a.shape[0]
    for rank in range(space.ranks) if phase & PUSH else ():
        _slot(space, rank, space.rank, a, rows, epoch).copy_(a)
        if a_scale.ndim == 2:
            kept = space.scales(rank)[epoch & 1, space.rank * rows : (space.rank + 1) * rows]
            kept.copy_(a_scale[:, 0])
    for source in range(space.ranks) if phase & TAKE else ():
        scale = a_scale
        if a_scale.ndim == 2:
            kept = space.scales(space.rank)[epoch & 1]
            scale = kept[source * rows : (source + 1) * rows, None]
        part = _slot(space, space.rank, source, a, rows, epoch)
        fp8_linear(part, scale, w, w_scale, bias, out[source * rows : (source + 1) * rows])


def linear_scatter(
    a: Tensor,
    a_scale: Tensor,
    w: Tensor,
    w_scale: Tensor,
    bias: Tensor | None,
    out: Tensor,
    space: Workspace,
    phase: int = BOTH,
) -> None:
    """out [m, N] = this rank's rows of the sum over ranks of a linear layer split along K, + bias.

    a [ranks * m, K / ranks] e4m3 with a_scale [1] or [ranks * m, 1]; w [N, K / ranks] with w_scale
    [1] or [1, N]. Every rank passes the same bias [N] or None; the owner of a row adds it once.
    Other ranks' shares arrive rounded to out's type and are added in fp32, the next rank's first.
    """
    epoch, rows = _epoch(space, phase), out.shape[0]
    total = torch.empty(a.shape[0], out.shape[1], device=out.device)
    fp8_linear(a, a_scale, w, w_scale, None, total)
    for step in range(1, space.ranks) if phase & PUSH else ():
        owner = (space.rank + step) % space.ranks
        share = total[owner * rows : (owner + 1) * rows].to(out.dtype)
        _slot(space, owner, space.rank, share, rows, epoch).copy_(share)
    if phase & TAKE:
        own = total[space.rank * rows : (space.rank + 1) * rows]
        _add_shares(own, out, space, epoch)
        if bias is not None:
            own += bias.float()
        out.copy_(own)


def _add_shares(total: Tensor, like: Tensor, space: Workspace, epoch: int) -> None:
    for step in range(1, space.ranks):
        source = (space.rank + step) % space.ranks
        total += _slot(space, space.rank, source, like, like.shape[0], epoch).float()


def peer_gather(x: Tensor, out: Tensor, space: Workspace, phase: int = BOTH) -> None:
    """out [ranks * m, ...] = every rank's x [m, ...] of any type, in rank order."""
    epoch, rows = _epoch(space, phase), x.shape[0]
    for rank in range(space.ranks) if phase & PUSH else ():
        _slot(space, rank, space.rank, x, rows, epoch).copy_(x)
    for source in range(space.ranks) if phase & TAKE else ():
        part = _slot(space, space.rank, source, x, rows, epoch)
        out[source * rows : (source + 1) * rows].copy_(part)


def peer_scatter(x: Tensor, out: Tensor, space: Workspace, phase: int = BOTH) -> None:
    """out [m, N] = this rank's rows of the sum over ranks of x [ranks * m, N], added in fp32."""
    epoch, rows = _epoch(space, phase), out.shape[0]
    for step in range(1, space.ranks) if phase & PUSH else ():
        owner = (space.rank + step) % space.ranks
        share = x[owner * rows : (owner + 1) * rows]
        _slot(space, owner, space.rank, share, rows, epoch).copy_(share)
    if phase & TAKE:
        own = x[space.rank * rows : (space.rank + 1) * rows].float()
        _add_shares(own, out, space, epoch)
        out.copy_(own)


def peer_sum(x: Tensor, out: Tensor, space: Workspace, phase: int = BOTH) -> None:
    """out = sum over ranks of x, fp32, added in rank order: the same bits on every rank."""
    epoch = _epoch(space, phase)
    padded = torch.zeros(1, max(4, -(-x.numel() // 4) * 4), device=x.device)
    padded[0, : x.numel()] = x.flatten()
    for rank in range(space.ranks) if phase & PUSH else ():
        _slot(space, rank, space.rank, padded, 1, epoch).copy_(padded)
    if phase & TAKE:
        total = torch.zeros_like(padded)
        for source in range(space.ranks):
            total += _slot(space, space.rank, source, padded, 1, epoch)
        out.copy_(total[0, : x.numel()].view_as(out))


def square_sum(qkv: Tensor, out: Tensor, space: Workspace, phase: int = BOTH) -> None:
    """out [M, 2] fp32 = sum over all ranks of q^2 and of k^2; qkv [M, 3 * D] holds q, k, v."""
    q, k, _ = qkv.float().chunk(3, -1)
    sums = torch.stack((q.square().sum(-1), k.square().sum(-1)), -1)
    peer_sum(sums, out, space, phase)
