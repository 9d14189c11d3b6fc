"""A public layout on a GPU: FP8 per output channel, calibrated and captured, from files and cache.

Skipped without a GPU. Random weights: what is held against each other are two ways of arithmetic.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.folders import Folders
from engine.models.base import Chunk
from engine.models.causal_dit import Way
from engine.models.checkpoint_video import CheckpointVideo
from engine.models.loaded import LoadedWeights
from engine.models.video import VideoGenerator
from tests.models.test_checkpoint_render import complete_model

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def latents(root: Path, said: list[str], way: Way | None = None) -> torch.Tensor:
    """Two chunks of the same picture and sound, on the CPU."""
    folders = Folders(root / "cache", None, (root / "models",))
    video = CheckpointVideo("small", folders, LoadedWeights(), lambda: False)
    generator = VideoGenerator(video.conditioning, way=way)
    pixels = np.random.default_rng(1).integers(0, 255, (1088, 704, 4), np.uint8)
    character = SimpleNamespace(canvas=SimpleNamespace(pixels=pixels))
    generator.prepare(character, {}, lambda done, what: said.append(what))
    made = []
    for index in range(2):
        chunk = Chunk(0, index, 18 * index, 18, np.zeros(36_000, np.float32))
        made.append(generator.step(chunk).values.float().cpu().clone())
    return torch.stack(made)


def test_fp8_of_a_checkpoint_runs_captured_and_again_from_its_cache(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    complete_model(tmp_path / "models")
    said: list[str] = []
    first = latents(tmp_path, said)
    assert first.isfinite().all() and first.std() > 0.1
    assert any("FP8 weights kept in" in what for what in said)
    again: list[str] = []
    second = latents(tmp_path, again)
    assert any("FP8 weights read from" in what for what in again)
    assert torch.equal(first, second)
    truth = latents(tmp_path, [], Way(fp8=False))  # bf16, neither calibrated nor captured
    likeness = torch.nn.functional.cosine_similarity(first.flatten(), truth.flatten(), 0)
    assert likeness > 0.95
