"""Hits, rounding, pauses and steadiness against mouths whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from engine.motion.phone_track import Phone
from engine.qa.closures import bilabial_hits, false_closures, frame_span, open_hits
from engine.qa.expected import frame_times
from engine.qa.headline import borne_fit, headline
from engine.qa.mouth_scores import (
    dynamics,
    jitter,
    jump,
    pauses_shut,
    rest_frames,
    rounding,
    spoken,
)

# A syllable every 12 frames: closure of 2, open vowel of 4, the rest half open.
PHONES = [
    phone
    for i in range(8)
    for phone in (
        Phone("IH", i / 2, i / 2 + 0.125),
        Phone("B", i / 2 + 0.125, i / 2 + 5 / 24),
        Phone("AA", i / 2 + 5 / 24, i / 2 + 9 / 24),
        Phone("T", i / 2 + 9 / 24, i / 2 + 0.5),
    )
]
FRAMES = 96
SPEAKING = np.tile([0.4] * 3 + [0.0] * 2 + [0.9] * 4 + [0.4] * 3, 8).astype(float)


def test_frames_of_a_phone():
    assert frame_span(Phone("B", 0.125, 5 / 24), 0, FRAMES) == slice(3, 5)
    assert frame_span(Phone("B", 0.125, 5 / 24), 1, FRAMES) == slice(2, 6)
    assert frame_span(Phone("B", 3.99, 9.0), 1, FRAMES) == slice(94, 96)
    assert frame_span(Phone("B", 9.0, 9.1), 1, FRAMES) == slice(95, 96)


def test_perfect_shut_and_open_mouths():
    good, shut = bilabial_hits(SPEAKING, PHONES), bilabial_hits(np.zeros(FRAMES), PHONES)
    wide = bilabial_hits(np.ones(FRAMES), PHONES)
    assert good is not None and shut is not None and wide is not None
    assert (good.share, good.count) == (1.0, 8) and good.corrected == pytest.approx(1.0)
    assert shut.share == 1.0 and shut.corrected is None
    assert wide.share == 0.0 and wide.corrected == 0.0


def test_chance_is_the_mean_over_shifts():
    """Period 12, spans of 4 frames, closures of 2: 5 of 12 shifts hit. The shifts are 12 to 84:
    six full periods and one more shift, a hit: (6 x 5 + 1) / 73."""
    good = bilabial_hits(SPEAKING, PHONES)
    assert good is not None and good.chance == pytest.approx(31 / 73)


def test_random_mouths_score_nothing_on_average():
    rng = np.random.default_rng(1)
    values = [bilabial_hits(rng.random(FRAMES), PHONES) for _ in range(200)]
    corrected = [v.corrected for v in values if v and v.corrected is not None]
    assert len(corrected) > 150
    assert abs(np.mean(corrected)) < 0.1


def test_a_mouth_that_is_nearly_always_shut_tells_nothing_of_closures():
    """One missed closure of eight where 12 of 13 windows are shut: no room, no number."""
    mostly = np.zeros(FRAMES)
    mostly[frame_span(PHONES[1], 1, FRAMES)] = 1.0
    hit = bilabial_hits(mostly, PHONES)
    assert hit is not None and hit.share < 1 and hit.corrected is None


def test_vowels_and_false_closures():
    opened = open_hits(SPEAKING, PHONES)
    assert opened is not None and opened.share == 1.0
    assert false_closures(SPEAKING, PHONES) == (0.0, 8)
    assert false_closures(np.zeros(FRAMES), PHONES) == (1.0, 8)
    assert open_hits(SPEAKING, [Phone("B", 0, 1)]) is None
    assert bilabial_hits(SPEAKING, [Phone("AA", 0, 1)]) is None


def test_rounding_is_a_difference_of_widths():
    phones = [Phone("IY", 0, 0.5), Phone("UW", 0.5, 1.0)]
    width = np.r_[np.full(12, 0.6), np.full(12, 0.45)]
    assert rounding(width, phones) == (pytest.approx(0.15), 1)
    assert rounding(width, phones[:1]) is None


def test_dynamics_takes_speech_alone():
    opening = np.r_[np.linspace(0, 1, 101), np.zeros(200)]
    phones = [Phone("AA", 0, 101 / 24), Phone("SIL", 101 / 24, 301 / 24)]
    found = dynamics(opening, phones)
    assert found is not None and found == (pytest.approx(0.9, abs=0.01), 101)
    assert dynamics(opening[:5], phones) is None


def test_pauses_are_scored_apart_from_the_start():
    phones = [Phone("SIL", 0, 1), Phone("AA", 1, 3), Phone("SIL", 3, 4)]
    opening = np.zeros(96)
    opening[24:72] = 0.8
    opening[10] = 0.5  # one frame ajar at the start
    rest = rest_frames(phones, 96)
    assert rest[:22].all() and not rest[22:77].any() and rest[78:].all()
    # Middles at (n + 0.5) / 24 before 0.9 s: 22 frames.
    assert pauses_shut(opening, phones, first=True) == (pytest.approx(21 / 22), 22)
    late = pauses_shut(opening, phones, first=False, own_rest=0.0)
    assert late is not None and late[0] == 1.0
    assert pauses_shut(opening, [Phone("AA", 0, 4)], first=True) is None


def test_jumps_and_jitter():
    points = np.zeros((10, 4, 2))
    points[5:, :, 0] = 12.0
    assert jump(points, np.full(10, 100.0)) == (pytest.approx(0.12), 9)
    values = np.where(np.arange(40) % 2, 0.01, -0.01)  # second difference +-0.04
    found = jitter(values, np.ones(40, bool))
    assert found is not None and found[0] == pytest.approx(0.04)
    assert jitter(values, np.zeros(40, bool)) is None


def test_headline_bears_early_mouths_longer():
    def peak(late: int) -> np.ndarray:
        return np.maximum(0, 1 - np.abs(np.arange(-12, 13) - late) / 2.5)

    fits = {k: borne_fit(peak(k)) for k in range(-6, 7)}
    assert fits[0] == 1.0 and fits[-1] > fits[1] > fits[2] > fits[3] > fits[6]
    assert fits[-1] > fits[-2] > fits[-3] > fits[-6] and fits[-6] < 0.06


def test_headline_of_parts():
    assert headline(1.0, 1.0, 1.0, 1.3) == 1.0
    assert headline(0.8, 0.25, None, 1.0) == pytest.approx(0.4)
    assert headline(0.8, -0.5, 1.0, 1.0) == 0.0
    assert headline(0.0, None, None, 0.0) == 0.0


def test_times_are_middles_of_frames():
    assert frame_times(3) == pytest.approx([0.5 / 24, 1.5 / 24, 2.5 / 24])


def test_a_pictures_own_smile_is_a_mouth_at_rest():
    phones = [Phone("SIL", 0, 1), Phone("AA", 1, 3), Phone("SIL", 3, 4)]
    smile = np.full(96, 0.85)
    open_smile = pauses_shut(smile, phones, first=True, own_rest=0.8)
    gaping = pauses_shut(smile, phones, first=True, own_rest=0.1)
    assert open_smile is not None and open_smile[0] == 1.0
    assert gaping is not None and gaping[0] == 0.0


def test_fit_leaves_silence_at_both_ends_to_the_pauses():
    phones = [Phone("SIL", 0, 1), Phone("AA", 1, 3), Phone("SIL", 3, 4)]
    assert spoken(phones, 96) == slice(21, 75)
    assert spoken([Phone("SIL", 0, 4)], 96) == slice(0, 96)


def test_too_little_speech_is_skipped_not_zero() -> None:
    from engine.qa.scores import TOO_SHORT, _lag_scores

    short = _lag_scores(None, 30, ("offset", "r0", "confidence"))
    assert [(s.value, s.skipped) for s in short] == [(None, TOO_SHORT)] * 3
    still = _lag_scores(None, 80, ("offset", "r0", "confidence"))
    assert [s.value for s in still] == [None, 0.0, 0.0]
