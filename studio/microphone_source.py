"""MicrophoneSource: an endless run of blocks, whatever becomes of the device.

While the device is being opened or is lost, silence comes at the pace of the monotonic clock; when
a device of that name is there again it takes over, and positions go on without a jump.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_BLOCK
from studio.audio_devices import find_device, take_in_new_devices
from studio.audio_io import CapturedBlock, Microphone
from studio.opener import Opener

NS = 1_000_000_000
MAX_SILENT_BLOCKS = 25  # made up at once after a suspended process: half a second, then it skips


class MicrophoneSource:
    """`read(now_ns)` from one thread; `name` "" is the default microphone."""

    def __init__(
        self, name: str, is_gone: Callable[[str], bool], may_restart: Callable[[], bool]
    ) -> None:
        self.name = name
        self._is_gone = is_gone
        self._may_restart = may_restart
        self._opener: Opener[Microphone] = Opener(self._open)
        self._microphone: Microphone | None = None
        self._pending: Microphone | None = None  # open, and nothing heard from it yet
        self._offset = 0  # our position of the device's sample 0
        self._next = 0
        self._silence: tuple[int, int] | None = None  # (position, monotonic ns) where it began

    @property
    def is_lost(self) -> bool:
        """The device was there or was asked for, and is not there now."""
        return self._microphone is None and self._opener.failures > 0

    @property
    def why(self) -> str:
        return str(self._opener.error) if self._opener.error else ""

    def read(self, now_ns: int) -> list[CapturedBlock]:
        """Blocks that are complete by now, positions rising without a hole."""
        self._check(now_ns)
        if self._microphone is None:
            return self._silent_blocks(now_ns)
        blocks = []
        while (block := self._microphone.read()) is not None:
            first = self._offset + block.first
            blocks.append(CapturedBlock(first, block.captured_ns, block.samples))
            self._next = first + len(block.samples)
        return blocks

    def captured(self, now_ns: int) -> int | None:
        """Our position of the sample at the microphone now."""
        if self._microphone is not None:
            here = self._microphone.clock.sample_at(now_ns)
            return None if here is None else self._offset + here
        if self._silence is None:
            return None
        position, since_ns = self._silence
        return position + (now_ns - since_ns) * SAMPLE_RATE // NS

    def close(self) -> None:
        self._opener.wait(2.0)
        for microphone in (self._microphone, self._pending, self._opener.take()):
            if microphone is not None:
                microphone.close()
        self._microphone = self._pending = None

    def _check(self, now_ns: int) -> None:
        if self._microphone is not None:
            gone = self._is_gone(self._microphone.device.name)
            if gone or not self._microphone.is_alive(now_ns):
                self._lose(now_ns)
        if self._microphone is None:
            if self._silence is None:
                self._silence = (self._next, now_ns)
            self._welcome(now_ns)

    def _lose(self, now_ns: int) -> None:
        """Go on from where the device would be now: what it kept to itself is a hole, not a lag."""
        assert self._microphone is not None
        here = self.captured(now_ns)
        self._next = max(self._next, here or 0)
        self._microphone.close()
        self._microphone = None
        self._opener.failures = 1

    def _welcome(self, now_ns: int) -> None:
        """Take a device over with its first samples, not before: the first may take 2 s to come."""
        if self._pending is None:
            self._opener.poll(now_ns)
            self._pending = self._opener.take()
        pending = self._pending
        if pending is None:
            return
        if pending.has_spoken:
            self._microphone, self._pending, self._silence = pending, None, None
            self._offset = self._next
        elif not pending.is_alive(now_ns):
            pending.close()
            self._pending = None

    def _silent_blocks(self, now_ns: int) -> list[CapturedBlock]:
        assert self._silence is not None
        position, since_ns = self._silence
        due = position + (now_ns - since_ns) * SAMPLE_RATE // NS
        if due - self._next > MAX_SILENT_BLOCKS * SAMPLES_PER_BLOCK:
            self._next = due
            self._silence = (due, now_ns)
        blocks = []
        while self._next + SAMPLES_PER_BLOCK <= due:
            captured_ns = since_ns + (self._next - position) * NS // SAMPLE_RATE
            quiet = np.zeros(SAMPLES_PER_BLOCK, np.float32)
            blocks.append(CapturedBlock(self._next, captured_ns, quiet))
            self._next += SAMPLES_PER_BLOCK
        return blocks

    def _open(self) -> Microphone:
        """On the opener's thread."""
        take_in_new_devices("input", self.name, self._may_restart)
        microphone = Microphone(find_device("input", self.name))
        microphone.open()
        return microphone
