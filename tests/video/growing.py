"""The window as plainly as can be: everything is kept, the window is cut out at each read."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.peercache import normed
from engine.ringcache import CacheLayout
from engine.rotary import Phases
from kernels import reference


class GrowingCache:
    """Unrotated keys of all chunks; positions are worked out when the window is read."""

    def __init__(self, layout: CacheLayout) -> None:
        self.layout = layout
        self.reset()

    def reset(self) -> None:
        self.sink: dict[int, tuple[Tensor, Tensor]] = {}
        self.kept: list[dict[int, tuple[Tensor, Tensor]]] = []
        self.open: dict[int, tuple[Tensor, Tensor]] = {}
        self.committed = self.length = 0
        self.in_sink = False

    def begin_sink(self) -> None:
        self.in_sink = True

    def begin(self) -> None:
        self.in_sink, self.open = False, {}

    def _turned(self, keys: Tensor, position: int, frames: int) -> Tensor:
        phases = Phases(frames, self.layout.grid, self.layout.head_dim, keys.device)
        phases.move(position)
        return reference.rotate(keys, phases.cos, phases.sin)

    def _now(self) -> int:
        if self.in_sink:
            return 0
        return self.layout.sink_frames + self.committed * self.layout.frames

    def store(self, layer: int, qkv: Tensor, q_weight: Tensor, k_weight: Tensor, q: Tensor) -> None:
        raw_q, k, v = normed(qkv, q_weight, k_weight, q)
        frames = self.layout.sink_frames if self.in_sink else self.layout.frames
        q.copy_(self._turned(raw_q, self._now(), frames))
        (self.sink if self.in_sink else self.open)[layer] = (k, v)

    def window(self, layer: int) -> tuple[Tensor, Tensor]:
        layout, now = self.layout, self._now()
        keys, values = [], []
        if layer in self.sink:
            k, v = self.sink[layer]
            at = max(0, now - layout.sink_reach)
            keys.append(self._turned(k, at, layout.sink_frames))
            values.append(v)
        if not self.in_sink:
            window = [*self.kept, self.open][-layout.slots :]
            for age, chunk in enumerate(reversed(window)):
                k, v = chunk[layer]
                keys.append(self._turned(k, now - age * layout.frames, layout.frames))
                values.append(v)
        return torch.cat(keys), torch.cat(values)

    def commit(self) -> None:
        if self.in_sink:
            self.in_sink = False
            return
        self.kept.append(self.open)
        self.committed += 1

    def rollback(self) -> None:
        self.open = {}
