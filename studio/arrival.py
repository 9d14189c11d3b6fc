"""How far the picture runs behind the microphone: the delay at which frames are ready in time.

Used where no speaker is the clock. Frames of a chunk arrive together, so only the first of each
burst tells; one stall must not move the delay (p80 over 48 bursts), a slower engine must.
Knows nothing of threads or wall time; all in samples at 48 kHz.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME, ms_to_samples

BURSTS = 48
BURST_GAP_SAMPLES = ms_to_samples(12)  # frames closer than this arrived together
MARGIN_SAMPLES = ms_to_samples(4)  # scheduling jitter of the two processes, measured p95 about 3 ms
FALL_PER_SECOND = ms_to_samples(20)  # a falling delay plays the picture 2 % faster: not visible
RISE_PER_SECOND = ms_to_samples(200)
QUANTILE = 80


class ArrivalDelay:
    """`observe` each arrival; the microphone's position minus `delay` is what to show."""

    def __init__(self) -> None:
        self._lags: deque[int] = deque(maxlen=BURSTS)
        self._last_arrival: int | None = None
        self._delay: float | None = None
        self._moved_at = 0

    def observe(self, pts: int, captured: int) -> None:
        """A frame of `pts` arrived when the microphone stood at `captured`."""
        lag = captured - pts
        if self._last_arrival is not None and captured - self._last_arrival < BURST_GAP_SAMPLES:
            self._lags[-1] = max(self._lags[-1], lag)
        else:
            self._lags.append(lag)
        self._last_arrival = captured

    def delay(self, captured: int) -> int | None:
        """Samples behind the microphone; None before the first frame."""
        if not self._lags:
            return None
        target = float(np.percentile(self._lags, QUANTILE)) + MARGIN_SAMPLES
        if self._delay is None or abs(target - self._delay) > 6 * SAMPLES_PER_FRAME:
            self._delay, self._moved_at = target, captured
        elapsed_s = max(captured - self._moved_at, 0) / SAMPLE_RATE
        fall, rise = FALL_PER_SECOND * elapsed_s, RISE_PER_SECOND * elapsed_s
        self._delay += min(max(target - self._delay, -fall), rise)
        self._moved_at = captured
        return round(self._delay)

    def forget(self) -> None:
        """The timeline broke (interruption, new engine): learn anew."""
        self._lags.clear()
        self._last_arrival = self._delay = None
