"""Weights and sounds that the speech tests share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.speech.features import INPUTS, MELS
from engine.speech.net import DILATIONS, OUTPUTS, TAPS


@pytest.fixture(scope="session")
def random_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small net of random numbers: what it says is nonsense, when it says it is not."""
    rng = np.random.default_rng(0)
    width = 32

    def linear(name: str, inputs: int, outputs: int) -> dict[str, np.ndarray]:
        scale = (2 / inputs) ** 0.5
        return {
            f"{name}.weight": (rng.standard_normal((outputs, inputs)) * scale).astype(np.float32),
            f"{name}.bias": rng.standard_normal(outputs).astype(np.float32) * 0.1,
        }

    arrays = {
        **linear("inlet", INPUTS, width),
        **linear("outlet", width, OUTPUTS),
        "mean": np.full(MELS, -6.0, np.float32),
    }
    for i in range(len(DILATIONS)):
        arrays |= linear(f"blocks.{i}.linear", TAPS * width, width)
    path = tmp_path_factory.mktemp("weights") / "random.safetensors"
    save_file(arrays, path)
    return path


@pytest.fixture(scope="session")
def babbling() -> np.ndarray:
    """[3.1 s] float32 at 48 kHz: noise with a swinging level and a tone, never silent."""
    rng = np.random.default_rng(1)
    t = np.arange(148_800) / 48_000
    swing = 0.05 + 0.2 * np.abs(np.sin(2 * np.pi * 3 * t))
    return (swing * rng.standard_normal(len(t)) * 0.5 + 0.1 * np.sin(2 * np.pi * 140 * t)).astype(
        np.float32
    )
