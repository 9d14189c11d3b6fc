from __future__ import annotations

import numpy as np
import pytest

from engine.errors import EngineError
from engine.motion.mapping import INTENSITIES, SpeechToMotion
from engine.motion.measure import opening
from engine.motion.phone_track import EXACT, imitate
from engine.portrait.coefficients import COUNT, HIGHEST, INDEX, LOWEST, NAMES
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONE_INDEX, PHONES, EncodedSpeech
from tests.motion.tracks import tracks

TRACKS = tracks()
MOUTH = [i for i, n in enumerate(NAMES) if n.startswith(("jaw", "mouth", "seal", "upper", "lower"))]
MOUTH_ALONE = [i for i in MOUTH if not NAMES[i].startswith("mouthSmile")]
HEAD = [INDEX[n] for n in ("headYaw", "headPitch", "headRoll", "headX", "headY", "breath")]


def part(speech: EncodedSpeech, start: int, stop: int) -> EncodedSpeech:
    return EncodedSpeech(
        speech.posteriors[start:stop],
        speech.speech[start:stop],
        speech.loudness_db[start:stop],
        speech.pitch_hz[start:stop],
    )


def long_speech() -> EncodedSpeech:
    each = [imitate(phones, i) for i, phones in enumerate(TRACKS.values())]
    return EncodedSpeech(
        *(
            np.concatenate([getattr(e, name) for e in each])
            for name in ("posteriors", "speech", "loudness_db", "pitch_hz")
        )
    )


def silence(frames: int, heard: str = "SIL", gate: float = 0.0) -> EncodedSpeech:
    posteriors = np.zeros((frames, len(HEAD_OFFSETS_MS), len(PHONES)), np.float32)
    posteriors[:, :, PHONE_INDEX[heard]] = 1
    return EncodedSpeech(
        posteriors,
        np.full(frames, gate, np.float32),
        np.full(frames, -60, np.float32),
        np.zeros(frames, np.float32),
    )


def test_chunk_sizes_do_not_matter() -> None:
    speech = long_speech()
    whole = SpeechToMotion({}, 3).step(speech)
    for size in (1, 4, 7):
        motion = SpeechToMotion({}, 3)
        pieces = [motion.step(part(speech, i, i + size)) for i in range(0, len(speech), size)]
        assert np.array_equal(np.concatenate(pieces), whole)


def test_shape_and_ranges_at_every_intensity() -> None:
    speech = long_speech()
    for amount in (0.0, 1.0, 2.0):
        tokens = SpeechToMotion(dict.fromkeys(INTENSITIES, amount), 5).step(speech)
        assert tokens.shape == (len(speech), COUNT)
        assert tokens.dtype == np.float32
        assert np.isfinite(tokens).all()
        assert (tokens >= LOWEST).all()
        assert (tokens <= HIGHEST).all()


def test_natural_intensity_stays_in_the_good_ranges() -> None:
    tokens = SpeechToMotion({}, 5).step(long_speech())
    assert tokens[:, INDEX["jawOpen"]].max() <= 0.55
    assert (tokens[:, INDEX["mouthFunnel"]] + tokens[:, INDEX["mouthPucker"]]).max() <= 0.9
    assert np.abs(tokens[:, [INDEX["headYaw"], INDEX["headPitch"], INDEX["headRoll"]]]).max() <= 12
    assert np.abs(tokens[:, [INDEX["gazeX"], INDEX["gazeY"]]]).max() <= 0.45


@pytest.mark.parametrize(
    ("name", "indices"),
    [
        ("mouth", MOUTH_ALONE),
        ("head", HEAD),
        ("blink", [INDEX["eyeBlinkL"], INDEX["eyeBlinkR"]]),
        ("gaze", [INDEX["gazeX"], INDEX["gazeY"]]),
        ("expression", [INDEX[n] for n in NAMES if n.startswith(("brow", "cheek"))]),
    ],
)
def test_zero_is_off_and_one_is_not(name: str, indices: list[int]) -> None:
    speech = long_speech()
    on = SpeechToMotion({}, 1).step(speech)
    off = SpeechToMotion({name: 0.0}, 1).step(speech)
    assert not off[:, indices].any()
    assert on[:, indices].any()


def test_all_zero_is_the_picture_itself() -> None:
    assert not SpeechToMotion(dict.fromkeys(INTENSITIES, 0.0)).step(long_speech()).any()


@pytest.mark.parametrize("value", [-0.1, 2.1, float("nan")])
def test_a_wrong_intensity_is_one_clear_line(value: float) -> None:
    with pytest.raises(EngineError, match=r"intensity mouth is .*, allowed 0 to 2"):
        SpeechToMotion({"mouth": value})


def test_seeds_differ_in_life_not_in_lips() -> None:
    speech = long_speech()
    one, two = (SpeechToMotion({}, seed).step(speech) for seed in (1, 2))
    assert np.array_equal(one[:, INDEX["jawOpen"]], two[:, INDEX["jawOpen"]])
    for name in ("headYaw", "eyeBlinkL", "gazeX", "browInnerL"):
        assert not np.array_equal(one[:, INDEX[name]], two[:, INDEX[name]])


def test_the_seed_may_come_with_the_settings() -> None:
    speech = long_speech()
    by_settings = SpeechToMotion({"seed": 9}).step(speech)
    assert np.array_equal(by_settings, SpeechToMotion({}, 9).step(speech))


