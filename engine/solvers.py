"""From a chunk's clean estimate at one noise level to the noisy chunk of the next.

Three ways, as the public few-step models were trained: new noise onto the estimate, a straight step
along the velocity, and UniPC of second order (Zhao and others, 2023, in the form that predicts the
clean picture, B(h) = exp(h) - 1). The step to level 0 ends at the last estimate in all of them.
Knows nothing of models: it works in the sampler's buffers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor


class Solver(Protocol):
    """`advance` after every forward but the last."""

    def advance(self, step: int, noisy: Tensor, clean: Tensor) -> None:
        """noisy [M, C] fp32 of level `step` becomes that of `step + 1`; `clean` is its estimate."""
        ...


class Renoise:
    """The estimate with new noise: consistency-like models."""

    def __init__(self, levels: tuple[float, ...], like: Tensor, source: torch.Generator) -> None:
        self._levels, self._noise, self._source = levels, torch.empty_like(like), source

    def advance(self, step: int, noisy: Tensor, clean: Tensor) -> None:
        self._noise.normal_(generator=self._source)
        torch.lerp(clean, self._noise, self._levels[step + 1], out=noisy)


class Euler:
    """On along the velocity, which is the line from the estimate to the noisy chunk."""

    def __init__(self, levels: tuple[float, ...], like: Tensor, source: torch.Generator) -> None:
        self._levels = levels

    def advance(self, step: int, noisy: Tensor, clean: Tensor) -> None:
        torch.lerp(clean, noisy, self._levels[step + 1] / self._levels[step], out=noisy)


class UniPc:
    """Predictor of second order, and a corrector that puts each point right once its own estimate
    is known.
    """

    def __init__(self, levels: tuple[float, ...], like: Tensor, source: torch.Generator) -> None:
        self._levels = levels
        # half the logarithm of signal to noise; a level of exactly 1 has none, so it is drawn in
        kept = [min(level, 1 - 1e-7) for level in levels]
        self._depth = [math.log(1 - level) - math.log(level) for level in kept]
        self._older, self._old, self._point = (torch.empty_like(like) for _ in range(3))

    def advance(self, step: int, noisy: Tensor, clean: Tensor) -> None:
        self._correct(step, noisy, clean)
        self._older.copy_(self._old)
        self._old.copy_(clean)
        self._point.copy_(noisy)
        slope = None
        if 0 < step < len(self._levels) - 1:
            slope = (self._older - clean).mul_(0.5 / self._ratio(step, step + 1, step - 1))
        self._step(step, noisy, clean, slope)

    def _correct(self, step: int, noisy: Tensor, clean: Tensor) -> None:
        """The point reached by the last step, again, now that the estimate there is known."""
        if step == 0:
            return
        change = clean - self._old
        if step == 1:
            slope = change.mul_(0.5)
        else:
            ratio = self._ratio(step - 1, step, step - 2)
            first, second = _weights(self._depth[step] - self._depth[step - 1], ratio)
            slope = (self._older - self._old).mul_(first / ratio).add_(change, alpha=second)
        noisy.copy_(self._point)
        self._step(step - 1, noisy, self._old, slope)

    def _ratio(self, start: int, end: int, other: int) -> float:
        depth = self._depth
        return (depth[other] - depth[start]) / (depth[end] - depth[start])

    def _step(self, step: int, point: Tensor, clean: Tensor, slope: Tensor | None) -> None:
        """`point` at level `step` -> level `step + 1`, in place."""
        here, there = self._levels[step], self._levels[step + 1]
        grown = (1 - there) * math.expm1(self._depth[step] - self._depth[step + 1])
        point.mul_(there / here).sub_(clean, alpha=grown)
        if slope is not None:
            point.sub_(slope, alpha=grown)


def _weights(width: float, ratio: float) -> tuple[float, float]:
    """Of the older and of the newer difference in the corrector of second order."""
    whole = math.expm1(-width)
    one = (whole / -width - 1) / whole
    two = ((whole / -width - 1) / -width - 0.5) * 2 / whole
    # one = a + b, two = ratio a + b
    older = (one - two) / (1 - ratio)
    return older, one - older


SOLVERS: dict[str, Callable[[tuple[float, ...], Tensor, torch.Generator], Solver]] = {
    "renoise": Renoise,
    "euler": Euler,
    "unipc": UniPc,
}
