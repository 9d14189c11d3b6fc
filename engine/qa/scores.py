"""All scores of one clip, from what was measured of its pixels and what is known of its sound.

Pure: arrays in, `Score`s out. Knows nothing of files; what cannot be scored says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.clock import FPS, SAMPLE_RATE
from engine.motion.phone_track import Phone
from engine.qa.closures import Hits, bilabial_hits, false_closures, open_hits
from engine.qa.expected import expected_opening, frame_times
from engine.qa.gauge import Gauge
from engine.qa.headline import borne_fit, headline
from engine.qa.limits import make_score
from engine.qa.measured import EYES, Measured
from engine.qa.mouth_scores import (
    dynamics,
    jitter,
    jump,
    pauses_shut,
    rest_frames,
    rounding,
    spoken,
)
from engine.qa.offset import LEAST_FRAMES, Lag, curve, lag
from engine.qa.report import Score, Tracks
from engine.qa.ridge import mouth_width, movements, predicted, ridge_lag
from engine.qa.tracker import STABLE

LEAST_MOVE = 0.06  # standard deviation of the opening; a turning head feigns up to 0.05
WORST_FRAMES = FPS  # the second that fits worst
NO_VOWEL = "no open vowel of 80 ms"
TOO_SHORT = "less than 1.5 s of speech: as many lags as frames"
Pair = tuple[float, int] | None


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a clip: `phones` in order without holes, None where there is no transcript
    (`why_not` says so); `pcm` [samples] 48 kHz mono."""

    phones: tuple[Phone, ...] | None
    pcm: np.ndarray
    why_not: str = "no transcript"

    @property
    def frames(self) -> int:
        """Of the 24 fps grid."""
        return round(len(self.pcm) / SAMPLE_RATE * FPS)


@dataclass(frozen=True, slots=True)
class Mouth:
    """A clip's mouth on the 24 fps grid: `opening` [n], `width` [n] S, `moves` [n, 3] S; `rest` is
    the opening of the picture's own mouth."""

    opening: np.ndarray
    width: np.ndarray
    moves: np.ndarray
    rest: float = 0.0


def on_grid(values: np.ndarray, times_s: np.ndarray, count: int) -> np.ndarray:
    """[n] at frame times -> [count] at the middles of 24 fps frames; gaps are bridged."""
    known = np.isfinite(values)
    return np.interp(frame_times(count), times_s[known], values[known])


def mouth_of(measured: Measured, gauge: Gauge, count: int) -> Mouth:
    """Of at most `count` frames: no further than the video goes."""
    count = min(count, round(measured.times_s[-1] * FPS + 0.5))
    moves = movements(measured.landmarks).T
    return Mouth(
        on_grid(gauge.opening(measured), measured.times_s, count),
        on_grid(mouth_width(measured.landmarks), measured.times_s, count),
        np.stack([on_grid(m, measured.times_s, count) for m in moves], 1),
        gauge.rest,
    )


