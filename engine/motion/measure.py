"""Figures of a motion against exact phone times: closures, leads, rest, flutter.

Works on tokens alone, so that it needs no picture; what a picture shows of them is for
`sheet.py` and the eye. Knows nothing of how the tokens were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from engine.clock import FPS
from engine.motion.phone_track import Phone
from engine.portrait.coefficients import INDEX

# Expected opening by phone class, of the figure `r0` (own table, coarser than the targets').
_OPENING = {
    **dict.fromkeys(("AA", "AE", "AO", "AW", "AY"), 1.0),
    **dict.fromkeys(("EH", "AH", "EY", "OW", "OY"), 0.7),
    **dict.fromkeys(("IH", "UH", "ER", "HH", "L"), 0.45),
    **dict.fromkeys(("IY", "UW", "R", "Y", "W", "K", "G", "NG", "DH", "TH"), 0.3),
    **dict.fromkeys(("T", "D", "N", "S", "Z", "SH", "ZH", "CH", "JH"), 0.22),
    **dict.fromkeys(("F", "V"), 0.08),
    **dict.fromkeys(("P", "B", "M", "SIL"), 0.0),
}
LIPS, ROUNDED = ("P", "B", "M"), ("UW", "OW", "W")
# jawOpen 1 turns a jaw of 1.2 S by 24 degrees: 0.007 is 1 px for a face of S = 290 px, and the
# largest of our starter characters has 278.
SHUT = 0.007
OPEN = 0.03
OPENED = 0.15  # what reads as an open vowel
OPEN_VOWELS = ("AA", "AE", "AY", "AW", "AO", "EH")
MAX_LAG_FRAMES = 6


@dataclass(frozen=True, slots=True)
class Figures:
    """None where the track has nothing to measure."""

    closures: int
    closed_share: float | None  # of p b m, shut in a frame that overlaps the phone within 1 frame
    closed_on_time_share: float | None  # shut in a frame whose own time overlaps the phone
    false_closed_share: float | None  # of open vowels >= 80 ms, shut in their middle
    false_shuts_hz: float | None  # a second of speech: shut 2 frames or more from p b m or silence
    open_share: float | None  # of open vowels >= 80 ms, that reach OPENED
    r0: float | None
    lead_frames: float | None  # best lag; + the lips come first
    r_best: float | None
    rounding_lead_ms: float | None  # median, from 15 % of its peak to the vowel's start
    open_in_silence_share: float | None  # frames deeper than 0.3 s in a pause
    rest_ms: float | None  # longest time from the end of speech to a shut mouth
    jaw_range: float  # 5th to 95th percentile while speaking
    jaw_reversals_hz: float  # changes of direction larger than 0.02
    jaw_jerk: float  # rms third difference, per frame cubed


def opening(tokens: np.ndarray) -> np.ndarray:
    """[n] lip gap in units of jawOpen that the tokens leave, without the picture's own gap."""
    jaw, close = tokens[:, INDEX["jawOpen"]], tokens[:, INDEX["mouthClose"]]
    lifted = 0.35 * tokens[:, INDEX["lowerLipDown"]] + 0.2 * tokens[:, INDEX["upperLipUp"]]
    return (jaw + lifted) * (1 - close)


