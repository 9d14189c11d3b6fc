"""Monitor: the microphone in the speaker, delayed until the picture that belongs to it is up.

The delay is the picture's plus a margin; two devices never run at quite the same rate, so the sound
is bent by up to 0.4 % to stay there, and jumps only when it is far off. No thread, no device here.
"""

from __future__ import annotations

import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_BLOCK, ms_to_samples
from studio.drift import DriftResampler, Follow
from studio.speaker import Sink

UNKNOWN_DELAY = ms_to_samples(250)  # until the first picture tells
MARGIN = ms_to_samples(15)  # the screen's lead and one scheduling slip
JUMP = ms_to_samples(60)  # further off than this is not bent back: that would take 15 s
LONGEST = SAMPLE_RATE  # of delay: beyond it a monitor is of no use to anybody


class Monitor:
    """`write` each block of the session; `delay` is how far the sound runs behind."""

    def __init__(self) -> None:
        self._resampler = DriftResampler()
        self._follow = Follow()
        self._primed = False
        self._held = 0  # samples that the device keeps beyond what was queued, as far as known
        self.delay: int | None = None

    def restart(self, sink: Sink) -> None:
        sink.flush()
        self._primed = False

    def write(
        self, samples: np.ndarray, first: int, captured: int, picture_delay: int | None,
        now_ns: int, sink: Sink,
    ) -> None:  # fmt: skip
        """`samples` are the session's from `first` on; the microphone stands at `captured`."""
        wanted = UNKNOWN_DELAY if picture_delay is None else picture_delay + MARGIN
        wanted = min(wanted, LONGEST)
        heard = sink.position(now_ns)
        self.delay = None if heard is None else captured - heard
        if self.delay is not None and abs(self.delay - wanted) > JUMP:
            # What the device holds back comes on top of the silence: less of that, or every start
            # would be off by as much and begin again.
            self._held = min(max(self._held + self.delay - wanted, 0), wanted)
            self.restart(sink)
        if not self._primed:
            self._prime(first, wanted - (captured - first) - self._held, sink)
            self.delay = None
        elapsed_s = len(samples) / SAMPLE_RATE
        ratio = 1.0 if self.delay is None else self._follow.ratio(self.delay, wanted, elapsed_s)
        bent = self._resampler.process(samples, ratio)
        if sink.queued(now_ns) + len(bent) < 2 * LONGEST - SAMPLES_PER_BLOCK:
            sink.write(bent, first, first + len(samples))

    def _prime(self, first: int, silence: int, sink: Sink) -> None:
        count = max(silence, SAMPLES_PER_BLOCK)
        sink.write(np.zeros(count, np.float32), first - count, first)
        self._primed = True
