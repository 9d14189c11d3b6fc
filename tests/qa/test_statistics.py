"""Intervals, families and verdicts; the same twice passes, every real loss fails."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy import stats

from engine.errors import EngineError
from engine.qa.compare import compare
from engine.qa.limits import RULES, make_score
from engine.qa.report import (
    LEAST_TO_DECIDE,
    MOST_CLIPS,
    Better,
    ClipResult,
    Score,
    Verdict,
)
from engine.qa.statistics import (
    Paired,
    bootstrap_means,
    clips_needed,
    holm,
    paired,
    rerun_band,
    sample_size,
    verdict,
)


def results(values: np.ndarray, seed: int = 0, scorer: str = "s") -> list[ClipResult]:
    return [
        ClipResult(
            f"clip{i:02d}",
            scorer,
            seed=seed,
            scores=[make_score("headline", v), make_score("r0", v + 0.05)],
        )
        for i, v in enumerate(values)
    ]


@pytest.fixture
def clips() -> np.ndarray:
    return np.random.default_rng(7).uniform(0.5, 0.9, 53)


def test_interval_is_scipys(clips):
    differences = clips - 0.65
    found = paired(differences)
    theirs = stats.bootstrap(
        (differences,), np.mean, n_resamples=10_000, method="percentile"
    ).confidence_interval
    assert found.low95 == pytest.approx(theirs.low, abs=0.002)
    assert found.high95 == pytest.approx(theirs.high, abs=0.002)
    sem = differences.std(ddof=1) / np.sqrt(53)
    assert found.high90 - found.low90 == pytest.approx(2 * 1.645 * sem, rel=0.05)


def test_seeded(clips):
    assert (bootstrap_means(clips) == bootstrap_means(clips)).all()
    assert not (bootstrap_means(clips) == bootstrap_means(clips, seed=2)).all()


def test_coverage_of_the_interval():
    rng = np.random.default_rng(11)
    inside = [(p := paired(rng.normal(0, 1, 30))).low95 <= 0 <= p.high95 for _ in range(200)]
    assert 0.88 <= np.mean(inside) <= 0.98


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_band_is_of_means():
    assert rerun_band(np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 2.0]])) == pytest.approx(1.0)
    assert rerun_band(np.array([[1.0, 2.0]])) == 0.0


def test_the_same_twice_passes(clips):
    found = compare(results(clips), results(clips))
    assert found.verdict is Verdict.SAME and found.exit_status == 0
    assert all(d.mean == d.low95 == d.high95 == 0 for d in found.differences)


def test_a_small_change_is_the_same_and_a_large_one_is_worse(clips):
    noise = np.random.default_rng(1).normal(0, 0.03, 53)
    assert compare(results(clips), results(clips + noise - 0.01)).verdict is Verdict.SAME
    worse = compare(results(clips), results(clips + noise - 0.15))
    assert worse.verdict is Verdict.WORSE and worse.exit_status == 1
    assert worse.words.startswith("worse: headline -0.1") and "worse in r0" in worse.words
    assert compare(results(clips), results(clips + noise + 0.15)).verdict is Verdict.BETTER


def test_few_noisy_clips_are_undecided_and_say_how_many_would_do(clips):
    few = clips[:8]
    change = np.array([-0.15, 0.12, -0.2, 0.1, 0.08, -0.16, 0.06, -0.09])  # mean -0.03, sd 0.13
    found = compare(results(few), results(few + change))
    first = found.differences[0]
    assert found.verdict is Verdict.UNDECIDED and found.exit_status == 1
    assert first.clips_needed > 8 and f"{first.clips_needed} clips" in found.words


def pilot(n: int, mean: float, sd: float) -> Paired:
    return Paired(n, mean, 0, 0, 0, 0, 1, 1, sd)


@pytest.mark.parametrize("ratio", [0.3, 0.5, 1.0, 2.0, 4.0])
def test_sample_size_has_the_power_that_it_says(ratio):
    """Against the exact power of a one-sided t test: noncentral t, not our approximation."""

    def power(n: int) -> float:
        return float(stats.nct.sf(stats.t.ppf(0.95, n - 1), n - 1, np.sqrt(n) / ratio))

    n = sample_size(ratio, 1.0)
    exact = next(k for k in range(2, 1_000) if power(k) >= 0.9)
    assert abs(n - exact) <= (1 if ratio >= 1 else 2)  # the closed form; tiny n are its weak side


def test_clips_needed_of_both_ways():
    assert clips_needed(pilot(20, 0.0, 0.1), 0.05) == 36  # ((1.645 + 1.282) * 2)^2 + 1.353
    # A loss of half the margin: each way has 0.025 to tell.
    assert clips_needed(pilot(20, -0.025, 0.1), 0.05) == 139
    # Twice the margin is lost: only "worse" is open, and it has 0.1 to tell.
    assert clips_needed(pilot(9, -0.1, 0.2), 0.05) == 36
    # A gain is not counted on: as if both were equal.
    assert clips_needed(pilot(20, 0.2, 0.1), 0.05) == 36
    assert clips_needed(pilot(40, 0.0, 0.1), 0.05) == 41, "at least one more"
    # The loss is all of the margin, and within the rerun band: no number decides.
    assert clips_needed(pilot(20, -0.05, 0.1), 0.05, band=0.06) == MOST_CLIPS
    assert clips_needed(pilot(20, -0.08, 0.1), 0.05, band=0.09) == MOST_CLIPS
    assert clips_needed(pilot(9, -0.08, 0.1), 0.05, band=0.01) == sample_size(0.1, 0.08) == 15


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_below_five_clips_nothing_is_decided_and_five_are_asked_for(clips, n):
    assert clips_needed(pilot(n, -0.3, 0.0), 0.05) == LEAST_TO_DECIDE == 5
    found = compare(results(clips[:n]), results(clips[:n] - 0.3))
    assert found.verdict is Verdict.UNDECIDED
    assert all(d.clips_needed == 5 for d in found.differences)
    assert found.words.endswith("at least 5 clips are needed")
    assert compare(results(clips[:5]), results(clips[:5] - 0.3)).verdict is Verdict.WORSE
    three = compare(results(clips[:3]), results(clips[:3] - 0.3), least=3)
    assert three.verdict is Verdict.WORSE, "planted faults are judged on three"


def test_clips_needed_are_enough():
    """With that many clips nine of ten experiments with equal truth pass."""
    n = clips_needed(pilot(20, 0.0, 0.1), 0.05)
    rng = np.random.default_rng(4)
    passed = [
        verdict(p := paired(rng.normal(0, 0.1, n)), 0.05, 0.0, p.p_worse, p.p_better)
        in (Verdict.SAME, Verdict.BETTER)
        for _ in range(60)
    ]
    assert np.mean(passed) >= 0.8


def test_a_loss_within_the_rerun_band_is_not_called_worse(clips):
    a = [r for s, shift in enumerate((0.0, 0.12, -0.08)) for r in results(clips + shift, s)]
    b = results(clips - 0.1)
    found = compare(a, b)
    assert found.differences[0].band == pytest.approx(0.2)
    assert found.verdict is Verdict.UNDECIDED


def with_dynamics(found: list[ClipResult], value: float) -> list[ClipResult]:
    score = make_score("dynamics", value)
    return [msgspec.structs.replace(r, scores=[*r.scores, score]) for r in found]


@pytest.mark.parametrize(("wide", "usual", "said"), [(1.3, 1.0, "no worse"), (1.3, 0.8, "worse")])
def test_opening_beyond_the_full_range_is_no_gain(clips, wide, usual, said):
    """A that shouts every vowel does not make B worse, unless B lacks range itself."""
    a, b = with_dynamics(results(clips), wide), with_dynamics(results(clips), usual)
    found = next(d for d in compare(a, b).differences if d.name == "dynamics")
    assert found.verdict is (Verdict.SAME if said == "no worse" else Verdict.WORSE)


def test_different_scorers_are_refused(clips):
    with pytest.raises(EngineError, match="2 different scorers"):
        compare(results(clips), results(clips, scorer="t"))
    with pytest.raises(EngineError, match="no scored clip in common"):
        compare(results(clips), [])


def test_a_clip_that_breaks_makes_b_worse(clips):
    b = results(clips)
    b[3] = ClipResult("clip03", "s", failed="no face")
    found = compare(results(clips), b)
    assert found.verdict is Verdict.WORSE and found.failed == ["clip03: no face"]
    assert compare(b, b).verdict is Verdict.SAME  # broken in both: nothing new


def test_scores_know_their_direction():
    offset = make_score("offset", -1.0)
    assert offset.passed and offset.badness == 0.0
    assert make_score("offset", 1.5).badness == pytest.approx(1.0)
    assert make_score("r0", 0.7).badness == -0.7
    assert make_score("rest_jitter", 0.2).passed is False
    skipped = make_score("r0", None, 0, "no transcript")
    assert skipped.passed is None and skipped.badness is None
    assert all(rule.says and rule.better in Better for rule in RULES.values())


def test_results_survive_json(clips):
    result = results(clips[:1])[0]
    again = msgspec.json.decode(msgspec.json.encode(result), type=ClipResult)
    assert again == result and isinstance(again.scores[0], Score)
