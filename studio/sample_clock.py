"""Where a device's sample counter stands at a moment of the monotonic clock, and its true rate.

A second-order loop over (sample, monotonic_ns) stamps: jitter of single stamps (milliseconds with
PulseAudio) is averaged away, a real rate error of +-200 ppm is followed. Knows nothing of devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.clock import SAMPLE_RATE

NS = 1_000_000_000
JUMP_SAMPLES = 4_800  # a stamp 100 ms off is a gap in the stream, not jitter
SETTLE_S = 2.0  # gains fall from 1 to those of a loop with about this time constant
MAX_PPM = 2_000.0
# Stamps that stay this far off, on one side, for so long are a slip of the device (it ran dry and
# went on), not jitter: seen as 22 ms with PulseAudio on a busy machine.
SLIP_SAMPLES = 384
SLIP_NS = 150_000_000


@dataclass(frozen=True, slots=True)
class _Line:
    """sample(t) = sample + rate * (t - at_ns): replaced whole, so that readers need no lock."""

    sample: float
    at_ns: int
    rate: float  # samples a nanosecond

    def at(self, now_ns: int) -> float:
        return self.sample + self.rate * (now_ns - self.at_ns)


class SampleClock:
    """`stamp` from one thread, `sample_at` from any."""

    def __init__(self) -> None:
        self._line: _Line | None = None
        self._started_ns = 0
        self._off_since_ns = 0
        self._off_sign = 0

    def stamp(self, sample: int, at_ns: int) -> None:
        """`sample` passed the device at `at_ns`; stamps come in rising order."""
        line = self._line
        if line is None or abs(sample - line.at(at_ns)) > JUMP_SAMPLES:
            self._line = _Line(float(sample), at_ns, SAMPLE_RATE / NS)
            self._started_ns = at_ns
            return
        dt_s = (at_ns - line.at_ns) / NS
        if dt_s <= 0:
            return
        age_s = (at_ns - self._started_ns) / NS
        error = sample - line.at(at_ns)
        if self._has_slipped(error, at_ns):
            self._line = _Line(float(sample), at_ns, line.rate)
            return
        # Critically damped: the phase gain is 2 w dt, the rate gain w^2 dt; w settles at 1/2 s.
        w = 1.0 / min(max(age_s, 0.2), SETTLE_S)
        phase = min(2.0 * w * dt_s, 0.5)
        rate = line.rate + min(w * w * dt_s, 0.25) * error / NS * (age_s > 1.0)
        limit = SAMPLE_RATE / NS * MAX_PPM * 1e-6
        rate = min(max(rate, SAMPLE_RATE / NS - limit), SAMPLE_RATE / NS + limit)
        self._line = _Line(line.at(at_ns) + phase * error, at_ns, rate)

    def _has_slipped(self, error: float, at_ns: int) -> bool:
        """True once errors beyond SLIP_SAMPLES have kept their sign for SLIP_NS."""
        sign = (error > SLIP_SAMPLES) - (error < -SLIP_SAMPLES)
        if sign != self._off_sign:
            self._off_sign, self._off_since_ns = sign, at_ns
        slipped = sign != 0 and at_ns - self._off_since_ns > SLIP_NS
        if slipped:
            self._off_sign = 0
        return slipped

    def sample_at(self, now_ns: int) -> int | None:
        """The sample passing at `now_ns`; None before the first stamp."""
        line = self._line
        return None if line is None else int(line.at(now_ns))

    def time_of(self, sample: int) -> int | None:
        """The moment at which `sample` passes the device, monotonic ns."""
        line = self._line
        return None if line is None else int(line.at_ns + (sample - line.sample) / line.rate)

    @property
    def rate_ppm(self) -> float:
        """How much faster than 48 kHz of the monotonic clock the device runs."""
        line = self._line
        return 0.0 if line is None else (line.rate * NS / SAMPLE_RATE - 1.0) * 1e6

    def reset(self) -> None:
        self._line = None
