"""`compare` against a second implementation, written from the definitions and with scipy.

Holm as the closure of Bonferroni, non-inferiority as a t test against -margin, the rerun band as
three means by hand, the paired differences as loops over dictionaries.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from engine.qa.compare import MARGINS, compare
from engine.qa.limits import RULES, make_score
from engine.qa.report import HOLM, PRIMARY, Better, ClipResult, Verdict
from engine.qa.statistics import holm, paired, verdict

CLIPS, SEEDS = 24, (1, 2, 3)
SHIFTS = {  # what B loses (-) or gains (+) of each score, in its margin
    "headline": 0.0, "r0": -3.0, "confidence": 0.1, "offset": -2.5, "ridge_r0": -0.9,
    "bilabial": -1.5, "open_vowels": 2.0, "rounding": 0.0, "dynamics": -0.4, "pause_shut": -0.2,
}  # fmt: skip


def run_of(shifts: dict[str, float], seed: int) -> list[ClipResult]:
    """Three seeds of 24 clips; every score near 0.5 (offset near 1.5 late), shifted in margins."""
    rng = np.random.default_rng(seed)
    own = {name: np.random.default_rng(len(name)).uniform(0.4, 0.6, CLIPS) for name in shifts}
    found = []
    for clip in range(CLIPS):
        for s in SEEDS:
            values = {
                name: own[name][clip] + shift * MARGINS[name] + rng.normal(0, 0.8 * MARGINS[name])
                for name, shift in shifts.items()
            }
            values["ridge_r0"] += (s - 2) * MARGINS["ridge_r0"]  # reruns differ by two margins
            values["offset"] = 1.5 + (values["offset"] - 0.5) * -1  # a loss is later
            scores = [make_score(name, value) for name, value in values.items()]
            found.append(ClipResult(f"c{clip:02d}", "s", seed=s, scores=scores))
    return found


@pytest.fixture(scope="module")
def runs() -> tuple[list[ClipResult], list[ClipResult]]:
    return run_of(dict.fromkeys(SHIFTS, 0.0), 5), run_of(SHIFTS, 6)


def goodness(result: ClipResult, name: str) -> float:
    """Higher is better, from the value and the rule, without `Score.badness`."""
    value, rule = result.value(name), RULES[name]
    assert value is not None
    if rule.better is Better.HIGHER:
        return value
    low, high = rule.low, rule.high
    assert rule.better is Better.INSIDE and low is not None and high is not None
    return -abs(value - float(np.clip(value, low, high)))


def by_clip_and_seed(results: list[ClipResult], name: str) -> np.ndarray:
    """[clips, seeds]."""
    table = np.full((CLIPS, len(SEEDS)), np.nan)
    for r in results:
        table[int(r.clip[1:]), SEEDS.index(r.seed)] = goodness(r, name)
    return table


def closed_holm(p: list[float]) -> list[float]:
    """Adjusted p by closed testing: the largest Bonferroni p of every family that holds it."""
    found = [0.0] * len(p)
    for size in range(1, len(p) + 1):
        for family in combinations(range(len(p)), size):
            together = min(1.0, size * min(p[i] for i in family))
            for i in family:
                found[i] = max(found[i], together)
    return found


def test_holm_is_the_closure_of_bonferroni():
    rng = np.random.default_rng(2)
    for _ in range(20):
        p = [float(v) for v in rng.uniform(0, 1, 7) ** 3]
        assert holm(p) == pytest.approx(closed_holm(p))
    assert holm([0.02, 0.02, 0.02]) == pytest.approx(closed_holm([0.02] * 3))  # ties


def test_differences_intervals_and_bands(runs):
    a, b = runs
    found = {d.name: d for d in compare(a, b).differences}
    assert list(found) == [PRIMARY, *HOLM]
    for name, d in found.items():
        of_a, of_b = by_clip_and_seed(a, name), by_clip_and_seed(b, name)
        per_clip = of_b.mean(1) - of_a.mean(1)
        assert d.clips == CLIPS and d.mean == pytest.approx(per_clip.mean(), abs=1e-9)
        bands = [max(t[:, s].mean() for s in range(3)) - min(t[:, s].mean() for s in range(3))
                 for t in (of_a, of_b)]  # fmt: skip
        assert d.band == pytest.approx(max(bands), abs=1e-9) and d.band > 0
        theirs = stats.bootstrap(
            (per_clip,), np.mean, n_resamples=20_000, method="percentile", rng=1
        ).confidence_interval
        near = 0.06 * MARGINS[name]
        assert d.low95 == pytest.approx(theirs.low, abs=near)
        assert d.high95 == pytest.approx(theirs.high, abs=near)
        assert d.margin == MARGINS[name]


def test_verdicts_by_t_tests_and_closed_testing(runs):
    """The t test's p differ from the bootstrap's; at these sizes the verdicts may not."""
    a, b = runs
    found = {d.name: d for d in compare(a, b).differences}
    change = {n: by_clip_and_seed(b, n).mean(1) - by_clip_and_seed(a, n).mean(1) for n in SHIFTS}
    less = [float(stats.ttest_1samp(change[n], 0, alternative="less").pvalue) for n in HOLM]
    more = [float(stats.ttest_1samp(change[n], 0, alternative="greater").pvalue) for n in HOLM]
    worse = dict(zip(HOLM, closed_holm(less), strict=True))
    better = dict(zip(HOLM, closed_holm(more), strict=True))
    expected = {}
    for name in HOLM:
        x, margin, band = change[name], MARGINS[name], found[name].band
        no_worse = stats.ttest_1samp(x, -margin, alternative="greater").pvalue < 0.05
        if no_worse:
            gain = better[name] < 0.05 and x.mean() > max(margin, band)
            expected[name] = Verdict.BETTER if gain else Verdict.SAME
        elif worse[name] < 0.05 and -x.mean() > band:
            expected[name] = Verdict.WORSE
        else:
            expected[name] = Verdict.UNDECIDED
    assert {n: found[n].verdict for n in HOLM} == expected
    assert set(expected.values()) == set(Verdict), "the case must show every verdict"


@pytest.mark.parametrize("mean", [-0.09, -0.05, -0.03, 0.0, 0.03, 0.09])
def test_both_halves_of_tost(mean):
    """The 90 % interval lies inside +-margin where both one-sided t tests at 5 % reject."""
    x = np.random.default_rng(8).normal(0, 0.06, 60)
    x = x - x.mean() + mean
    found, margin = paired(x), 0.05
    lower = stats.ttest_1samp(x, -margin, alternative="greater").pvalue < 0.05
    upper = stats.ttest_1samp(x, margin, alternative="less").pvalue < 0.05
    assert (found.low90 > -margin) == lower
    assert (found.high90 < margin) == upper
    said = verdict(found, margin, 0.0, found.p_worse, found.p_better)
    assert (said in (Verdict.SAME, Verdict.BETTER)) == lower
    assert (said is Verdict.BETTER) == (mean > margin)
