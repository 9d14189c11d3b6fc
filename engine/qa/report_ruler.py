"""Why a ruler may be believed: its validation, whether that is of this very ruler, and in words.

msgspec only, as the studio reads it too. Knows nothing of how faults are planted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from engine.qa.report import PRIMARY, Check, PlantedRow, Validation, Verdict

SHIPPED = Path(__file__).resolve().parents[1] / "benchmarks" / "lipsync-validation.json"
REFERENCE = "reference"
SPLITS = {  # what the clips of a row had to do with how the ruler was made
    "test": "clips and characters that chose no threshold",
    "mixed": "either the clip or its character chose thresholds",
    "tune": "clips and characters on which thresholds were chosen",
}
FAULTS = {
    REFERENCE: "nothing: the true phones", "frozen shut": "mouth frozen shut",
    "frozen open": "mouth frozen open", "another clip": "another clip's mouth",
    "sine 4 Hz": "opens and shuts 4 times a second", "jitter": "each phone 2 frames off at random",
    "loudness only": "opening follows loudness alone",
}  # fmt: skip
HOW = "avatar-qa validate --out FOLDER"


class Standing(StrEnum):
    SAME = "this very ruler"
    CLIPS = "this ruler on other clips"
    OTHER = "another ruler"
    NONE = "not checked"


class Ruler(msgspec.Struct, frozen=True):
    """A validation, and how it stands to the run at hand; `source` is its file."""

    standing: Standing
    source: str = ""
    validation: Validation | None = None

    @property
    def measures(self) -> bool:
        return self.validation is not None and self.validation.passed

    @property
    def said(self) -> str:
        """How it stands, as one sentence."""
        if self.standing is Standing.NONE or self.validation is None:
            return f"This ruler was not checked: {HOW} plants faults and says whether it finds them"
        return {
            Standing.SAME: "Measured with this very ruler",
            Standing.CLIPS: "Measured with this very ruler on the set that ships with it; this "
            "run has other clips",
        }.get(
            self.standing,
            f"Measured with another ruler ({self.validation.scorer}): only a guide to this "
            f"one. {HOW} checks it",
        )  # fmt: skip


def read_validation(path: Path) -> Validation | None:
    """None where there is none, or it is damaged or of another format."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Validation)
    except (OSError, msgspec.DecodeError):
        return None


def choose(places: Sequence[Path], same: Sequence[str], code: Sequence[str] = ()) -> Ruler:
    """The best of the files: one of a scorer in `same`, else one in `code` (the same code and
    models on another set), else the first that can be read."""
    found = [(p, v) for p in places if (v := read_validation(p)) is not None]
    for standing, scorers in ((Standing.SAME, same), (Standing.CLIPS, code)):
        for path, validation in found:
            if validation.scorer in scorers:
                return Ruler(standing, str(path), validation)
    if found:
        return Ruler(Standing.OTHER, str(found[0][0]), found[0][1])
    return Ruler(Standing.NONE)


def headline(validation: Validation) -> str:
    """Whether it measures, in one sentence; checks that decide, and only those."""
    needed = [check for check in validation.checks if check.required]
    good = sum(check.passed for check in needed)
    if good == len(needed):
        return f"The ruler measures: it passes all of {len(needed)} checks."
    return f"The ruler falls short in {len(needed) - good} of {len(needed)} checks."


def circumstances(validation: Validation) -> str:
    """What was planted in what."""
    rows = [row for row in validation.rows if row.fault == REFERENCE]
    clips = sum(row.clips for row in rows)
    faults = len({row.fault for row in validation.rows} - {REFERENCE})
    heads = " and ".join(sorted({row.heads for row in validation.rows}))
    quick = "quick look: " if validation.quick else ""
    return (
        f"{quick}{faults} faults planted in {clips} clips, heads {heads or 'unknown'}; "
        f"scorer {validation.scorer}"
    )


def splits(validation: Validation) -> list[tuple[str, list[PlantedRow]]]:
    """(split, its rows), those that decide first."""
    order = [*SPLITS, *sorted({row.split for row in validation.rows} - SPLITS.keys())]
    groups = [(s, [r for r in validation.rows if r.split == s]) for s in order]
    return [(split, rows) for split, rows in groups if rows]


def fault_words(fault: str) -> str:
    """A planted fault as a tester would say it."""
    if late := re.fullmatch(r"late ([+-])(\d+)", fault):
        count = int(late[2])
        frames = "1 frame" if count == 1 else f"{count} frames"
        return f"mouth {frames} {'late' if late[1] == '+' else 'early'}"
    if share := re.fullmatch(r"(swap|amplitude) (\d+ %)", fault):
        said = {"swap": "of the phones take a wrong shape", "amplitude": "of the opening is left"}
        return f"{share[2]} {said[share[1]]}"
    if smooth := re.fullmatch(r"smoothing (\d+ ms)", fault):
        return f"movements smoothed over {smooth[1]}"
    return FAULTS.get(fault, fault)


def found_words(row: PlantedRow) -> tuple[str, str]:
    """(offset found, in how many clips within a frame); dashes where none can be found."""
    if row.planted_late is None or row.offset_median is None:
        return "–", "–"
    return f"{row.offset_median:+.2f}", f"{row.offset_within_1} of {row.clips}"


def planted_words(row: PlantedRow) -> str:
    if row.planted_late is None:
        return "–"
    return f"{row.planted_late:+g}" if row.planted_late else "0"


def is_right(row: PlantedRow) -> bool:
    """The reference must be no worse than itself, every fault worse."""
    return row.verdict is (Verdict.SAME if row.fault == REFERENCE else Verdict.WORSE)


def verdict_words(row: PlantedRow) -> str:
    """What the ruler said of it; "worse" is right for every fault."""
    if row.fault == REFERENCE:
        return "no worse" if is_right(row) else f"missed: {row.verdict}"
    return "worse" if is_right(row) else f"missed: {row.verdict}"


def mean_headline(row: PlantedRow) -> float | None:
    return row.means.get(PRIMARY)


def short_of(checks: Sequence[Check]) -> list[Check]:
    """Failed ones first, those that decide before the others; the order else kept."""
    return sorted(checks, key=lambda c: (c.passed, not c.required))
