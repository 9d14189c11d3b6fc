"""One row a configuration: scores pooled over clips, in all and per language, and the aims.

Offsets pool by the median of clips whose lips can be timed; shares by what they rest on (closures,
frames); the rest by the mean over clips. Knows nothing of single clips' limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from engine.qa.limits import RULES
from engine.qa.report import Check, ClipResult

ALL = "all"
BY_COUNT = (
    "bilabial", "bilabial_raw", "open_vowels", "false_closures", "pause_shut", "start_shut",
)  # fmt: skip
TIMED = 0.35  # confidence from which an offset is more than a guess
# The aims of the `portrait` model, from sound alone, streaming: on every language of the set.
EARLIEST, LATEST = -2.0, 0.0
LEAST_R0, LEAST_BILABIAL, LEAST_PAUSE = 0.80, 0.90, 0.99


class Pooled(msgspec.Struct, frozen=True):
    """`group` is ALL or a language; `values` by score name, `timed` clips that give the offset."""

    configuration: str
    group: str
    clips: int
    failed: int
    timed: int
    values: dict[str, float]


def pool(results: Sequence[ClipResult]) -> list[Pooled]:
    """Configurations in order of appearance, each in all and then per language."""
    rows = []
    for name in dict.fromkeys(r.configuration for r in results):
        own = [r for r in results if r.configuration == name]
        groups = sorted({r.language for r in own if r.language})
        rows.append(_row(name, ALL, own))
        rows += [_row(name, g, [r for r in own if r.language == g]) for g in groups]
    return rows


def _row(name: str, group: str, results: list[ClipResult]) -> Pooled:
    scored = [r for r in results if not r.failed]
    timed = [r for r in scored if (r.value("confidence") or 0.0) >= TIMED]
    values = {}
    for score in RULES:
        value = _pooled(score, timed if score == "offset" else scored)
        if value is not None:
            values[score] = round(value, 4)
    clips = len({r.clip for r in results})
    return Pooled(name, group, clips, len(results) - len(scored), len(timed), values)


def _pooled(name: str, results: list[ClipResult]) -> float | None:
    scores = [s for r in results if (s := r.score(name)) is not None]
    known = [(s.value, max(s.count, 1)) for s in scores if s.value is not None]
    if not known:
        return None
    values = np.array([value for value, _ in known])
    if name.endswith("offset"):
        return float(np.median(values))
    weights = [count for _, count in known] if name in BY_COUNT else None
    return float(np.average(values, weights=weights))


def aims(row: Pooled) -> list[Check]:
    """Whether a row reaches the aims; one that a group cannot show is left out."""
    checks = []
    if (offset := row.values.get("offset")) is not None:
        said = f"{offset:+.2f} frames, {EARLIEST:g} to {LATEST:g}"
        checks.append(Check("offset", EARLIEST <= offset <= LATEST, said))
    for name, least in (
        ("r0", LEAST_R0), ("bilabial", LEAST_BILABIAL), ("pause_shut", LEAST_PAUSE)
    ):  # fmt: skip
        if (value := row.values.get(name)) is not None:
            checks.append(Check(name, value >= least, f"{value:.3f}, at least {least:g}"))
    return checks
