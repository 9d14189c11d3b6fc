"""How the headline's powers were chosen: `python -m engine.qa.headline_choice FOLDER`.

FOLDER holds planted results as `avatar-qa validate --out` writes them. Only clips of the `tune`
split are read. Of all products of the four parts with powers 0, 1/2 and 1 the best is the one that
drops by more than the margin for most planted faults, the worst fault first. Many tie; of those
the one is kept that needs all four parts, at the lowest powers: each of them exposes a fault that
the others could miss on other faces.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import msgspec
import numpy as np

from engine.motion.phone_track import Phone
from engine.qa.compare import MARGINS
from engine.qa.headline import POWERS, borne_fit, headline
from engine.qa.judge import REFERENCE, by_fault
from engine.qa.mouth_scores import spoken
from engine.qa.offset import curve
from engine.qa.report import ClipResult

NAMES = tuple(POWERS)
Row = tuple[dict[str, float], float, float, float]  # powers, worst fault's share, mean share, ref


def value(result: ClipResult, powers: dict[str, float]) -> float:
    """The headline of a result with other powers, from its tracks and scores."""
    if result.tracks is None:
        return 0.0
    phones = [Phone(p.name, p.start_s, p.end_s) for p in result.phones]
    part = spoken(phones, len(result.tracks.seen))
    seen, wanted = np.array(result.tracks.seen)[part], np.array(result.tracks.expected)[part]
    return headline(
        borne_fit(curve(seen, wanted)), result.value("bilabial"), result.value("open_vowels"),
        result.value("dynamics") or 0.0, powers,
    )  # fmt: skip


def judged(results: Sequence[ClipResult], powers: dict[str, float]) -> Row:
    """Shares of clips that drop by more than the margin: of the worst fault, and over faults."""
    table = by_fault(results, "tune")
    best = {r.clip: value(r, powers) for r in table[REFERENCE]}
    shares = [
        float(np.mean([best[r.clip] - value(r, powers) > MARGINS["headline"] for r in rows]))
        for fault, rows in table.items()
        if fault != REFERENCE
    ]
    return powers, min(shares), float(np.mean(shares)), float(np.mean(list(best.values())))


def ranking(results: Sequence[ClipResult]) -> list[Row]:
    """Best first; equal ones by the reference's own headline, which should stay high."""
    choices = (dict(zip(NAMES, p, strict=True)) for p in product((0.0, 0.5, 1.0), repeat=4))
    rows = [judged(results, powers) for powers in choices]
    return sorted(rows, key=lambda row: (row[1], row[2], row[3]), reverse=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(argv).folder
    files = sorted(folder.rglob("*.json"))
    results = [msgspec.json.decode(path.read_bytes(), type=ClipResult) for path in files]
    for powers, worst, mean, reference in ranking(results)[:12]:
        mark = "*" if powers == dict(POWERS) else " "
        shown = " ".join(f"{name} {power:g}" for name, power in powers.items())
        print(f"{mark} {shown}: worst {worst:.2f} mean {mean:.3f} ref {reference:.2f}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
