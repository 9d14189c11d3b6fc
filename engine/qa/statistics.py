"""Is B worse than A by more than chance? The clip is the unit, never the frame.

Paired bootstrap over clips, equivalence by two one-sided tests (of which the lower alone decides
"no worse": being better is no fault), Holm over a family, and how many clips would decide. Pure
arrays; differences have + = B better. Below about 20 clips a percentile bootstrap is too sure of
itself: such verdicts are first looks, and below 5 there are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from statistics import NormalDist

import numpy as np

from engine.qa.report import LEAST_TO_DECIDE, MOST_CLIPS, Verdict

DRAWS = 10_000
SEED = 20_240_601
ALPHA = 0.05
POWER = 0.90  # of the number of clips that would decide
LEAST_CLIPS = 3  # of a planted fault, where both the loss and its cause are known


@dataclass(frozen=True, slots=True)
class Paired:
    """Mean difference over n clips, its 95 % and 90 % intervals, the one-sided p that B is not
    worse, and the standard deviation over clips."""

    n: int
    mean: float
    low95: float
    high95: float
    low90: float
    high90: float
    p_worse: float
    p_better: float
    sd: float


def bootstrap_means(differences: np.ndarray, seed: int = SEED) -> np.ndarray:
    """[DRAWS] means of clips drawn with replacement."""
    rng = np.random.default_rng(seed)
    n = len(differences)
    # Counts instead of indices: the same draws in a tenth of the memory traffic.
    counts = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
    return counts @ differences / n


def paired(differences: np.ndarray, seed: int = SEED) -> Paired:
    """[n] differences, one a clip."""
    means = bootstrap_means(differences, seed)
    low95, low90, high90, high95 = np.quantile(means, (0.025, 0.05, 0.95, 0.975))
    # The smallest p that DRAWS can tell is 1 / (DRAWS + 1), never 0.
    worse = (1 + int((means >= 0).sum())) / (DRAWS + 1)
    better = (1 + int((means <= 0).sum())) / (DRAWS + 1)
    sd = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    return Paired(
        len(differences), float(differences.mean()), float(low95), float(high95), float(low90),
        float(high90), worse, better, sd,
    )  # fmt: skip


def holm(p_values: list[float]) -> list[float]:
    """Adjusted p of each test of a family, in the order given (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


def rerun_band(by_seed: np.ndarray) -> float:
    """Largest minus smallest mean over clips, of [seeds, clips]; 0 of one seed."""
    means = by_seed.mean(1)
    return float(means.max() - means.min()) if len(means) > 1 else 0.0


def verdict(
    result: Paired, margin: float, band: float, p_worse: float, p_better: float,
    least: int = LEAST_TO_DECIDE,
) -> Verdict:  # fmt: skip
    """`p_*` after Holm. Inside the margin wins over a difference that is certain but tiny."""
    if result.n < least:
        return Verdict.UNDECIDED
    if result.low90 > -margin:
        real_gain = p_better < ALPHA and result.mean > max(band, margin)
        return Verdict.BETTER if real_gain else Verdict.SAME
    if p_worse < ALPHA and result.mean < 0 and abs(result.mean) > band:
        return Verdict.WORSE
    return Verdict.UNDECIDED


def clips_needed(result: Paired, margin: float, band: float = 0.0) -> int:
    """Clips like these that would decide with a chance of 90 %, if mean and spread stay.

    Below LEAST_TO_DECIDE clips their spread says nothing: then that many. Two ways lead to a
    verdict: "no worse" must tell the mean from -margin, "worse" must tell it from 0 and needs a
    loss beyond the rerun band. Where neither is open, MOST_CLIPS. One-sided t tests at 5 %.
    """
    if result.n < LEAST_TO_DECIDE:
        return LEAST_TO_DECIDE
    loss = max(0.0, -result.mean)
    sizes = [margin - loss, loss if loss > band else 0.0]
    needed = min((sample_size(result.sd, size) for size in sizes), default=MOST_CLIPS)
    return min(MOST_CLIPS, max(result.n + 1, needed))


def sample_size(sd: float, size: float) -> int:
    """Pairs with which a one-sided t test at ALPHA finds a mean of `size` with POWER.

    ((z_alpha + z_power) sd / size)^2 + z_alpha^2 / 2: the last term pays for a spread that is
    itself measured (Guenther 1981). MOST_CLIPS where there is nothing to find.
    """
    if size <= 1e-9:
        return MOST_CLIPS
    z_alpha, z_power = NormalDist().inv_cdf(1 - ALPHA), NormalDist().inv_cdf(POWER)
    return min(MOST_CLIPS, ceil(((z_alpha + z_power) * sd / size) ** 2 + z_alpha**2 / 2))
