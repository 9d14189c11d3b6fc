"""Latents from rank 0 to the decode rank: two places of shared memory without a name.

Two, so that one is read while the other is written. 574 kB a chunk at 704x1088: through the host's
memory that is some 0.1 ms of a chunk's 167, and the same code runs without a GPU. The memory is
inherited by descriptor and vanishes with the processes. Knows nothing of links or decoders.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Any

import numpy as np

from engine.errors import EngineError

PLACES = 2
PLACE_BYTES = 8 << 20  # taken only when written


class LatentsBuffer:
    """`put` on rank 0, `view` on the decode rank."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, PLACES * PLACE_BYTES)
        self._bytes = np.frombuffer(self._memory, np.uint8).reshape(PLACES, PLACE_BYTES)
        self._next = 0

    @classmethod
    def create(cls) -> LatentsBuffer:
        descriptor = os.memfd_create("avatar-latents")
        os.ftruncate(descriptor, PLACES * PLACE_BYTES)
        return cls(descriptor)

    def put(self, values: Any) -> tuple[int, np.ndarray]:
        """Copy latents (numpy, or torch on any device) in; returns the place and what lies there.

        Returns when the copy is complete. Raises EngineError when they are larger than a place.
        """
        array = values if isinstance(values, np.ndarray) else values.float().cpu().numpy()
        if array.nbytes > PLACE_BYTES:
            raise EngineError(
                "internal", f"latents of {array.nbytes} bytes, {PLACE_BYTES} fit the hand-over"
            )
        place, self._next = self._next, (self._next + 1) % PLACES
        there = self.view(place, list(array.shape), array.dtype.name)
        there[...] = array
        return place, there

    def view(self, place: int, shape: list[int], dtype: str) -> np.ndarray:
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return self._bytes[place, :count].view(dtype).reshape(shape)

    def close(self) -> None:
        del self._bytes
        with contextlib.suppress(BufferError):  # a call that failed holds a view still
            self._memory.close()
        os.close(self.descriptor)
