"""One finished video -> one `ClipResult`: decode, measure, score; whatever is wrong is its reason.

Knows nothing of how the video was made or of other clips.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.audio_file import read_whole
from engine.clock import FPS
from engine.errors import EngineError
from engine.qa import picture_checks as checks
from engine.qa.gauge import Gauge, default_gauge
from engine.qa.limits import make_score
from engine.qa.lse import SyncNet, lse_scores
from engine.qa.measured import Measured, Measurer
from engine.qa.offset import LEAST_FRAMES
from engine.qa.report import ClipResult, PhoneSpan, Score
from engine.qa.scores import Truth, head_score, mouth_of, mouth_scores, tracks_of
from engine.qa.video_file import VideoFacts, VideoFile

MOST_MISSING = 0.2  # share of frames without a face above which nothing is scored
MOST_UNEVEN = 0.5  # of a frame interval
LEAST_OF_SOUND = 0.9  # a video must be shown for this share of its sound


@dataclass(frozen=True, slots=True)
class Labels:
    """What the result is called; none of it changes a score."""

    clip: str
    scorer: str
    configuration: str = ""
    seed: int = 0
    character: str = ""
    language: str = ""
    split: str = ""


def score_video(
    path: Path,
    truth: Truth | None,
    gauge: Gauge | None,
    labels: Labels,
    models: Path | None = None,
    syncnet: SyncNet | None = None,
) -> ClipResult:
    """Never raises for a bad clip: `failed` is one line. About 14 ms of one core a frame.

    `truth` None takes the video's own sound, without phones; `gauge` None the clip's own range.
    """
    begun = time.perf_counter()
    try:
        measured, facts = measure_video(path, models)
        sound = read_whole(path)
        truth = truth or Truth(None, sound)
        result = score_measured(measured, facts, truth, gauge, labels)
        lse = lse_scores(syncnet, path, measured, truth.pcm)
    except EngineError as error:
        return failed_clip(labels, str(error), str(path))
    return _with(result, path, lse, (time.perf_counter() - begun) * 1000)


def _with(result: ClipResult, path: Path, lse: list[Score], total_ms: float) -> ClipResult:
    return msgspec.structs.replace(
        result,
        video=path.name,
        scores=[*result.scores, *lse] if not result.failed else [],
        timings_ms={"score": round(total_ms, 1)},
    )


def failed_clip(labels: Labels, why: str, video: str = "") -> ClipResult:
    return ClipResult(
        labels.clip, labels.scorer, configuration=labels.configuration, seed=labels.seed,
        character=labels.character, language=labels.language, split=labels.split,
        video=Path(video).name, failed=why,
    )  # fmt: skip


def measure_video(path: Path, models: Path | None = None) -> tuple[Measured, VideoFacts]:
    """Every frame of a file, at its own time. Raises EngineError("bad_input", "missing_asset")."""
    video, measurer = VideoFile(path), Measurer(models)
    for bgr in video.frames():
        measurer.push(bgr, 0.0)
    facts = video.facts()
    return measurer.measured(facts.middles_s), facts


def refusal(measured: Measured, facts: VideoFacts | None, sound_s: float) -> str:
    """Why a video cannot be scored at all; empty where it can."""
    n = len(measured)
    black = checks.black_frames(measured)
    if black > 0.5 * n:
        return f"{black} of {n} frames are black: is this the right file?"
    missing = int((~measured.seen).sum())
    if missing == n:
        return f"no face in any of {n} frames: show one face, larger and from the front"
    if missing > MOST_MISSING * n:
        return f"no face in {missing} of {n} frames, at most {MOST_MISSING:.0%} may lack one"
    shown_s = facts.shown_s if facts else n / FPS
    if shown_s * FPS < LEAST_FRAMES - 0.5:
        return f"{shown_s:.2f} s long, at least {LEAST_FRAMES / FPS:.1f} s are needed"
    return "" if facts is None else _refused_file(facts, shown_s, sound_s)


def _refused_file(facts: VideoFacts, shown_s: float, sound_s: float) -> str:
    if facts.damage:
        return f"damaged after {shown_s:.2f} s ({facts.damage}): repair it or cut it there"
    uneven = checks.rate_error_ms(facts)
    if uneven is not None and uneven > MOST_UNEVEN * 1000 / facts.fps:
        return f"frame intervals vary by {uneven:.0f} ms: re-encode it at a constant rate"
    if shown_s < LEAST_OF_SOUND * sound_s:
        return f"the picture ends after {shown_s:.2f} s of {sound_s:.2f} s of sound"
    return ""


def score_measured(
    measured: Measured, facts: VideoFacts | None, truth: Truth, gauge: Gauge | None, labels: Labels
) -> ClipResult:
    """Scores of frames measured already; `facts` None for frames that were never a file."""
    sound_s = len(truth.pcm) / 48_000
    why = refusal(measured, facts, sound_s) if len(measured) else "no frames"
    if why:
        return failed_clip(labels, why)
    gauge = gauge or default_gauge(measured.landmarks)
    mouth = mouth_of(measured, gauge, truth.frames)
    scores = [
        *mouth_scores(mouth, truth),
        head_score(measured),
        *_picture_scores(measured, facts, gauge, sound_s),
    ]
    return ClipResult(
        labels.clip, labels.scorer, configuration=labels.configuration, seed=labels.seed,
        character=labels.character, language=labels.language, split=labels.split,
        frames=len(measured), fps=round(facts.fps, 3) if facts else float(FPS),
        duration_s=round(sound_s, 4), measure=gauge.measure, range_source=gauge.source,
        notes=_notes(gauge), scores=scores, tracks=tracks_of(mouth, truth),
        phones=[PhoneSpan(p.name, round(p.start_s, 4), round(p.end_s, 4))
                for p in truth.phones or ()],
    )  # fmt: skip


def _notes(gauge: Gauge) -> list[str]:
    if gauge.source != "sweep":
        return [f"no sweep of this face: opening in shares of the range of the {gauge.source}"]
    if gauge.dead_zone > 0.25:
        return [f"openings below {gauge.dead_zone:.0%} of this face are read as shut"]
    return []


def _picture_scores(
    measured: Measured, facts: VideoFacts | None, gauge: Gauge, sound_s: float
) -> list[Score]:
    n, fps = len(measured), facts.fps if facts else float(FPS)
    sharp = checks.sharpness_share(measured, gauge.sharp)
    scores = [
        make_score("faces_missing", float((~measured.seen).sum()), n),
        make_score("frame_count", checks.count_error(n, fps, sound_s), n),
        make_score("black_frames", checks.black_frames(measured), n),
        make_score("repeated", checks.repeated_share(measured), n),
        make_score("longest_still", checks.longest_still(measured), n),
        make_score("sharpness", sharp, n, "" if sharp is not None else "no still picture"),
    ]
    if facts is not None:
        rate, gap = checks.rate_error_ms(facts), checks.start_gap_ms(facts)
        scores.append(make_score("rate_error", rate, n, "" if rate is not None else "one frame"))
        scores.append(make_score("start_gap", gap, 1, "" if gap is not None else "no sound"))
    return scores
