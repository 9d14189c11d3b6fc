"""Weights that lie on a device already, kept for the next character or session of this process.

One model at a time: putting another lets the first go. Knows nothing of files.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

from engine.models.dit_weights import DitWeights


class LoadedWeights:
    """`get` what was `put` under the same key (model, part, device, precision)."""

    def __init__(self) -> None:
        self.name = ""  # of the model, as sessions ask for it
        self._key: tuple[Any, ...] = ()
        self._weights: DitWeights | None = None
        self.bytes = 0

    def get(self, key: tuple[Any, ...]) -> DitWeights | None:
        return self._weights if key == self._key else None

    def put(self, name: str, key: tuple[Any, ...], weights: DitWeights) -> None:
        self.name, self._key, self._weights = name, key, weights
        self.bytes = bytes_of(weights)

    def clear(self) -> None:
        """Before another model is read: the two need not fit together."""
        self.name, self._key, self._weights, self.bytes = "", (), None, 0


def bytes_of(value: Any) -> int:
    """Of every tensor within records, lists and tuples; one that is named twice counts once."""
    return sum(_sizes(value).values())


def _sizes(value: Any) -> dict[int, int]:
    if isinstance(value, Tensor):
        return {value.data_ptr(): value.numel() * value.element_size()}
    if isinstance(value, list | tuple):
        inside = list(value)
    elif is_dataclass(value):
        inside = [getattr(value, field.name) for field in fields(value)]
    else:
        inside = []
    found: dict[int, int] = {}
    for item in inside:
        found |= _sizes(item)
    return found
