"""The two ways open systems keep their window, behind the ring's interface: truth and "before".

`ShiftCache` stores rotated keys and moves the whole window one chunk down when it is full (the
Self-Forcing family). `ReropeCache` stores unrotated keys and, every layer of every forward,
concatenates the window anew and rotates all of it (LightX2V on one GPU, LongLive's relative mode,
FastVideo's relativistic mode). Neither is used to serve; both are kept correct so that the ring can
be compared with them. Knows nothing of Triton.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.ringcache import CacheLayout
from engine.rotary import Phases
from kernels import reference


class ShiftCache:
    """Keys rotated at write; eviction clones and moves the window."""

    def __init__(
        self, layout: CacheLayout, device: torch.device, dtype: torch.dtype = torch.bfloat16
    ) -> None:
        self.layout = layout
        shape = (layout.layers, layout.rows, layout.heads, layout.head_dim)
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros_like(self.k)
        self.sink = torch.zeros_like(self.k[:, : layout.sink_tokens])
        self.phases, self.sink_phases = layout.phases(device), layout.sink_phases(device)
        self.reset()

    def reset(self) -> None:
        self.committed, self.filled, self.length = 0, 0, 0
        self._in_sink = False

    def begin_sink(self) -> None:
        self._in_sink = True
        self.sink_phases.turn(0)
        self.start, self.length = 0, self.layout.sink_tokens

    def begin(self) -> None:
        layout = self.layout
        self._in_sink = False
        if self.filled == layout.slots:
            self.filled -= evict(layout, self.k, self.v)
        position = layout.sink_frames + self.committed * layout.frames
        self.phases.move(position)
        self._turn_sink(position)
        self.start = layout.sink_tokens + self.filled * layout.tokens
        self.length = self.start + layout.tokens

    def _turn_sink(self, position: int) -> None:
        if self.layout.sink_tokens:
            self.sink_phases.turn(position)
            cos, sin = self.sink_phases.cos, self.sink_phases.sin
            reference.rotate_rows(self.sink, cos, sin, self.k[:, : self.layout.sink_tokens])

    def store(
        self, layer: int, qkv: Tensor, q_weight: Tensor, k_weight: Tensor, q: Tensor,
        sums: Tensor | None = None,
    ) -> None:  # fmt: skip
        phases = self.sink_phases if self._in_sink else self.phases
        raw_q, raw_k, v = normed(qkv, q_weight, k_weight, q, sums, self.layout.inner)
        q.copy_(reference.rotate(raw_q, phases.cos, phases.sin))
        if self._in_sink:
            self.sink[layer] = raw_k
        rows = slice(self.start, self.start + q.shape[0])
        self.k[layer, rows] = reference.rotate(raw_k, phases.cos, phases.sin).to(self.k.dtype)
        self.v[layer, rows] = v

    def window(self, layer: int) -> tuple[Tensor, Tensor]:
        return self.k[layer, : self.length], self.v[layer, : self.length]

    def commit(self) -> None:
        if not self._in_sink:
            self.committed += 1
            self.filled += 1
        self._in_sink = False

    def rollback(self) -> None:
        self._in_sink = False


class ReropeCache:
    """Keys kept unrotated; each forward concatenates and rotates the whole window."""

    def __init__(
        self, layout: CacheLayout, device: torch.device, dtype: torch.dtype = torch.bfloat16
    ) -> None:
        self.layout = layout
        shape = (layout.layers, layout.rows, layout.heads, layout.head_dim)
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros_like(self.k)
        self._grid = Phases(1, layout.grid, layout.head_dim, device)
        self._sink = layout.sink_phases(device)
        self._fresh: dict[int, tuple[Tensor, Tensor]] = {}
        self.reset()

    def reset(self) -> None:
        self.committed, self.filled, self.length = 0, 0, 0
        self._in_sink = False
        self._fresh.clear()

    def begin_sink(self) -> None:
        self._in_sink, self._held, self.length = True, 0, self.layout.sink_tokens
        self._set_phases(0, [])

    def begin(self) -> None:
        """Positions of all frames in the window, sink first, its distance capped."""
        layout = self.layout
        self._in_sink = False
        kept = min(self.filled, layout.slots - 1)
        self._held = layout.sink_tokens + kept * layout.tokens
        self.length = self._held + layout.tokens
        now = layout.sink_frames + self.committed * layout.frames
        first = now - kept * layout.frames
        self._set_phases(now, list(range(first, now + layout.frames)))

    def _set_phases(self, now: int, frames: list[int]) -> None:
        """Of the sink as seen from `now`, then of single frames."""
        self._sink.turn(now)
        cos, sin = [self._sink.cos.clone()], [self._sink.sin.clone()]
        for position in frames:
            self._grid.move(position)
            cos.append(self._grid.cos.clone())
            sin.append(self._grid.sin.clone())
        self._cos, self._sin = torch.cat(cos), torch.cat(sin)

    def store(
        self, layer: int, qkv: Tensor, q_weight: Tensor, k_weight: Tensor, q: Tensor,
        sums: Tensor | None = None,
    ) -> None:  # fmt: skip
        raw_q, raw_k, v = normed(qkv, q_weight, k_weight, q, sums, self.layout.inner)
        own = slice(self._cos.shape[0] - q.shape[0], None)
        q.copy_(reference.rotate(raw_q, self._cos[own], self._sin[own]))
        self._fresh[layer] = (raw_k, v)

    def window(self, layer: int) -> tuple[Tensor, Tensor]:
        raw_k, v = self._fresh[layer]
        old = self.layout.sink_tokens
        gone = self.filled * self.layout.tokens + old - self._held if self._held else 0
        kept = slice(old + gone, self._held + gone)
        sink = slice(0, min(old, self._held))
        keys = torch.cat((self.k[layer, sink], self.k[layer, kept], raw_k))
        values = torch.cat((self.v[layer, sink], self.v[layer, kept], v))
        return reference.rotate(keys, self._cos, self._sin).to(keys.dtype), values

    def commit(self) -> None:
        """Write the open chunk into the raw cache, moving the window down when it is full."""
        layout = self.layout
        if self._in_sink:
            start, self._in_sink = 0, False
        else:
            self.committed += 1
            if self.filled == layout.slots:
                self.filled -= evict(layout, self.k, self.v)
            start = layout.sink_tokens + self.filled * layout.tokens
            self.filled += 1
        for layer, (raw_k, v) in self._fresh.items():
            self.k[layer, start : start + raw_k.shape[0]] = raw_k
            self.v[layer, start : start + raw_k.shape[0]] = v
        self._fresh.clear()

    def rollback(self) -> None:
        self._in_sink = False
        self._fresh.clear()


def evict(layout: CacheLayout, k: Tensor, v: Tensor) -> int:
    """Move every layer's window down one chunk, through a clone; returns 1, the chunk dropped."""
    old, end = layout.sink_tokens, layout.sink_tokens + layout.slots * layout.tokens
    for layer in range(layout.layers):
        for kept in (k[layer], v[layer]):
            kept[old : end - layout.tokens] = kept[old + layout.tokens : end].clone()
    return 1


def normed(
    qkv: Tensor, q_weight: Tensor, k_weight: Tensor, like: Tensor,
    sums: Tensor | None = None, full_width: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """q, k after RMSNorm over all heads and v, each [M, H, hd] in qkv's type, unrotated."""
    q, k, v = qkv.view(qkv.shape[0], 3, -1).unbind(1)
    out_q, out_k = torch.empty_like(q), torch.empty_like(k)
    q_sums, k_sums = (None, None) if sums is None else sums.t().contiguous()
    reference.rms_norm(q, q_weight, out_q, q_sums, full_width)
    reference.rms_norm(k, k_weight, out_k, k_sums, full_width)
    return out_q.view(like.shape), out_k.view(like.shape), v.reshape(like.shape).clone()
