"""What a worker does for the model page: list models, and read one's weights ahead of its session.

Knows nothing of sockets or processes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import torch

from engine.errors import EngineError
from engine.folders import Folders, default_checkpoints
from engine.models import MODELS
from engine.models.base import Progress
from engine.models.causal_dit import Way
from engine.models.checkpoint_video import CheckpointVideo
from engine.models.dit_config import PRESETS, preset, shard
from engine.models.inventory import Entry, Room, installed, need, room, roots
from engine.models.loaded import LoadedWeights
from engine.models.video import default_device
from engine.protocol.messages import ModelInfo, ModelList, ModelLoaded


def list_models(folders: Folders, loaded: LoadedWeights) -> ModelList:
    """Built-in models first, then those that are installed."""
    here = room()
    models = [_built_in(name, here) for name in MODELS]
    models += [_info(entry, entry.name == loaded.name) for entry in installed(folders)]
    return ModelList(
        models=models, folders=[str(path) for path in roots(folders)], device=here.device,
        free_bytes=here.free_bytes, home=str(default_checkpoints()),
    )  # fmt: skip


def _built_in(name: str, here: Room) -> ModelInfo:
    if name not in PRESETS:
        return ModelInfo(name=name, layout="animated portrait, for any processor")
    config = preset(name)
    needed, fit = need(config, here)
    return ModelInfo(
        name=name, layout=f"random weights, {config.parameters / 1e9:.1f}B: noise and no face",
        needs_bytes=needed, fits=needed <= here.free_bytes, fit=fit, synthetic=True,
    )  # fmt: skip


def _info(entry: Entry, loaded: bool) -> ModelInfo:
    return ModelInfo(
        name=entry.name, path=str(entry.path), layout=entry.line, licence=entry.licence.line,
        non_commercial=entry.licence.non_commercial, size_bytes=entry.size_bytes,
        needs_bytes=entry.needs_bytes, fits=entry.fits or loaded, fit=entry.fit,
        problem=entry.problem, lacks=list(entry.lacks), notes=list(entry.notes), loaded=loaded,
    )  # fmt: skip


def load_model(
    name: str, folders: Folders, loaded: LoadedWeights, progress: Progress,
    cancelled: Callable[[], bool],
) -> ModelLoaded:  # fmt: skip
    """Read prompt and weights of an installed model into `loaded`, as its session will want them.

    Raises EngineError. What was loaded before is let go first.
    """
    begun = time.monotonic()
    if loaded.name != name:
        loaded.clear()
    video = CheckpointVideo(name, folders, loaded, cancelled)
    progress(0.0, f"licence: {video.licence}")
    with told_when_full():
        note = _read(video, progress)
    return ModelLoaded(
        model=video.name, layout=video.line, licence=video.licence, bytes=loaded.bytes,
        load_ms=round(1000 * (time.monotonic() - begun), 1), note=note,
    )  # fmt: skip


@contextlib.contextmanager
def told_when_full() -> Iterator[None]:
    """A device without room is an EngineError("out_of_memory"), not the end of the worker."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise EngineError(
            "out_of_memory", "the GPU has not enough free memory for this model",
            "unload another model, close what else uses the GPU, or use a smaller model",
        ) from error  # fmt: skip


def _read(video: CheckpointVideo, progress: Progress) -> str:
    """Prompt and weights; returns what is said of the FP8 cache."""
    conditioning, device = video.conditioning, default_device()
    conditioning.text(device, lambda done, what: progress(0.1 * done, what))
    cuda = device.type == "cuda"
    notes: list[str] = []

    def reading(done: float, what: str) -> None:
        if done >= 1:
            notes.append(what)
        progress(0.1 + 0.9 * done, what)

    dtype = torch.bfloat16 if cuda else torch.float32
    part = shard(conditioning.config)
    conditioning.weights(part, device, dtype, cuda and Way().fp8, reading)
    return notes[-1] if notes else ""
