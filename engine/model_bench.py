"""Frames a second of a model in this process, decoding included, for the model page.

Sound and picture are made up; generator and decoder run on a thread each, as in a session. Knows
nothing of sockets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import torch

from engine.arguments import Parser
from engine.chunk_loop import ChunkLoop, Models
from engine.clock import HEIGHT, SAMPLES_PER_FRAME, WIDTH
from engine.decoder import DecodedChunk
from engine.errors import EngineError
from engine.folders import Folders
from engine.framebus import FrameBus
from engine.machine import describe
from engine.model_factory import ModelFactory
from engine.model_jobs import told_when_full
from engine.models import MODELS
from engine.models.base import Chunk, Progress
from engine.models.dit_config import PRESETS
from engine.models.inventory import find, room
from engine.models.loaded import LoadedWeights
from engine.models.video import default_device
from engine.progress_line import ProgressLine
from engine.protocol.messages import ModelBenched

AHEAD = 3  # chunks in flight, as in a session
WARM_UP = 3  # chunks that are not counted; more where a window fills first


class Run:
    """Feeds a chunk loop until time is up; `times` are when each chunk's pictures were done."""

    def __init__(self, models: Models) -> None:
        self.times: list[float] = []
        self.stages: list[dict[str, float]] = []
        self._room = threading.Semaphore(AHEAD)
        self._error: BaseException | None = None
        self._generator = models.generator
        config = getattr(models.generator, "config", None)
        self.warm_up = max(WARM_UP, getattr(config, "ring_chunks", 0) - 1)
        self._loop = ChunkLoop(FrameBus.create(), self._deliver, self._failed)
        self._loop.swap(models)
        self.begun = time.perf_counter()

    def feed(self, seconds: float, progress: Progress, cancelled: Callable[[], bool]) -> None:
        """At least `warm_up` chunks and one more. Raises EngineError."""
        index = 0
        while time.perf_counter() - self.begun < seconds or len(self.times) <= self.warm_up:
            while not self._room.acquire(timeout=0.2):
                self._check(cancelled)
            self._check(cancelled)
            self._loop.put(1, self._chunk(index))
            index += 1
            spent = (time.perf_counter() - self.begun) / seconds
            progress(min(0.99, spent), f"{len(self.times)} chunks made")
        while len(self.times) < index:
            self._check(cancelled)
            time.sleep(0.01)

    def close(self) -> None:
        self._loop.close()

    def _chunk(self, index: int) -> Chunk:
        count = self._generator.frames_per_chunk
        samples = count * SAMPLES_PER_FRAME
        samples += self._generator.lookahead_samples if index == 0 else 0
        noise = np.random.default_rng(index).standard_normal(samples).astype(np.float32)
        return Chunk(0, index, index * count, count, 0.1 * noise)

    def _check(self, cancelled: Callable[[], bool]) -> None:
        if isinstance(self._error, EngineError):
            raise self._error
        if self._error is not None:
            raise EngineError("internal", f"the model failed: {self._error}")
        if cancelled():
            raise EngineError("cancelled", "the measurement was cancelled")

    def _deliver(self, chunk: DecodedChunk) -> None:
        self.times.append(time.perf_counter() - self.begun)
        self.stages.append(chunk.stage_ms)
        self._loop.pool.release(chunk.slots)
        self._room.release()

    def _failed(self, error: BaseException) -> None:
        self._error = error


def bench_model(
    name: str, seconds: float, folders: Folders, loaded: LoadedWeights, progress: Progress,
    cancelled: Callable[[], bool],
) -> ModelBenched:  # fmt: skip
    """Raises EngineError, also for the portrait: it wants a face, which this does not have."""
    if name in MODELS and name not in PRESETS:
        raise EngineError(
            "bad_input", f"{name} is measured with a picture of a face",
            f"run avatar-engine bench --model {name} --image PICTURE",
        )  # fmt: skip
    synthetic = name in PRESETS
    if loaded.name != name:
        loaded.clear()
    factory = ModelFactory(
        name, {"synthetic": 1.0} if synthetic else {}, folders, loaded=loaded, cancelled=cancelled
    )
    models = factory.make()
    pixels = np.random.default_rng(3).integers(0, 255, (HEIGHT, WIDTH, 4), np.uint8)
    nobody: Any = SimpleNamespace(canvas=SimpleNamespace(pixels=pixels))
    with told_when_full():
        models.generator.prepare(nobody, {}, lambda done, what: progress(0.5 * done, what))
        models.decoder.prepare(nobody, {}, lambda done, what: progress(0.5 + 0.1 * done, what))
    run = Run(models)
    try:
        run.feed(seconds, lambda done, what: progress(0.6 + 0.4 * done, what), cancelled)
    finally:
        run.close()
    return _report(name, run, models.generator.frames_per_chunk, synthetic)


def installed(name: str, arguments: list[str], folders: Folders) -> dict[str, Any]:
    """For `avatar-engine bench --model DIR`: an installed public model, with its own weights."""
    parser = Parser(prog="avatar-engine bench --model DIR")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args(arguments)
    entry, line = find(name, folders), ProgressLine()
    try:
        seconds = options.seconds
        made = bench_model(name, seconds, folders, LoadedWeights(), line.say, lambda: False)
    finally:
        line.end()
    told = {"layout": entry.line, "licence": entry.licence.line}
    return describe(default_device()) | told | msgspec.structs.asdict(made)


def _report(name: str, run: Run, frames: int, synthetic: bool) -> ModelBenched:
    spent = run.times[-1] - run.times[run.warm_up - 1]
    counted = run.stages[run.warm_up :]
    names = {key for stages in counted for key in stages}
    median = {
        key: round(float(np.median([s[key] for s in counted if key in s])), 2) for key in names
    }
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return ModelBenched(
        model=name, device=room().device, fps=round(len(counted) * frames / spent, 2),
        first_chunk_ms=round(1000 * run.times[0], 1), stage_ms=median,
        frames=len(counted) * frames, seconds=round(spent, 3), peak_bytes=peak,
        synthetic=synthetic,
    )  # fmt: skip
