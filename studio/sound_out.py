"""SoundOut: the speaker of the wanted name while there is one, a silent clock while there is none.

Never without a sink: playing goes on through the loss and the return of a device.
"""

from __future__ import annotations

from collections.abc import Callable

from studio.audio_devices import find_device, take_in_new_devices
from studio.opener import Opener
from studio.silent_speaker import SilentSpeaker
from studio.speaker import Sink, Speaker


class SoundOut:
    """`check` now and then from one thread; True when `sink` has become another one."""

    def __init__(
        self, name: str, is_gone: Callable[[str], bool], may_restart: Callable[[], bool]
    ) -> None:
        self.name = name
        self.sink: Sink = SilentSpeaker()
        self.previous: Sink = self.sink
        self._is_gone = is_gone
        self._may_restart = may_restart
        self._opener: Opener[Speaker] = Opener(self._open)
        self._was_open = False

    @property
    def is_lost(self) -> bool:
        """A speaker that was asked for or was there is not there (a machine may have none)."""
        missed = bool(self.name) or self._was_open
        return isinstance(self.sink, SilentSpeaker) and self._opener.failures > 0 and missed

    @property
    def is_opening(self) -> bool:
        return isinstance(self.sink, SilentSpeaker) and self._opener.failures == 0

    def check(self, now_ns: int) -> bool:
        if isinstance(self.sink, Speaker):
            gone = self._is_gone(self.sink.device.name)
            if not gone and self.sink.is_alive(now_ns):
                return False
            self._opener.failures = 1
            self._replace(SilentSpeaker())
            return True
        self._opener.poll(now_ns)
        opened = self._opener.take()
        if opened is None:
            return False
        self._replace(opened)
        self._was_open = True
        return True

    def close(self) -> None:
        self._opener.wait(2.0)
        opened = self._opener.take()
        if opened is not None:
            opened.close()
        self.sink.close()

    def _replace(self, sink: Sink) -> None:
        """The old one stays readable (its last position) until the next change."""
        self.previous, self.sink = self.sink, sink
        if isinstance(self.previous, Speaker):
            self.previous.close()

    def _open(self) -> Speaker:
        take_in_new_devices("output", self.name, self._may_restart)
        speaker = Speaker(find_device("output", self.name))
        speaker.open()
        return speaker
