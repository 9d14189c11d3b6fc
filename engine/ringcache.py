"""Keys and values of the window: [sink | ring of N chunk slots], allocated once, never moved.

A chunk lives in slot `chunk mod N`; each denoise step overwrites the open chunk's slot, commit only
counts. Keys are stored normed and rotated at their absolute position: attention needs position
differences only, and softmax does not care in which slot a key lies. Only the sink is ever rotated
again, once a chunk, so that its distance stays within what training saw.
Knows nothing of layers' weights, audio or denoising.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.models.dit_config import DitConfig, Shard, Speech
from engine.rotary import Phases
from engine.sinkphases import SinkPhases, sink_phases
from kernels import ops
from kernels.reference import FP8


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """Sizes of one rank's window."""

    layers: int
    heads: int
    head_dim: int
    tokens: int  # a chunk
    sink_tokens: int
    slots: int
    rows: int  # allocated
    frames: int  # latent frames a chunk
    sink_frames: int
    sink_reach: int  # latent frames
    grid: tuple[int, int]
    inner: int  # heads * head_dim of all ranks: what the norms divide by
    patch: int = 2
    speech: Speech | None = None  # then the sink is its condition tokens

    @classmethod
    def of(cls, config: DitConfig, part: Shard) -> CacheLayout:
        return cls(
            config.layers, part.heads, config.head_dim, config.tokens, config.sink_tokens,
            config.ring_chunks, config.ring_rows, config.frames, config.sink_frames,
            config.sink_reach, config.grid, config.inner, config.patch, config.speech,
        )  # fmt: skip

    def phases(self, device: torch.device) -> Phases:
        """Of a chunk."""
        return Phases(self.frames, self.grid, self.head_dim, device)

    def sink_phases(self, device: torch.device) -> SinkPhases:
        return sink_phases(
            self.speech, self.sink_frames, self.grid, self.patch, self.head_dim, self.sink_reach,
            device,
        )  # fmt: skip

    @property
    def elements(self) -> int:
        """Of the keys; the values are as many."""
        return self.layers * self.rows * self.heads * self.head_dim


class WindowCache(Protocol):
    """What the model asks of any cache; the ring and the two ways of the peers answer it."""

    length: int  # valid rows, the open chunk's included

    def begin_sink(self) -> None: ...

    def begin(self) -> None: ...

    def store(
        self, layer: int, qkv: Tensor, q_weight: Tensor, k_weight: Tensor, q: Tensor,
        sums: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Norm and rotate; q [M, H, hd] is written, keys and values enter the window.

        `sums` [M, 2]: squares of q and k over the heads of all ranks, when there are others.
        """
        ...

    def window(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [length, H, hd], rotated, of sink and window, the open chunk included."""
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def reset(self) -> None: ...


class RingCache:
    """The ring. `fp8` stores e4m3 and the values transposed, for fp8 attention."""

    def __init__(
        self,
        layout: CacheLayout,
        device: torch.device,
        dtype: torch.dtype = torch.bfloat16,
        fp8: bool = False,
    ) -> None:
        self.layout, self.fp8 = layout, fp8
        kept = FP8 if fp8 else dtype
        cell = (layout.heads, layout.head_dim)
        self.k = _zeros((layout.layers, layout.rows, *cell), kept, device)
        values = (*cell, layout.rows) if fp8 else (layout.rows, *cell)
        self.v = _zeros((layout.layers, *values), kept, device)
        self.sink = _zeros((layout.layers, layout.sink_tokens, *cell), dtype, device)
        self.row = torch.zeros(1, dtype=torch.int32, device=device)
        self.valid = torch.zeros(1, dtype=torch.int32, device=device)
        self.phases, self.sink_phases = layout.phases(device), layout.sink_phases(device)
        ones = torch.ones(layout.sink_tokens, layout.head_dim // 2, device=device)
        self._still = (ones, torch.zeros_like(ones))
        self._store = ops.choose("qk_norm_rope_store", device)
        self._rotate = ops.choose("rotate_rows", device)
        self._in_sink = False
        self.reset()

    def reset(self) -> None:
        """Empty, as new; the sink must be written again."""
        self.committed = 0
        self.length = 0

    def begin_sink(self) -> None:
        """The next forward writes the reference picture's tokens, at position 0."""
        self._in_sink = True
        self.length = self.layout.sink_tokens
        self.sink_phases.turn(0)
        self._place(0)

    def begin(self) -> None:
        """Open the next chunk's slot. After a rollback it is the same slot again."""
        self._in_sink = False
        layout, chunk = self.layout, self.committed
        position = layout.sink_frames + chunk * layout.frames
        self.phases.move(position)
        self._turn_sink(position)
        self.length = layout.sink_tokens + min(chunk + 1, layout.slots) * layout.tokens
        self._place(layout.sink_tokens + (chunk % layout.slots) * layout.tokens)

    def store(
        self, layer: int, qkv: Tensor, q_weight: Tensor, k_weight: Tensor, q: Tensor,
        sums: Tensor | None = None,
    ) -> None:  # fmt: skip
        phases = self.sink_phases if self._in_sink else self.phases
        k, v, inner = self.k[layer], self.v[layer], self.layout.inner
        norms = qkv, q_weight, k_weight
        if self._in_sink and self.layout.sink_tokens:
            # the unrotated copy that later rotations start from; q and v are written again below
            scratch = q if not self.fp8 else q.to(self.sink.dtype)
            self._store(*norms, *self._still, self.row, scratch, self.sink[layer],
                        torch.empty_like(self.sink[layer]), False, sums, inner)  # fmt: skip
        self._store(*norms, phases.cos, phases.sin, self.row, q, k, v, self.fp8, sums, inner)

    def window(self, layer: int) -> tuple[Tensor, Tensor]:
        if self.fp8:
            return self.k[layer], self.v[layer]  # fp8 attention takes the length from the device
        return self.k[layer, : self.length], self.v[layer, : self.length]

    def commit(self) -> None:
        if self._in_sink:
            self._in_sink = False
        else:
            self.committed += 1

    def rollback(self) -> None:
        """Drop the open chunk: the next one overwrites its slot before anything reads it."""
        self._in_sink = False

    def _place(self, row: int) -> None:
        self.row.fill_(row)
        self.valid.fill_(self.length)

    def _turn_sink(self, position: int) -> None:
        if not self.layout.sink_tokens or not self.sink_phases.turn(position):
            return
        target = self.k[:, : self.layout.sink_tokens]
        self._rotate(self.sink, self.sink_phases.cos, self.sink_phases.sin, target)


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros of any type; fp8 has no fill kernel everywhere, its zero is the zero byte."""
    if dtype == FP8:
        return torch.zeros(shape, dtype=torch.uint8, device=device).view(FP8)
    return torch.zeros(shape, dtype=dtype, device=device)
