"""Pooling by what a score rests on, and the aims."""

from __future__ import annotations

import pytest

from engine.qa.limits import make_score
from engine.qa.pooled import aims, pool
from engine.qa.report import ClipResult, Score


def clip(name: str, language: str, *scores: Score, failed: str = "") -> ClipResult:
    return ClipResult(
        name, "s", configuration="c", language=language, failed=failed, scores=list(scores)
    )


def test_pools_per_language_and_by_count():
    rows = pool([
        clip("a", "en", make_score("bilabial", 1.0, 9), make_score("r0", 0.9),
             make_score("offset", -1.0), make_score("confidence", 0.8)),
        clip("b", "en", make_score("bilabial", 0.5, 1), make_score("r0", 0.7),
             make_score("offset", -11.0), make_score("confidence", 0.1)),
        clip("c", "fr", failed="no face"),
    ])  # fmt: skip
    assert [(r.group, r.clips, r.failed, r.timed) for r in rows] == [
        ("all", 3, 1, 1), ("en", 2, 0, 1), ("fr", 1, 1, 0),
    ]  # fmt: skip
    assert rows[0].values["bilabial"] == pytest.approx(0.95)
    assert rows[0].values["r0"] == pytest.approx(0.8)
    assert rows[0].values["offset"] == -1.0  # the clip that cannot be timed has no say
    assert rows[2].values == {}


def test_aims():
    row = pool([clip("a", "en", make_score("offset", -2.4), make_score("confidence", 0.8),
                     make_score("r0", 0.81), make_score("bilabial", 0.95, 5))])[0]  # fmt: skip
    assert {c.name: c.passed for c in aims(row)} == {"offset": False, "r0": True, "bilabial": True}
