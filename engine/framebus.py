"""Frames between worker and server: slots of shared memory without a name, and who holds them.

The memory has no name and is passed to the worker by descriptor, so nothing is left behind even
after kill -9 of both. Knows nothing of messages or models.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Callable

import numpy as np

from engine.clock import HEIGHT, WIDTH

# Three chunks of 24 frames, the most that a model may ask for. Memory is taken when a slot is first
# written, and the slot freed last is used first: one-frame chunks touch 4 slots, 12 MB.
SLOTS = 72
SLOT_BYTES = WIDTH * HEIGHT * 4


class FrameBus:
    """`view(slot)` is [1088, 704, 4] uint8, the same memory in both processes."""

    def __init__(self, descriptor: int, slots: int) -> None:
        self.descriptor = descriptor
        self.slots = slots
        self._memory = mmap.mmap(descriptor, slots * SLOT_BYTES)
        self._frames = np.frombuffer(self._memory, np.uint8).reshape(slots, HEIGHT, WIDTH, 4)

    @classmethod
    def create(cls, slots: int = SLOTS) -> FrameBus:
        # Not a file in /dev/shm: containers often limit that to 64 MB and kill who writes more.
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("avatar-frames")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, slots * SLOT_BYTES)
        return cls(descriptor, slots)

    def view(self, slot: int) -> np.ndarray:
        return self._frames[slot]

    def slot_of(self, picture: np.ndarray) -> int:
        """The slot that a view is of: how one is named to another process."""
        first = self._frames.__array_interface__["data"][0]
        return (picture.__array_interface__["data"][0] - first) // SLOT_BYTES

    def close(self) -> None:
        """Give the memory back; views handed out before must be gone."""
        del self._frames
        self._memory.close()
        os.close(self.descriptor)


class SlotPool:
    """Which slots are free: `acquire` waits for them, `release` gives them back. Thread-safe."""

    def __init__(self, slots: int) -> None:
        self._free = list(range(slots))
        self._changed = threading.Condition()

    def acquire(self, count: int, stop: Callable[[], bool]) -> list[int] | None:
        """`count` slots, or None as soon as `stop()` holds (asked ten times a second)."""
        with self._changed:
            while len(self._free) < count:
                if stop():
                    return None
                self._changed.wait(0.1)
            taken, self._free = self._free[-count:][::-1], self._free[:-count]
        return taken

    def release(self, slots: list[int]) -> None:
        with self._changed:
            self._free.extend(slots)
            self._changed.notify_all()
