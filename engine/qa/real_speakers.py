"""The ruler on real people who really speak: GRID clips, where their folder is present.

No picture or sound of them is part of the program. Knows nothing of planted faults.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.motion.phone_track import Phone
from engine.qa.report import Check, ClipResult
from engine.qa.ridge_fit import left_out, read_clip
from engine.qa.score_clip import Labels, score_video
from engine.qa.scores import Truth

# GRID's six words by their letters, as the file's name has them.
WORDS = (
    {"b": "bin", "l": "lay", "p": "place", "s": "set"},
    {"b": "blue", "g": "green", "r": "red", "w": "white"},
    {"a": "at", "b": "by", "i": "in", "w": "with"},
    {},
    {
        "z": "zero", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six",
        "7": "seven", "8": "eight", "9": "nine",
    },
    {"a": "again", "n": "now", "p": "please", "s": "soon"},
)  # fmt: skip
DOUBTFUL = ("swiz3n",)  # does not fit its words: shown, not judged
LEAST_WITHIN_1 = 0.6  # of single clips of 3 s, by the phones; they hold few syllables
LEAST_LEFT_OUT = 0.8  # by the second opinion, each clip judged by the others
MOST_POOLED = 1.0  # frames: GRID itself is up to one frame off


def sentence(stem: str) -> str:
    """The words of a file name such as `grid_bbaf2n`. Raises EngineError("bad_input")."""
    code = stem.rsplit("_", 1)[-1]
    try:
        return " ".join(
            known[letter] if known else letter for letter, known in zip(code, WORDS, strict=True)
        )
    except (KeyError, ValueError) as error:
        raise EngineError(
            "bad_input", f"{stem} is no name of a GRID clip", "name it like bbaf2n"
        ) from error


def clips_of(folder: Path | None) -> list[Path]:
    if folder is None or not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.suffix in (".mpg", ".mp4", ".avi"))


def truth_of(path: Path) -> Truth:
    """Phones by forced alignment where its packages are installed."""
    from engine.qa.forced import forced_alignment

    pcm = read_whole(path)
    try:
        aligned = forced_alignment(pcm, sentence(path.stem), "en")
    except EngineError as error:
        return Truth(None, pcm, str(error))
    phones = tuple(Phone(p.name, p.start_s, p.end_s) for p in aligned.phones)
    return Truth(phones, pcm)


def score_real(path: Path, scorer: str, models: Path | None = None) -> ClipResult:
    labels = Labels(path.stem, scorer, "real speaker", language="en", split="real")
    return score_video(path, truth_of(path), None, labels, models)


def real_checks(results: list[ClipResult], folder: Path) -> list[Check]:
    """Do both predictors put real speakers at zero?"""
    judged = [r for r in results if not any(part in r.clip for part in DOUBTFUL)]
    offsets = [v for r in judged if (v := r.value("offset")) is not None]
    checks = []
    if offsets:
        within = sum(abs(v) <= 1 for v in offsets)
        middle = float(np.median(offsets))
        checks.append(Check(
            "real speakers: pooled offset near zero", abs(middle) <= MOST_POOLED,
            f"median {middle:+.2f} frames of {len(offsets)} clips",
        ))  # fmt: skip
        checks.append(Check(
            "real speakers: single clips within a frame",
            within >= LEAST_WITHIN_1 * len(offsets),
            f"{within} of {len(offsets)}, at least {LEAST_WITHIN_1:.0%}; 3 s are few syllables",
        ))  # fmt: skip
    data = {p.stem: read_clip(p) for p in clips_of(folder) if not _doubtful(p)}
    lags = left_out(data)
    hit = sum(abs(lag.late) <= 1 for lag in lags.values())
    checks.append(Check(
        "real speakers: second opinion, each clip left out", hit >= LEAST_LEFT_OUT * len(lags),
        f"{hit} of {len(lags)} within a frame",
    ))  # fmt: skip
    return checks


def _doubtful(path: Path) -> bool:
    return any(part in path.name for part in DOUBTFUL)