def test_reset_reproduces_bit_for_bit() -> None:
    speech = long_speech()
    motion = SpeechToMotion({}, 4)
    first = motion.step(speech)
    motion.interrupt()
    motion.step(part(speech, 0, 30))
    motion.reset()
    assert np.array_equal(motion.step(speech), first)


def test_every_closure_closes_with_exact_phones() -> None:
    """mouthClose reaches 1 in a frame within one frame of every p, b and m of >= 30 ms.

    A phone shorter than that between two frame centres need not be seen at 24 fps.
    """
    for phones in TRACKS.values():
        tokens = SpeechToMotion({}).step(imitate(phones, quality=EXACT))
        close = tokens[:, INDEX["mouthClose"]]
        for phone in phones:
            if phone.name in ("P", "B", "M") and phone.end_s - phone.start_s >= 0.03:
                first, last = int(phone.start_s * 24), int(phone.end_s * 24)
                assert close[first - 1 : last + 2].max() == 1, phone


def test_lips_against_teeth() -> None:
    phones = TRACKS["Five very fine vans arrived before half past four."]
    tokens = SpeechToMotion({}).step(imitate(phones, quality=EXACT))
    for phone in phones:
        if phone.name in ("F", "V"):
            first, last = int(phone.start_s * 24), int(phone.end_s * 24)
            assert tokens[first - 1 : last + 2, INDEX["mouthRollLower"]].max() > 0.6, phone


def test_a_closed_mouth_is_not_lifted_apart() -> None:
    tokens = SpeechToMotion({}).step(long_speech())
    shut = tokens[:, INDEX["mouthClose"]] == 1
    assert shut.any()
    assert opening(tokens[shut]).max() == 0
    assert tokens[shut][:, [INDEX["lowerLipDown"], INDEX["mouthFunnel"]]].max() < 0.01


@pytest.mark.parametrize("heard", ["SIL", "AA", "OW"])
def test_shut_when_nobody_speaks_whatever_the_phones_say(heard: str) -> None:
    """Room noise and music look like phones; the gate decides."""
    tokens = SpeechToMotion({}).step(silence(240, heard, gate=0.1))
    assert opening(tokens).max() == 0


@pytest.mark.parametrize("last", ["AA", "AO", "IY", "UW"])
def test_shut_within_300_ms_of_the_end_of_speech(last: str) -> None:
    motion = SpeechToMotion({})
    motion.step(silence(24, last, gate=1.0))
    after = motion.step(silence(24))
    assert opening(after)[7:].max() < 0.01  # the 8th frame is shown 290 ms after the end
    assert after[7:, [INDEX["mouthPucker"], INDEX["mouthFunnel"]]].max() < 0.03


def test_interrupt_rests_the_mouth_and_keeps_the_pose() -> None:
    speech = long_speech()
    motion = SpeechToMotion({}, 2)
    before = motion.step(part(speech, 0, 60))[-1]
    motion.interrupt()
    after = motion.step(silence(12))
    assert np.abs(after[0, HEAD] - before[HEAD]).max() < 1.0
    assert opening(after)[7:].max() < 0.01


def test_louder_opens_wider() -> None:
    quiet, loud = (
        EncodedSpeech(
            s.posteriors, s.speech, np.concatenate([np.full(72, -30), np.full(48, level)]),
            s.pitch_hz,
        )
        for s, level in ((silence(120, "AA", 1.0), -38), (silence(120, "AA", 1.0), -20))
    )  # fmt: skip
    jaws = [SpeechToMotion({}).step(s)[80:90, INDEX["jawOpen"]].mean() for s in (quiet, loud)]
    assert jaws[1] > 1.2 * jaws[0]


def test_no_steps() -> None:
    """Only lids, gaze and closures may jump; nothing else moves more than a natural frame does."""
    tokens = SpeechToMotion({}, 1).step(long_speech())
    moved = np.abs(np.diff(tokens, axis=0)).max(0)
    limits = {"jawOpen": 0.34, "mouthFunnel": 0.34, "mouthPucker": 0.42, "mouthStretchL": 0.3,
              "headYaw": 0.8, "headPitch": 0.8, "headRoll": 0.8, "headX": 0.02, "headY": 0.02,
              "browInnerL": 0.12, "mouthSmileL": 0.1, "breath": 0.1}  # fmt: skip
    for name, limit in limits.items():
        assert moved[INDEX[name]] <= limit, (name, moved[INDEX[name]])


def test_interrupt_forgets_what_was_heard() -> None:
    """After a rest, the lips answer new speech as a fresh start does."""
    loud = silence(48, "AA", 1.0)
    loud.loudness_db[:] = -8
    motion, fresh = SpeechToMotion({}), SpeechToMotion({})
    motion.step(loud)
    motion.interrupt()
    after = EncodedSpeech(*(getattr(long_speech(), n)[:120] for n in EncodedSpeech.__slots__))
    jaws = []
    for each in (motion, fresh):
        each.step(silence(120))
        jaws.append(each.step(after)[:, INDEX["jawOpen"]])
    assert np.allclose(*jaws, atol=1e-4)


def test_a_half_open_picture_is_sealed_through_pauses_and_returns_when_idle() -> None:
    motion = SpeechToMotion({})
    seal = motion.step(silence(24, "AA", 1.0))[:, INDEX["seal"]]
    assert seal[5:].min() > 0.9
    after = motion.step(silence(24 * 6))[:, INDEX["seal"]]
    assert after[: 24 * 2].min() > 0.9
    assert after[-1] < 0.02
    assert np.abs(np.diff(after)).max() < 0.15  # it eases, it does not pop
