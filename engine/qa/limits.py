"""Every score's unit, direction and limits, in the order of reports. Part of the scorer's hash.

Limits were set on the clips and characters of the `tune` split (see `validate.py`); a clip may
miss one and still be the best that can be done. Knows nothing of how scores are measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.qa.report import Better, Score

HIGH, LOW, IN = Better.HIGHER, Better.LOWER, Better.INSIDE


@dataclass(frozen=True, slots=True)
class Rule:
    unit: str
    better: Better
    low: float | None
    high: float | None
    says: str  # one line for a tester


RULES: dict[str, Rule] = {
    "headline": Rule(
        "0..1", HIGH, 0.45, None, "one number: fit, closures, vowels and range together"
    ),
    "offset": Rule("frames", IN, -2.5, 0.5, "how late the mouth is, + late; one frame is 41.7 ms"),
    "r0": Rule("r", HIGH, 0.60, None, "correlation of the opening with what the phones let expect"),
    "confidence": Rule("r", HIGH, 0.35, None, "best correlation minus the median over +-12 frames"),
    "ridge_offset": Rule("frames", IN, -3.0, 1.5, "second opinion: lateness against real speakers"),
    "ridge_r0": Rule(
        "r", HIGH, 0.25, None, "second opinion: correlation with real speakers' mouths"
    ),
    "bilabial": Rule("0..1", HIGH, 0.60, None, "p b m that are shut, 0 = chance"),
    "bilabial_raw": Rule("share", HIGH, None, None, "p b m that are shut, a shut mouth scores 1"),
    "open_vowels": Rule("share", HIGH, 0.60, None, "open vowels that are open; always open is 1"),
    "false_closures": Rule("share", LOW, None, 0.20, "open vowels in whose middle the lips meet"),
    "rounding": Rule("S", HIGH, 0.02, None, "width of ee minus width of oo, in eye distances"),
    "dynamics": Rule(
        "opening", HIGH, 0.40, None, "5th to 95th percentile of the opening in speech"
    ),
    "pause_shut": Rule("share", HIGH, 0.95, None, "frames of pauses with a shut mouth, after 2 s"),
    "start_shut": Rule("share", HIGH, 0.95, None, "the same within the first two seconds"),
    "rest_jitter": Rule("opening", LOW, None, 0.06, "trembling of the lips in pauses"),
    "head_jump": Rule("S", LOW, None, 0.10, "largest move of the head from one frame to the next"),
    "faces_missing": Rule("frames", LOW, None, 0.0, "frames without a face"),
    "frame_count": Rule("frames", IN, -1.0, 1.0, "frames too many (+) or too few for the sound"),
    "rate_error": Rule("ms", LOW, None, 2.0, "largest departure from a constant frame interval"),
    "start_gap": Rule("ms", IN, -21.0, 21.0, "picture's start after the sound's"),
    "black_frames": Rule("frames", LOW, None, 0.0, "frames that are black"),
    "repeated": Rule("share", LOW, None, 0.05, "frames that repeat the one before"),
    "longest_still": Rule("frames", LOW, None, 6.0, "most repeated frames in a row"),
    "sharpness": Rule(
        "share", HIGH, 0.5, None, "face's sharpness in shares of the still picture's"
    ),
    "lse_c": Rule("", HIGH, None, None, "SyncNet confidence (LSE-C), re-timed to 25 fps"),
    "lse_d": Rule("", LOW, None, None, "SyncNet distance (LSE-D), re-timed to 25 fps"),
}


def make_score(name: str, value: float | None, count: int = 0, skipped: str = "") -> Score:
    """A score with its rule's unit and limits, rounded to 5 digits."""
    rule = RULES[name]
    kept = None if value is None else round(float(value), 5)
    return Score(name, kept, rule.unit, rule.better, rule.low, rule.high, count, skipped)
