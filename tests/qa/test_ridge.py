"""The second opinion in rooms: an echo after the voice is not speech."""

from __future__ import annotations

import numpy as np
import pytest

from engine.qa import ridge
from engine.qa.clip_set import load_set
from engine.qa.expected import frame_times
from engine.qa.lead import lates
from engine.qa.offset import curve, lag_of_curve
from engine.qa.ridge import ECHO_AFTER, ECHO_BELOW_DB, ECHO_DECAY_DB, ECHO_LEAST, without_echo
from engine.qa.validate import truth_of
from tests.qa.conftest import needs_models


def test_echo_by_its_closed_form():
    """One loud hop: what follows it loses just what an echo of it would hold."""
    power = np.zeros((40, 2))
    power[5] = 1.0
    hops = np.arange(40) - 5
    echo = 10 ** (-(ECHO_BELOW_DB + ECHO_DECAY_DB * hops) / 10)
    after = hops >= ECHO_AFTER
    power[after] += 1.5 * echo[after, None]
    left = without_echo(power)
    assert (left[:6] == power[:6]).all(), "before a sound there is no echo of it"
    assert (left[6 : 5 + ECHO_AFTER] == power[6 : 5 + ECHO_AFTER]).all(), "too early for an echo"
    assert left[5 + ECHO_AFTER + 1, 0] == pytest.approx(0.5 * echo[5 + ECHO_AFTER + 1], rel=0.05)
    power[after] = 0.7 * echo[after, None]
    quiet = without_echo(power)[after]
    assert quiet == pytest.approx(ECHO_LEAST * power[after]), "an echo alone is nearly silence"


def test_without_echo_keeps_a_steady_sound():
    power = np.ones((30, 3))
    kept = 1 - 10 ** (-(ECHO_BELOW_DB + ECHO_DECAY_DB * ECHO_AFTER) / 10)
    left = without_echo(power)
    assert (left[:ECHO_AFTER] == 1).all() and left[ECHO_AFTER:] == pytest.approx(kept)


def test_a_room_does_not_make_the_mouth_early(monkeypatch):
    """A dry clip and the same in a hall: the lateness that the echo feigns is less than half."""
    clip = next(c for c in load_set(verify=False).clips if c.id == "en-flite-rms-0")
    pcm = truth_of(clip).pcm
    rng = np.random.default_rng(3)
    time = np.arange(int(0.9 * 48_000)) / 48_000
    hall = rng.normal(size=len(time)) * 10 ** (-32 * time / 20) * (time > 0.02)
    hall *= 10 ** (-8 / 20) / np.sqrt((hall**2).sum())
    size = 1 << int(np.ceil(np.log2(len(pcm) + len(hall))))
    wet = np.fft.irfft(np.fft.rfft(pcm, size) * np.fft.rfft(hall, size), size)[: len(pcm)]
    times = frame_times(round(len(pcm) / 2_000))

    def late() -> float:
        dry, roomy = (ridge.predicted(sound, times) for sound in (pcm, pcm + wet))
        return lag_of_curve(np.mean([curve(roomy[:, i], dry[:, i]) for i in range(3)], 0)).late

    with_care = late()
    monkeypatch.setattr(ridge, "without_echo", lambda power: power)
    assert abs(with_care) < 0.2 and abs(with_care) < 0.6 * late(), (with_care, late())


@needs_models
def test_second_opinion_of_the_game_voices():
    """The tune split's echoing clips read -0.8 and -8.6 frames while echo counted as speech."""
    found = lates(ids=["cs-fillets-tank-sv-v-zebrik", "cs-fillets-stairs-sch-m-moc0"])
    assert len(found) == 2 and all(abs(late) < 0.5 for _, late in found.values()), found
