"""Lip-sync results in a tester's words: columns, numbers, limits missed, the state of a run.

Knows nothing of widgets. What a score means is written in the report; here are short names.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.qa.report import MOST_CLIPS, PRIMARY, ClipResult, Difference, Verdict

# score -> (heading, what a tester reads about it)
COLUMNS: dict[str, tuple[str, str]] = {
    "headline": ("Score", "One number of 0 to 1: fit, closures, vowels and range together"),
    "offset": ("Offset", "How late the mouth is in frames of 41.7 ms; minus is early"),
    "r0": ("Fit r0", "Correlation of the opening seen with the one the phones let expect"),
    "bilabial": ("p b m", "Share of p, b and m with shut lips, corrected for chance"),
    "open_vowels": ("Vowels", "Share of open vowels with an open mouth"),
    "pause_shut": (
        "Pauses",
        "Share of pause frames with a shut mouth, after the first two seconds",
    ),
}
NAMES = {
    "headline": "score", "r0": "fit r0", "ridge_r0": "second opinion", "bilabial": "p b m",
    "open_vowels": "open vowels", "pause_shut": "shut in pauses", "false_closures":
    "false closures", "ridge_offset": "second offset", "start_shut": "shut at the start",
    "rest_jitter": "trembling", "head_jump": "head jump", "faces_missing": "frames without face",
    "rate_error": "frame rate", "start_gap": "late start", "longest_still": "still frames",
}  # fmt: skip
TONES = {
    Verdict.SAME: "live", Verdict.BETTER: "live", Verdict.WORSE: "danger",
    Verdict.UNDECIDED: "warning",
}  # fmt: skip
HEADS = {
    Verdict.SAME: "No worse", Verdict.BETTER: "Better", Verdict.WORSE: "Worse",
    Verdict.UNDECIDED: "Undecided",
}  # fmt: skip
NONE = "–"


def name_of(score: str) -> str:
    return NAMES.get(score, score.replace("_", " "))


def number(score: str, value: float | None) -> str:
    """Offsets with their sign and one digit, the rest with two digits."""
    if value is None:
        return NONE
    return f"{value:+.1f}" if "offset" in score else f"{value:.2f}"


def missed(result: ClipResult) -> list[str]:
    """The scores that are outside their limits."""
    return [score.name for score in result.scores if score.passed is False]


def result_words(result: ClipResult | None) -> tuple[str, str]:
    """(what a table says of a clip, its tone): good, or which limits it misses."""
    if result is None:
        return "Waiting", "faint"
    if result.failed:
        return f"Failed: {result.failed}", "danger"
    out = missed(result)
    if not out and result.value(PRIMARY) is None:
        return "Not judged", "soft"
    if not out:
        return "Good", "live"
    return ", ".join(name_of(name) for name in out), "warning"


def run_words(results: Sequence[ClipResult], total: int) -> tuple[str, str]:
    """(a run in one sentence, its tone). A run is good when nine clips of ten pass the score."""
    scored = [s for r in results if (s := r.score(PRIMARY)) is not None and s.value is not None]
    failed = sum(bool(r.failed) for r in results)
    parts = [f"{len(results)} of {total} clips done"] if len(results) < total else []
    good = sum(s.passed is not False for s in scored)
    tone = "faint"
    if scored:
        parts.append(f"Lips fit the sound in {good} of {len(scored)} clips")
        share = good / len(scored)
        tone = "live" if share >= 0.9 and not failed else "warning" if share >= 0.5 else "danger"
    elif results and not failed:
        parts.append("No transcript: lips were not judged")
    if failed:
        parts.append(f"{failed} of {len(results)} could not be scored")
        tone = "danger" if not scored else "warning" if tone == "live" else tone
    return " · ".join(parts) or "Nothing done yet", tone


def difference_words(d: Difference) -> tuple[str, str]:
    """(the verdict of one score, what would decide it)."""
    if d.to_decide:
        short = f"{d.clips} of {d.clips_needed} clips"
        if d.clips_needed >= MOST_CLIPS:
            short = "within rerun noise"
        return f"Undecided: {short}", f"On {d.clips} clips; {d.to_decide}"
    return HEADS[d.verdict], f"On {d.clips} clips"


def title_of(score: str) -> str:
    """At the beginning of a row; p b m are sounds and stay small."""
    text = name_of(score)
    return text if score == "bilabial" else text[:1].upper() + text[1:]


def plain_sentence(words: str) -> str:
    """The comparison's sentence with the scores' names that the panel uses."""
    text = words.replace("headline", name_of(PRIMARY)).replace("_", " ")
    return text[:1].upper() + text[1:]
