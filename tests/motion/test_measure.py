"""The figures themselves, on planted faults, and the shipped motion against its aims."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import EngineError
from engine.motion.mapping import SpeechToMotion
from engine.motion.measure import measure, pooled
from engine.motion.phone_track import EXACT, Quality, imitate, parse_flite
from engine.portrait.coefficients import INDEX
from engine.speech.encoded import PHONE_INDEX
from tests.motion.tracks import tracks

TRACKS = tracks()
PHONES = TRACKS["Bob put the pepper pot above my map."]


def figures(quality: Quality) -> dict[str, float | None]:
    return pooled(
        [
            measure(SpeechToMotion({}).step(imitate(phones, 1, quality)), phones)
            for phones in TRACKS.values()
        ]
    )


def test_exact_phones_reach_the_aims() -> None:
    found = figures(EXACT)
    assert found["closed_share"] >= 0.97
    assert found["open_in_silence_share"] == 0
    assert found["rest_ms"] <= 300
    assert 0.2 <= found["lead_frames"] <= 1.5  # never late, at most what film practice allows
    assert found["r0"] > 0.75
    assert found["rounding_lead_ms"] >= 80


def test_a_doubtful_encoder_costs_little() -> None:
    found = figures(Quality())
    assert found["closed_share"] >= 0.9
    assert found["open_in_silence_share"] == 0
    assert 0 <= found["lead_frames"] <= 1.5
    assert found["jaw_reversals_hz"] < 9  # four syllables a second, up and down


def test_planted_shift_is_found() -> None:
    tokens = SpeechToMotion({}).step(imitate(PHONES, 1, EXACT))
    true = measure(tokens, PHONES).lead_frames
    for frames in (-3, 2):
        shifted = np.roll(tokens, frames, axis=0)
        assert measure(shifted, PHONES).lead_frames == pytest.approx(true - frames, abs=0.25)


def test_planted_faults_show() -> None:
    tokens = SpeechToMotion({}).step(imitate(PHONES, 1, EXACT))
    ajar = tokens.copy()
    ajar[:, INDEX["mouthClose"]] = 0
    assert measure(ajar, PHONES).closed_share < 0.3
    stuck = tokens.copy()
    stuck[:, INDEX["jawOpen"]] = 0.2
    stuck[:, INDEX["mouthClose"]] = 0
    assert measure(stuck, PHONES).open_in_silence_share == 1
    assert measure(stuck, PHONES).rest_ms > 300
    blinking = tokens.copy()
    blinking[::6, INDEX["mouthClose"]] = 1
    assert measure(blinking, PHONES).false_shuts_hz > 3 * measure(tokens, PHONES).false_shuts_hz
    assert measure(blinking, PHONES).false_shuts_hz > 0.5
    frozen = np.zeros_like(tokens)
    assert measure(frozen, PHONES).r0 is None
    noisy = tokens + np.random.default_rng(1).normal(0, 0.05, tokens.shape)
    assert measure(noisy, PHONES).jaw_jerk > 1.3 * measure(tokens, PHONES).jaw_jerk


def test_flite_times() -> None:
    phones = parse_flite("pau:0.2 b:0.25 ax:0.4 pau:0.6")
    assert [p.name for p in phones] == ["SIL", "B", "AH", "SIL"]
    assert phones[2].start_s == 0.25
    with pytest.raises(EngineError, match="qq"):
        parse_flite("pau:0.2 qq:0.5")


def test_imitated_posteriors_are_posteriors() -> None:
    speech = imitate(PHONES, 1)
    assert np.allclose(speech.posteriors.sum(2), 1, atol=1e-5)
    assert speech.posteriors.min() >= 0
    middle = next(p for p in PHONES if p.name == "AA")
    frame = round(12 * (middle.start_s + middle.end_s) - 0.5)
    exact = imitate(PHONES, 1, EXACT)
    assert exact.posteriors[frame, 1].argmax() == PHONE_INDEX["AA"]
