"""The encoder's promises about time: strict look-ahead, streaming equal to batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError
from engine.speech.encoded import LOOKAHEAD_MS, EncodedSpeech
from engine.speech.encoder import HEARD_BEYOND_START, SpeechEncoder, encode_all


def joined(parts: list[EncodedSpeech]) -> EncodedSpeech:
    fields = ("posteriors", "speech", "loudness_db", "pitch_hz")
    return EncodedSpeech(*[np.concatenate([getattr(p, f) for p in parts]) for f in fields])


def same(a: EncodedSpeech, b: EncodedSpeech) -> bool:
    return (
        np.allclose(a.posteriors, b.posteriors, atol=1e-4)
        and np.allclose(a.speech, b.speech, atol=1e-4)
        and np.allclose(a.loudness_db, b.loudness_db, atol=1e-3)
        and np.allclose(a.pitch_hz, b.pitch_hz, atol=0.05)
    )


def test_look_ahead_is_the_contract() -> None:
    """Frame start + 4,840 samples is centre (1,000) + 80 ms (3,840)."""
    assert HEARD_BEYOND_START == 1_000 + LOOKAHEAD_MS * 48


def test_changing_later_samples_changes_nothing(random_weights: Path, babbling: np.ndarray) -> None:
    """Strict causality, on every tenth frame: all after centre + 80 ms replaced by loud noise."""
    whole = encode_all(babbling, random_weights)
    rng = np.random.default_rng(2)
    for frame in range(3, len(whole) - 3, 10):
        changed = babbling.copy()
        changed[2_000 * frame + HEARD_BEYOND_START :] = rng.standard_normal(
            len(babbling) - 2_000 * frame - HEARD_BEYOND_START
        )
        other = encode_all(changed, random_weights)
        assert np.array_equal(whole.posteriors[: frame + 1], other.posteriors[: frame + 1])
        assert np.array_equal(whole.speech[: frame + 1], other.speech[: frame + 1])
        assert np.array_equal(whole.pitch_hz[: frame + 1], other.pitch_hz[: frame + 1])


def test_the_last_samples_of_the_look_ahead_are_used(
    random_weights: Path, babbling: np.ndarray
) -> None:
    """All 80 ms are really heard: the final 2 ms matter."""
    frame = 20
    whole = encode_all(babbling, random_weights)
    changed = babbling.copy()
    end = 2_000 * frame + HEARD_BEYOND_START
    changed[end - 96 : end] += 0.5
    other = encode_all(changed, random_weights)
    assert not np.array_equal(whole.posteriors[frame], other.posteriors[frame])


@pytest.mark.parametrize("piece", [1, 333, 960, 2_000, 48_001])
def test_streaming_equals_batch(piece: int, random_weights: Path, babbling: np.ndarray) -> None:
    pcm = babbling[: 9_000 if piece == 1 else None]
    encoder = SpeechEncoder(random_weights)
    parts = [encoder.push(pcm[i : i + piece]) for i in range(0, len(pcm), piece)]
    streamed = joined([*parts, encoder.flush()])
    whole = encode_all(pcm, random_weights)
    assert len(streamed) == len(whole) == -(-len(pcm) // 2_000)
    assert same(streamed, whole)


def test_a_frame_is_answered_at_once(random_weights: Path, babbling: np.ndarray) -> None:
    """Not one sample later than promised."""
    encoder = SpeechEncoder(random_weights)
    assert len(encoder.push(babbling[: HEARD_BEYOND_START - 1])) == 0
    assert len(encoder.push(babbling[HEARD_BEYOND_START - 1 : HEARD_BEYOND_START])) == 1
    assert len(encoder.push(babbling[HEARD_BEYOND_START : HEARD_BEYOND_START + 2_000])) == 1


def test_reset_and_flush_start_over(random_weights: Path, babbling: np.ndarray) -> None:
    encoder = SpeechEncoder(random_weights)
    first = joined([encoder.push(babbling), encoder.flush()])
    second = joined([encoder.push(babbling), encoder.flush()])
    encoder.push(babbling[:30_000])
    encoder.reset()
    third = joined([encoder.push(babbling), encoder.flush()])
    assert same(first, second) and same(first, third)
    assert len(SpeechEncoder(random_weights).flush()) == 0


def test_posteriors_are_probabilities(random_weights: Path, babbling: np.ndarray) -> None:
    said = encode_all(babbling, random_weights)
    assert said.posteriors.dtype == np.float32 and said.posteriors.shape[1:] == (4, 40)
    assert np.allclose(said.posteriors.sum(2), 1, atol=1e-5)
    assert (said.speech >= 0).all() and (said.speech <= 1).all()


@pytest.mark.parametrize("bad", [np.zeros((10, 2)), np.array([0.0, np.nan]), np.array([np.inf])])
def test_bad_audio_is_refused(bad: np.ndarray, random_weights: Path) -> None:
    with pytest.raises(EngineError) as error:
        SpeechEncoder(random_weights).push(bad)
    assert error.value.code == "bad_audio" and error.value.hint


def test_bad_weights_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"\x10\0\0\0\0\0\0\0not json at all!")
    for path in (tmp_path / "absent.safetensors", damaged):
        with pytest.raises(EngineError) as error:
            SpeechEncoder(path)
        assert error.value.code == "missing_asset"


def test_the_live_encoder_needs_no_torch() -> None:
    """Nor any of the training tools: numpy and safetensors alone."""
    code = (
        "import sys, engine.speech.encoder; "
        "bad = {'torch', 'soxr', 'soundfile', 'pocketsphinx', 'scipy'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