def mouth_scores(mouth: Mouth, truth: Truth) -> list[Score]:
    """Everything about lips and sound, headline first."""
    n = len(mouth.opening)
    scores = _sound_scores(mouth, truth)
    if truth.phones is None:
        names = ("headline", "offset", "r0", "confidence", "bilabial", "open_vowels", "rounding")
        skipped = [make_score(name, None, 0, truth.why_not) for name in names]
        return [*skipped, *scores, _plain("dynamics", dynamics(mouth.opening, None), "too short")]
    phones, opening = truth.phones, mouth.opening
    part = spoken(phones, n)
    wanted = expected_opening(phones, frame_times(n))[part]
    fit = lag(opening[part], wanted, LEAST_MOVE)
    closed, opened = bilabial_hits(opening, phones), open_hits(opening, phones)
    moves = dynamics(opening, phones)
    total = headline(
        borne_fit(curve(opening[part], wanted)) if fit else 0.0,
        closed.corrected if closed else None,
        opened.share if opened else None,
        moves[0] if moves else 0.0,
    )
    still = jitter(opening, rest_frames(phones, n))
    said = len(wanted)  # frames of speech, its inner pauses included
    first = make_score("headline", total, n)
    if said < LEAST_FRAMES:  # a real speaker with 1.3 s of speech would score 0
        first = make_score("headline", None, n, TOO_SHORT)
    return [
        first,
        *_lag_scores(fit, said, ("offset", "r0", "confidence")),
        *scores,
        *_closed_scores(closed),
        _plain("open_vowels", (opened.share, opened.count) if opened else None, NO_VOWEL),
        _plain("false_closures", false_closures(opening, phones), NO_VOWEL),
        _plain("rounding", rounding(mouth.width, phones), "not both spread and rounded vowels"),
        _plain("dynamics", moves, "too little speech"),
        _plain("pause_shut", pauses_shut(opening, phones, False, mouth.rest), "no pause after 2 s"),
        _plain("start_shut", pauses_shut(opening, phones, True, mouth.rest), "no pause before 2 s"),
        _plain("rest_jitter", still, "no pause"),
    ]


def _sound_scores(mouth: Mouth, truth: Truth) -> list[Score]:
    """The second opinion, which needs no phones."""
    n = len(mouth.moves)
    fit = ridge_lag(mouth.moves, predicted(truth.pcm, frame_times(n)))
    return _lag_scores(fit, n, ("ridge_offset", "ridge_r0"))


def _lag_scores(fit: Lag | None, frames: int, names: tuple[str, ...]) -> list[Score]:
    """Offset, r0 and perhaps confidence; a mouth that does not move has no offset, and r0 0."""
    if frames < LEAST_FRAMES:
        return [make_score(name, None, frames, TOO_SHORT) for name in names]
    if fit is None:
        still = "the mouth does not move"
        return [
            make_score(name, None, frames, still) if "offset" in name
            else make_score(name, 0.0, frames)
            for name in names
        ]  # fmt: skip
    values = (fit.late, fit.r0, fit.confidence)
    return [make_score(name, v, frames) for name, v in zip(names, values, strict=False)]


def _closed_scores(hit: Hits | None) -> list[Score]:
    if hit is None:
        return [make_score("bilabial", None, 0, "no p, b or m")]
    return [
        make_score("bilabial", hit.corrected, hit.count, _no_room(hit)),
        make_score("bilabial_raw", hit.share, hit.count),
    ]


def _no_room(hit: Hits) -> str:
    if hit.corrected is not None:
        return ""
    return f"shut in {hit.chance:.0%} of all windows: closures are no evidence"


def _plain(name: str, pair: Pair, why_not: str) -> Score:
    return make_score(name, None, 0, why_not) if pair is None else make_score(name, *pair)


def head_score(measured: Measured) -> Score:
    points = measured.landmarks[:, list(STABLE)]
    s = np.linalg.norm(
        measured.landmarks[:, EYES[1]] - measured.landmarks[:, EYES[0]], axis=1
    )  # fmt: skip
    return _plain("head_jump", jump(points, np.maximum(s, 1e-6)), "fewer than two faces")


def tracks_of(mouth: Mouth, truth: Truth) -> Tracks:
    """For pictures of a clip; the worst second is where seen and expected differ most."""
    n = len(mouth.opening)
    seen = mouth.opening
    expected = np.zeros(n)
    if truth.phones is not None:
        expected = expected_opening(truth.phones, frame_times(n))
    apart = np.abs(seen - expected * (seen.std() / expected.std() if expected.std() else 1.0))
    sums = np.convolve(apart, np.ones(min(WORST_FRAMES, n)), "valid")
    return Tracks(
        seen.round(4).tolist(), expected.round(4).tolist(), mouth.width.round(4).tolist(),
        round(int(sums.argmax()) / FPS, 4),
    )  # fmt: skip
