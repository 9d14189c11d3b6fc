"""Non-speech to mix in and to be silent for: music, game sounds, coloured noise, hum, babble.

Training and testing never share a recording: which is which is fixed here by source. Knows
nothing of features. Yields (kind, mono float32 at 24 kHz, rms 0.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.speech.corpus.clip import Clip
from engine.speech.corpus.recordings import read_audio
from engine.speech.resample import ENCODER_RATE

Sound = tuple[str, np.ndarray]
# wesnoth's and supertux' music and half the samples train; fillets' music and wesnoth's game sounds
# are for testing alone.
TRAIN_MUSIC = (
    "usr/share/games/wesnoth/1.16/data/core/music/*.ogg",
    "usr/share/games/supertux2/music/**/*.ogg",
)
TRAIN_SOUNDS = ("usr/share/games/supertux2/sounds/*.*", "usr/share/sonic-pi/samples/*.flac")
TEST_MUSIC = "usr/share/games/fillets-ng/music/*.ogg"
TEST_SOUNDS = "usr/share/games/wesnoth/1.16/data/core/sounds/*.ogg"


def at_level(pcm: np.ndarray, rms: float = 0.1) -> np.ndarray:
    """Scaled to an rms of full scale 1."""
    return (pcm * (rms / (np.sqrt(np.mean(pcm**2)) + 1e-9))).astype(np.float32)


def excerpts(
    root: Path, patterns: tuple[str, ...], seconds: float, most: int
) -> Iterator[np.ndarray]:
    """Every n-th file's middle part, so that `most` files are read at most."""
    files = sorted(path for pattern in patterns for path in root.glob(pattern))
    for path in files[:: max(1, len(files) // most)][:most]:
        try:
            pcm = read_audio(path)
        except (OSError, RuntimeError):
            continue
        start = max(0, (len(pcm) - int(seconds * ENCODER_RATE)) // 2)
        pcm = pcm[start : start + int(seconds * ENCODER_RATE)]
        if len(pcm) > 0.2 * ENCODER_RATE and np.abs(pcm).max() > 1e-3:
            yield at_level(pcm)


def coloured(rng: np.random.Generator, seconds: float, slope: float) -> np.ndarray:
    """Gaussian noise whose power falls with f^-slope: 0 white, 1 pink, 2 brown."""
    spectrum = np.fft.rfft(rng.standard_normal(int(seconds * ENCODER_RATE)))
    hz = np.fft.rfftfreq(int(seconds * ENCODER_RATE), 1 / ENCODER_RATE) + 50
    return at_level(np.fft.irfft(spectrum * hz ** (-slope / 2)))


def hum(rng: np.random.Generator, seconds: float) -> np.ndarray:
    """Mains hum: thirteen harmonics of 50 or 60 Hz over faint noise."""
    t = np.arange(int(seconds * ENCODER_RATE)) / ENCODER_RATE
    base = rng.choice([50.0, 60.0])
    tones = sum(np.sin(2 * np.pi * base * k * t + k) / k for k in range(1, 14))
    return at_level(tones + 0.02 * rng.standard_normal(len(t)))


def babble(rng: np.random.Generator, clips: list[Clip], seconds: float, talkers: int) -> np.ndarray:
    """Sum of random talkers speaking without a pause."""
    out = np.zeros(int(seconds * ENCODER_RATE), np.float32)
    for _ in range(talkers):
        row = np.concatenate([at_level(clips[i].pcm) for i in rng.integers(0, len(clips), 60)])
        out += np.resize(row, len(out))
    return at_level(out)


def training_noise(root: Path, talk: list[Clip]) -> Iterator[Sound]:
    """About 35 minutes."""
    rng = np.random.default_rng(3)
    for slope in (0.0, 0.7, 1.0, 1.5, 2.0):
        yield "stationary", coloured(rng, 50, slope)
    for _ in range(2):
        yield "stationary", hum(rng, 25)
    for talkers in (6, 9, 16):
        yield "babble", babble(rng, talk, 80, talkers)
    for pcm in excerpts(root, TRAIN_MUSIC, 25, 52):
        yield "music", pcm
    for pcm in excerpts(root, TRAIN_SOUNDS, 6, 130):
        yield "sound", pcm
