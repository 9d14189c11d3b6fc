"""FilePlay: one run through an audio file. The engine gets it ahead of time, the ear on time.

Sound begins when the first picture has arrived, so that speech never starts without a face; from
then on the sink is the clock and nothing delays it. Time and sink are arguments: no thread here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.clock import SAMPLES_PER_BLOCK, ms_to_samples
from studio.file_audio import FileAudio
from studio.speaker import Sink

LEAD_SAMPLES = ms_to_samples(600)  # of the engine over the ear; the pace's shelf holds 1 s
SINK_SAMPLES = ms_to_samples(120)  # queued in the sink: rides out a busy machine
LONGEST_WAIT_NS = 1_500_000_000  # for the first picture; then the sound begins without it

Send = Callable[[int, np.ndarray, bool], None]  # (session sample, samples [n], last of the stream)


class FilePlay:
    """File sample `start` is session sample `first`; `step` until `is_finished`."""

    def __init__(self, file: FileAudio, start: int, first: int, now_ns: int) -> None:
        self._file = file
        self._shift = first - start  # session sample = file sample + shift
        self._first = first
        self._began_ns = now_ns
        self._sent = start  # file samples
        self._written = start
        self.is_sounding = False
        self.is_finished = False

    def step(self, now_ns: int, sink: Sink, picture_head: int, send: Send) -> None:
        """Send and play what is due; `picture_head` is the newest pts at hand (-1: none)."""
        here = self.file_position(now_ns, sink)
        end = len(self._file)
        while self._sent < min(here + LEAD_SAMPLES, end):
            count = min(SAMPLES_PER_BLOCK, end - self._sent)
            samples = self._file.samples(self._sent, count)
            send(self._sent + self._shift, samples, self._sent + count >= end)
            self._sent += count
        waited = now_ns - self._began_ns > LONGEST_WAIT_NS
        if not self.is_sounding and (picture_head >= self._first or waited):
            self.is_sounding = True
        if self.is_sounding:
            self._feed(now_ns, sink)
            self.is_finished = self._written >= end and here >= end - ms_to_samples(2)

    def _feed(self, now_ns: int, sink: Sink) -> None:
        while self._written < len(self._file) and sink.queued(now_ns) < SINK_SAMPLES:
            count = min(SAMPLES_PER_BLOCK, len(self._file) - self._written)
            first = self._written + self._shift
            sink.write(self._file.samples(self._written, count), first, first + count)
            self._written += count

    def position(self, now_ns: int, sink: Sink) -> int:
        """The session sample being heard; just before the first one until sound begins."""
        heard = sink.position(now_ns) if self.is_sounding else None
        return self._first - 1 if heard is None else max(heard, self._first - 1)

    def file_position(self, now_ns: int, sink: Sink) -> int:
        return self.position(now_ns, sink) - self._shift

    def send_again_from(self, session_sample: int) -> None:
        """The engine begins anew there (it skips what it was late with); the sound goes on."""
        self._sent = max(session_sample - self._shift, 0)

    def move_to(self, old: Sink, now_ns: int) -> None:
        """The sink has died: go on, on another one, from the sample heard last."""
        self._written = max(self.file_position(now_ns, old), self._first - self._shift)
        self._first = self._written + self._shift
