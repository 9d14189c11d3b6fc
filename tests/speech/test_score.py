"""The ruler itself, against examples worked out by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.speech.classes import CLOSED, LABIO, NARROW, OPEN, REST, lip_classes, lip_posteriors
from engine.speech.encoded import PHONE_INDEX, PHONES
from engine.speech.score import Marked, kappa, lag_ms, score, true_classes

F = 1 / 24
# 12 frames: rest x3, closed x2, open x3, labio x1, rest x3
PHONES_SAID = [("SIL", 0, 3 * F), ("B", 3 * F, 5 * F), ("AA", 5 * F, 8 * F), ("F", 8 * F, 9 * F)]
TRUTH = np.array([REST] * 3 + [CLOSED] * 2 + [OPEN] * 3 + [LABIO] + [REST] * 3)


def changed(**frames: int) -> np.ndarray:
    row = TRUTH.copy()
    for name, lip in frames.items():
        row[int(name[1:])] = lip
    return row


def test_truth_is_sampled_at_frame_centres() -> None:
    assert np.array_equal(true_classes(PHONES_SAID, (np.arange(12) + 0.5) * F), TRUTH)


def test_a_perfect_row() -> None:
    s = score([Marked(PHONES_SAID, TRUTH)])
    assert s.accuracy == s.kappa == s.closure_recall == s.closure_precision == s.labio_recall == 1
    assert s.lag_ms == 0 and s.closures == 1 and s.labials == 1 and s.pause_open == 0


def test_one_wrong_frame_of_twelve() -> None:
    assert score([Marked(PHONES_SAID, changed(f6=NARROW))]).accuracy == pytest.approx(11 / 12)


def test_a_closure_one_frame_late_counts_two_late_does_not() -> None:
    one = np.array([REST] * 4 + [OPEN, CLOSED] + [OPEN] * 2 + [LABIO] + [REST] * 3)
    two = np.array([REST] * 3 + [OPEN] * 3 + [CLOSED, OPEN, LABIO] + [REST] * 3)
    assert score([Marked(PHONES_SAID, one)]).closure_recall == 1
    assert score([Marked(PHONES_SAID, two)]).closure_recall == 0
    assert score([Marked(PHONES_SAID, two)]).closure_precision == 0


def test_precision_counts_runs_not_frames() -> None:
    row = changed(f0=CLOSED, f10=CLOSED, f11=CLOSED)  # three runs, one of them true
    assert score([Marked(PHONES_SAID, row)]).closure_precision == pytest.approx(1 / 3)


def test_nothing_to_count_is_nan() -> None:
    s = score([Marked([("AA", 0, 1)], np.full(24, OPEN))])
    assert math.isnan(s.closure_recall) and math.isnan(s.labio_recall) and s.accuracy == 1


def test_false_openings_are_counted_away_from_speech() -> None:
    quiet = [("AA", 0, 4 * F), ("SIL", 4 * F, 24 * F)]
    row = np.array([OPEN] * 4 + [REST] * 18 + [NARROW] * 2)
    still = 24 - 4 - 2  # frames whose centre lies > 0.1 s after the vowel: 6.5, 7.5, ...
    assert score([Marked(quiet, row)]).pause_open == pytest.approx(2 / still)


@pytest.mark.parametrize("frames", [-2, 0, 1, 3])
def test_lag_finds_planted_shifts(frames: int) -> None:
    rng = np.random.default_rng(0)
    names = ["B", "AA", "T", "F", "UW"]
    edges = np.cumsum(rng.uniform(0.06, 0.2, 80))
    pairs = enumerate(itertools.pairwise(edges))
    phones = [(names[i % 5], float(a), float(b)) for i, (a, b) in pairs]
    row = true_classes(phones, (np.arange(240) + 0.5 - frames) * F)
    assert abs(lag_ms([Marked(phones, row)]) - frames * 1000 / 24) <= 6


def test_kappa_of_a_constant_is_nought() -> None:
    assert kappa(TRUTH, np.full(12, REST)) == pytest.approx(0)
    # seen .75; by chance .5 * .75 + .5 * .25 = .5; so .25 / .5
    assert kappa(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])) == pytest.approx(0.5)


def test_lip_classes_sum_phones_and_weigh_closures() -> None:
    p = np.zeros(40, np.float32)
    p[[PHONE_INDEX["P"], PHONE_INDEX["B"], PHONE_INDEX["T"]]] = 0.2, 0.2, 0.6
    assert lip_posteriors(p)[CLOSED] == pytest.approx(0.4)
    assert lip_classes(p) == NARROW and lip_classes(p, 2.0) == CLOSED
    assert (
        len(PHONES) == 40 and lip_classes(np.eye(40, dtype=np.float32)).tolist().count(CLOSED) == 3
    )
