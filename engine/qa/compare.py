"""Two configurations on the same clips: a verdict in words, per score and in all.

Takes results as they lie on disk; refuses those of different scorers. Knows nothing of files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from engine.errors import EngineError
from engine.qa.headline import FULL_RANGE
from engine.qa.report import (
    HOLM,
    LEAST_TO_DECIDE,
    PRIMARY,
    ClipResult,
    Comparison,
    Difference,
    Verdict,
)
from engine.qa.statistics import Paired, clips_needed, holm, paired, rerun_band, verdict

# Margins where a set names none; the set's own win. In the score's unit.
MARGINS: dict[str, float] = {
    "headline": 0.05, "offset": 0.5, "r0": 0.05, "confidence": 0.05, "ridge_r0": 0.05,
    "bilabial": 0.05, "open_vowels": 0.05, "rounding": 0.02, "dynamics": 0.08, "pause_shut": 0.02,
}  # fmt: skip
# Badness of the best there is: a mouth that opens wider than its face's full opening is no better
# for it. Without this a system that shouts every vowel made one that does not "worse in dynamics".
BEST: dict[str, float] = {"dynamics": -FULL_RANGE}
MOST_WORST = 10
Badness = dict[str, dict[int, float]]  # clip -> seed -> badness


def compare(
    a: Sequence[ClipResult], b: Sequence[ClipResult], margins: Mapping[str, float] | None = None,
    least: int = LEAST_TO_DECIDE,
) -> Comparison:  # fmt: skip
    """Is B no worse than A? Several seeds of a clip are averaged and give the rerun band.

    Fewer than `least` clips decide nothing, unless B fails to give one that A has.

    Raises EngineError("bad_input") for results of different scorers or without a common clip.
    """
    scorer = _one_scorer(a, b)
    limits = {**MARGINS, **(margins or {})}
    failed = sorted({f"{r.clip}: {r.failed}" for r in (*a, *b) if r.failed})
    names = [PRIMARY, *HOLM]
    pairs = {name: _differences(a, b, name) for name in names}
    if not len(pairs[PRIMARY][1]):
        raise EngineError(
            "bad_input", "A and B have no scored clip in common", "run both on the same set"
        )
    found = {n: paired(values) for n, (_, values, _) in pairs.items() if len(values)}
    family = [n for n in HOLM if n in found]
    worse = dict(zip(family, holm([found[n].p_worse for n in family]), strict=True))
    better = dict(zip(family, holm([found[n].p_better for n in family]), strict=True))
    differences = [
        _difference(
            n, pairs[n], found[n], limits[n],
            worse.get(n, found[n].p_worse), better.get(n, found[n].p_better), least,
        )
        for n in names if n in found
    ]  # fmt: skip
    broken = [line for line in failed if _only_in(b, a, line)]
    total = Verdict.WORSE if broken else differences[0].verdict
    words = _words(differences, broken)
    label = next((r.configuration for r in a), ""), next((r.configuration for r in b), "")
    return Comparison(*label, scorer, total, words, differences, failed)


def _one_scorer(a: Sequence[ClipResult], b: Sequence[ClipResult]) -> str:
    scorers = sorted({r.scorer for r in (*a, *b)})
    if len(scorers) != 1:
        raise EngineError(
            "bad_input",
            f"the results come from {len(scorers)} different scorers ({', '.join(scorers)})",
            "score both again with one version of the tool and the set",
        )
    return scorers[0]


def _only_in(b: Sequence[ClipResult], a: Sequence[ClipResult], line: str) -> bool:
    """A clip that failed in B and was scored in A."""
    clip = line.split(": ", 1)[0]
    return any(r.failed and r.clip == clip for r in b) and any(
        not r.failed and r.clip == clip for r in a
    )


def _table(results: Sequence[ClipResult], name: str) -> Badness:
    table: Badness = defaultdict(dict)
    for result in results:
        score = result.score(name)
        if score is not None and score.badness is not None:
            table[result.clip][result.seed] = max(score.badness, BEST.get(name, -np.inf))
    return table


def _differences(
    a: Sequence[ClipResult], b: Sequence[ClipResult], name: str
) -> tuple[list[str], np.ndarray, float]:
    """(clips, [n] differences with + = B better, rerun band)."""
    of_a, of_b = _table(a, name), _table(b, name)
    clips = sorted(of_a.keys() & of_b.keys())
    values = [
        float(np.mean(list(of_a[c].values())) - np.mean(list(of_b[c].values()))) for c in clips
    ]
    band = max((_band(of_a, clips), _band(of_b, clips)), default=0.0)
    return clips, np.array(values), band


def _band(table: Badness, clips: list[str]) -> float:
    seeds = sorted({s for c in clips for s in table[c]})
    full = [[table[c][s] for c in clips] for s in seeds if all(s in table[c] for c in clips)]
    return rerun_band(np.array(full)) if len(full) > 1 and clips else 0.0


def _difference(
    name: str, pair: tuple[list[str], np.ndarray, float], found: Paired, margin: float,
    p_worse: float, p_better: float, least: int,
) -> Difference:  # fmt: skip
    clips, values, band = pair
    said = verdict(found, margin, band, p_worse, p_better, least)
    order = np.argsort(values, kind="stable")
    return Difference(
        name, found.n, found.mean, found.low95, found.high95, found.low90, found.high90, margin,
        band, p_worse, said, clips_needed(found, margin, band) if said is Verdict.UNDECIDED else 0,
        [clips[i] for i in order[:MOST_WORST] if values[i] < 0],
    )  # fmt: skip


def _words(differences: list[Difference], broken: list[str]) -> str:
    first = differences[0]
    text = (
        f"{first.name} {first.mean:+.3f} on {first.clips} clips "
        f"(95 % {first.low95:+.3f} to {first.high95:+.3f}, margin {first.margin:g}, "
        f"rerun band {first.band:.3f})"
    )
    if broken:
        return f"worse: {len(broken)} clips that A has could not be scored; {text}"
    said = f"{first.verdict.value}: {text}"
    if first.verdict is Verdict.UNDECIDED:
        said += f"; {first.to_decide}"
    worse = [d.name for d in differences[1:] if d.verdict is Verdict.WORSE]
    return f"{said}; worse in {', '.join(worse)}" if worse else said