def measure(tokens: np.ndarray, phones: list[Phone]) -> Figures:
    """Figures of tokens [n, COUNT] whose frame n is centred on (n + 0.5) / 24 s of the track.

    Frames after the track's end belong to its last phone if that is a silence.
    """
    if phones[-1].name == "SIL":
        end_s = max(phones[-1].end_s, len(tokens) / FPS)
        phones = [*phones[:-1], Phone("SIL", phones[-1].start_s, end_s)]
    gap = opening(tokens)
    centres = (np.arange(len(tokens)) + 0.5) / FPS
    near, on_time = _closures(gap, phones)
    vowels = _open_vowels(gap, phones)
    lead, r_best, r0 = _lead(gap, phones, centres)
    speaking = np.array([_opening_at(phones, t) is not None for t in centres])
    jaw = tokens[speaking, INDEX["jawOpen"]]
    return Figures(
        closures=len(near),
        closed_share=_mean(near),
        closed_on_time_share=_mean(on_time),
        false_closed_share=_mean([gaps[len(gaps) // 2] < SHUT for gaps in vowels]),
        false_shuts_hz=_false_shuts(gap, phones, centres),
        open_share=_mean([gaps.max() > OPENED for gaps in vowels]),
        r0=r0,
        lead_frames=lead,
        r_best=r_best,
        rounding_lead_ms=_rounding_lead(tokens, phones),
        open_in_silence_share=_open_in_silence(gap, phones, centres),
        rest_ms=_rest(gap, phones, centres),
        jaw_range=float(np.subtract(*np.percentile(jaw, (95, 5)))) if len(jaw) else 0.0,
        jaw_reversals_hz=_reversals(jaw) * FPS / max(1, len(jaw)),
        jaw_jerk=float(np.sqrt(np.mean(np.diff(jaw, 3) ** 2))) if len(jaw) > 3 else 0.0,
    )


def pooled(figures: list[Figures]) -> dict[str, float | None]:
    """Mean of each figure over clips, closures weighted by their count; rest_ms is the worst."""
    rows = [asdict(f) for f in figures]
    result: dict[str, float | None] = {}
    for key in rows[0]:
        known = [(r[key], max(1, r["closures"])) for r in rows if r[key] is not None]
        weights = [w if "closed" in key else 1 for _, w in known]
        result[key] = float(np.average([v for v, _ in known], weights=weights)) if known else None
    result["closures"] = float(sum(r["closures"] for r in rows))
    rests = [r["rest_ms"] for r in rows if r["rest_ms"] is not None]
    result["rest_ms"] = max(rests) if rests else None
    return result


def _mean(values: Sequence[bool]) -> float | None:
    return float(np.mean(values)) if values else None


def _closures(gap: np.ndarray, phones: list[Phone]) -> tuple[list[bool], list[bool]]:
    near, on_time = [], []
    for phone in phones:
        if phone.name in LIPS:
            first, last = int(phone.start_s * FPS), int(phone.end_s * FPS)
            near.append(bool((gap[max(0, first - 1) : last + 2] < SHUT).any()))
            on_time.append(bool((gap[first : last + 1] < SHUT).any()))
    return near, on_time


def _false_shuts(gap: np.ndarray, phones: list[Phone], centres: np.ndarray) -> float | None:
    """Runs of shut frames a second where the phones give no reason."""
    near_s = 2 / FPS
    excused = np.zeros(len(gap), bool)
    for phone in phones:
        if phone.name in (*LIPS, "SIL"):
            excused |= (centres >= phone.start_s - near_s) & (centres < phone.end_s + near_s)
    wrong = (gap < SHUT) & ~excused & (centres < phones[-1].end_s)
    runs = int(wrong[:1].sum() + (wrong[1:] & ~wrong[:-1]).sum())
    spoken_s = sum(p.end_s - p.start_s for p in phones if p.name != "SIL")
    return runs / spoken_s if spoken_s > 0 else None


def _open_vowels(gap: np.ndarray, phones: list[Phone]) -> list[np.ndarray]:
    """The gaps of each open vowel, one frame ahead of it as the lips are."""
    spans = []
    for phone in phones:
        if phone.name in OPEN_VOWELS and phone.end_s - phone.start_s >= 0.08:
            first, last = int(phone.start_s * FPS) - 1, int(phone.end_s * FPS)
            spans.append(gap[max(0, first) : last + 1])
    return spans


def _opening_at(phones: list[Phone], time_s: float) -> float | None:
    """Expected opening; None in a silence."""
    phone = next((p for p in phones if p.start_s <= time_s < p.end_s), None)
    return None if phone is None or phone.name == "SIL" else _OPENING[phone.name]


def _lead(
    gap: np.ndarray, phones: list[Phone], centres: np.ndarray
) -> tuple[float | None, float | None, float | None]:
    """(best lead in frames, correlation there, correlation at lag 0)."""
    fine = np.arange(-0.04, 0.0401, 0.01)
    expected = np.array([[_opening_at(phones, t + d) or 0.0 for d in fine] for t in centres])
    wanted = (expected * np.hanning(len(fine) + 2)[1:-1]).sum(1)
    if len(gap) < 4 * MAX_LAG_FRAMES or gap.std() < 1e-6 or wanted.std() < 1e-6:
        return None, None, None
    lags = range(-MAX_LAG_FRAMES, MAX_LAG_FRAMES + 1)
    scores = np.array([_correlation(gap, wanted, lag) for lag in lags])
    best = int(scores.argmax())
    shift = 0.0
    if 0 < best < len(scores) - 1:
        left, top, right = scores[best - 1 : best + 2]
        shift = 0.5 * (left - right) / (left - 2 * top + right)
    return lags[best] + float(shift), float(scores[best]), float(scores[MAX_LAG_FRAMES])


def _correlation(gap: np.ndarray, wanted: np.ndarray, lead: int) -> float:
    """Of the gap with what is wanted `lead` frames later."""
    n = len(gap) - abs(lead)
    a, b = (gap[:n], wanted[lead:]) if lead >= 0 else (gap[-lead:], wanted[:n])
    return float(np.corrcoef(a, b)[0, 1])


def _rounding_lead(tokens: np.ndarray, phones: list[Phone]) -> float | None:
    rounded = tokens[:, INDEX["mouthFunnel"]] + tokens[:, INDEX["mouthPucker"]]
    leads = []
    for before, phone in pairwise(phones):
        if phone.name not in ROUNDED or before.name in (*ROUNDED, "R", "SH", "CH", "JH", "ER"):
            continue
        first, last = int(phone.start_s * FPS), min(int(phone.end_s * FPS) + 1, len(rounded))
        peak = rounded[first:last].max(initial=0.0)
        start = first
        while start > 0 and rounded[start - 1] > 0.15 * peak:
            start -= 1
        leads.append(1000 * (phone.start_s - (start + 0.5) / FPS))
    return float(np.median(leads)) if leads else None


def _open_in_silence(gap: np.ndarray, phones: list[Phone], centres: np.ndarray) -> float | None:
    deep = np.zeros(len(gap), bool)
    for phone in phones:
        if phone.name == "SIL":
            # 0.1 s before the next phone the lips may already prepare it.
            start = phone.start_s + (0.3 if phone.start_s > 0 else 0.0)
            deep |= (centres > start) & (centres < phone.end_s - 0.1)
    return float((gap[deep] > OPEN).mean()) if deep.any() else None


def _rest(gap: np.ndarray, phones: list[Phone], centres: np.ndarray) -> float | None:
    times = []
    for phone in phones:
        inside = (centres >= phone.start_s) & (centres < phone.end_s)
        if phone.name != "SIL" or phone.start_s == 0 or phone.end_s - phone.start_s < 0.4:
            continue
        shut = centres[inside][gap[inside] <= OPEN]
        first = shut[0] if len(shut) else phone.end_s
        times.append(1000 * float(first - phone.start_s))
    return max(times) if times else None


def _reversals(jaw: np.ndarray, smallest: float = 0.02) -> int:
    count, direction, turn = 0, 0, jaw[0] if len(jaw) else 0.0
    for value in jaw:
        if direction * (value - turn) > 0 or direction == 0:
            direction = direction or int(np.sign(value - turn))
            turn = value
        elif abs(value - turn) > smallest:
            count, direction, turn = count + 1, -direction, value
    return count
