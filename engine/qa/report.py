"""What a lip-sync result is: plain data on disk and on wires, read by reports, panel and tests.

msgspec only: importing this imports neither torch nor cv2, so that the studio may. Knows nothing
of how anything is measured.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

FORMAT = 1  # raise when a field changes its meaning
PRIMARY = "headline"  # the one score that a verdict rests on
HOLM = (  # the scores that are tested together, beside the primary one
    "r0", "confidence", "offset", "ridge_r0", "bilabial", "open_vowels", "rounding", "dynamics",
    "pause_shut",
)  # fmt: skip
LEAST_TO_DECIDE = 5  # clips: that all of 4 lose has a chance of 1 in 16, of 5 of 1 in 32
MOST_CLIPS = 99_999  # more than anybody has: no number of such clips decides


class Better(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"
    INSIDE = "inside"  # between `low` and `high`


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure of one clip. `value` None means skipped, and `skipped` says why. `low` and `high`
    are the limits, None where there is none; `count` what it rests on (closures, frames ...)."""

    name: str
    value: float | None
    unit: str
    better: Better
    low: float | None = None
    high: float | None = None
    count: int = 0
    skipped: str = ""

    @property
    def passed(self) -> bool | None:
        """None where it was skipped or has no limit."""
        if self.value is None or (self.low is None and self.high is None):
            return None
        above = self.low is None or self.value >= self.low
        return above and (self.high is None or self.value <= self.high)

    @property
    def badness(self) -> float | None:
        """Lower is better whatever the direction: for pairing and sorting. Inside limits, 0."""
        if self.value is None:
            return None
        if self.better is Better.HIGHER:
            return -self.value
        if self.better is Better.LOWER:
            return self.value
        low = self.low if self.low is not None else self.value
        high = self.high if self.high is not None else self.value
        return max(0.0, low - self.value, self.value - high)


class Tracks(msgspec.Struct, frozen=True):
    """On the 24 fps grid, one number a frame: opening 0..1 as seen and as the phones let expect,
    mouth width in S; `worst_s` is the start of the second that fits worst."""

    seen: list[float]
    expected: list[float]
    width: list[float]
    worst_s: float


class PhoneSpan(msgspec.Struct, frozen=True, array_like=True):
    name: str
    start_s: float
    end_s: float


class ClipResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One clip of one configuration. `failed` is one line, empty where the clip was scored;
    `scorer` the hash of code, models and set: results of different scorers are not compared.
    `measure`, `range_source`: how the opening was read (see `gauge.py`); `timings_ms` is the only
    part that differs between reruns."""

    clip: str
    scorer: str
    format: int = FORMAT
    configuration: str = ""
    seed: int = 0
    character: str = ""
    language: str = ""
    split: str = ""
    video: str = ""
    frames: int = 0
    fps: float = 0.0
    duration_s: float = 0.0
    measure: str = ""
    range_source: str = ""
    failed: str = ""
    notes: list[str] = []
    scores: list[Score] = []
    phones: list[PhoneSpan] = []
    tracks: Tracks | None = None
    timings_ms: dict[str, float] = {}

    def score(self, name: str) -> Score | None:
        return next((s for s in self.scores if s.name == name), None)

    def value(self, name: str) -> float | None:
        score = self.score(name)
        return None if score is None else score.value


class Verdict(StrEnum):
    SAME = "no worse within the margin"
    WORSE = "worse"
    BETTER = "better"
    UNDECIDED = "undecided"


class Difference(msgspec.Struct, frozen=True):
    """One score of B against A over paired clips; `mean`, intervals and margin are in the score's
    unit with + = B better. `p_worse` is Holm's over the family; `band` the rerun band of the mean;
    `clips_needed` would decide it, 0 where it is decided."""

    name: str
    clips: int
    mean: float
    low95: float
    high95: float
    low90: float
    high90: float
    margin: float
    band: float
    p_worse: float
    verdict: Verdict
    clips_needed: int
    worst: list[str]  # clips, the one that lost most first

    @property
    def to_decide(self) -> str:
        """What it would take, in plain words; empty where it is decided."""
        if self.verdict is not Verdict.UNDECIDED or not self.clips_needed:
            return ""
        if self.clips < LEAST_TO_DECIDE:
            return f"at least {LEAST_TO_DECIDE} clips are needed"
        if self.clips_needed >= MOST_CLIPS:
            return "more clips would not decide it: the loss is within the rerun band"
        return f"about {self.clips_needed} clips would decide it"


class Comparison(msgspec.Struct, frozen=True):
    """`verdict` is that of the primary score; `words` one sentence a tester can act on."""

    a: str
    b: str
    scorer: str
    verdict: Verdict
    words: str
    differences: list[Difference]
    failed: list[str]  # clips that could not be paired, with the reason

    @property
    def exit_status(self) -> int:
        """1 where B is worse, or nothing can be said."""
        return 0 if self.verdict in (Verdict.SAME, Verdict.BETTER) else 1


class PlantedRow(msgspec.Struct, frozen=True):
    """One planted fault over the clips of one split: medians and how often the ruler was right."""

    fault: str
    split: str  # "tune", "test"
    clips: int
    planted_late: float | None  # frames; None where no offset can be recovered
    offset_median: float | None
    offset_within_1: int
    ridge_median: float | None
    ridge_within_1: int
    means: dict[str, float]  # of each score over the clips
    ranked_below_reference: float  # share of clips whose headline is below the reference's
    verdict: Verdict  # of the paired comparison with the reference
    heads: str = "moving"


class Check(msgspec.Struct, frozen=True):
    """One thing the ruler must do; `required` ones decide the exit status."""

    name: str
    passed: bool
    said: str
    required: bool = True


class Validation(msgspec.Struct, frozen=True):
    """Whether the ruler measures: planted faults, checks, real speakers."""

    scorer: str
    quick: bool
    rows: list[PlantedRow]
    checks: list[Check]
    real_speakers: list[ClipResult]
    notes: list[str]
    format: int = FORMAT

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks if check.required)
