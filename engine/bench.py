"""`avatar-engine bench`: which benchmark measures which model, and the portrait's own.

The portrait's is the whole pipeline, sound to pictures, as fast as it goes: the chunk loop of the
live engine with its generator and decoder threads. Knows nothing of files or sockets.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from engine.arguments import Parser
from engine.audio import Chunker
from engine.chunk_loop import ChunkLoop, Models
from engine.clock import FPS, HEIGHT, SAMPLE_RATE, SAMPLES_PER_BLOCK, WIDTH
from engine.decoder import DecodedChunk
from engine.errors import EngineError
from engine.folders import Folders
from engine.framebus import FrameBus
from engine.peak_memory import peak_resident
from engine.stats import StageStats

# model -> "module:function(arguments, folders) -> dict"; a new benchmark is one line here.
BENCHES: dict[str, str] = {
    "portrait": "engine.bench:portrait",
    "avatar-57b": "engine.bench_video:avatar_57b",
    "avatar-5b": "engine.bench_video:avatar_5b",
    "tiny": "engine.bench_video:tiny",
}
LIBRARIES = ("numpy", "opencv-python-headless", "torch", "ai-edge-litert", "pyzmq", "msgspec")
MAX_AHEAD = 3  # chunks in flight, as in a live session


def run_bench(model: str, arguments: list[str], as_json: bool, folders: Folders) -> int:
    from engine.cli import emit

    if "--plan" in arguments:
        return _plan(model, arguments, as_json)
    if "--gpus" in arguments:  # on ranks, through the server: the one way they are run
        from engine.bench_session import main

        return main(["--model", model, *arguments])
    if model in BENCHES:
        module, name = BENCHES[model].split(":")
        result = getattr(importlib.import_module(module), name)(arguments, folders)
    elif any(path.exists() for path in folders.checkpoints):
        result = importlib.import_module("engine.model_bench").installed(model, arguments, folders)
    else:
        known = ", ".join(BENCHES)
        raise EngineError("unknown_model", f"no benchmark of {model!r}", f"use {known}")
    if as_json:
        emit(result)
    else:
        for key, value in result.items():
            print(f"{key:<20} {value}")  # noqa: T201
    return 0


def _plan(model: str, arguments: list[str], as_json: bool) -> int:
    from engine.cli import emit
    from engine.rank_plan import command, table

    # the plan is of the model that needs several GPUs, unless one is named
    named = [] if model == "portrait" else ["--model", model]
    report = command([*named, *arguments])
    if as_json:
        emit(report)
    else:
        print("\n".join(table(report)))  # noqa: T201
    return 0


def portrait(arguments: list[str], folders: Folders) -> dict[str, Any]:
    """Real-time factor, ms a stage, first chunk and memory of the portrait model."""
    parser = Parser(prog="avatar-engine bench --model portrait")
    parser.add_argument("--image", type=Path, required=True, help="a picture with a face")
    parser.add_argument("--audio", type=Path, help="speech; default: noise shaped like syllables")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--frames-per-chunk", type=int, default=1)
    options = parser.parse_args(arguments)
    from engine.model_factory import ModelFactory
    from engine.protocol.character import CharacterSpec

    if not options.image.is_file():
        raise EngineError("bad_picture", f"{options.image} is not a file", "choose a picture")
    pcm = _sound(options.audio, options.seconds)
    factory = ModelFactory("portrait", {"frames_per_chunk": options.frames_per_chunk}, folders)
    begun = time.perf_counter()
    spec = CharacterSpec(name=options.image.stem)
    _, models = factory.load(options.image.read_bytes(), spec, lambda f, w: None, lambda: False)
    ingest_ms = 1000 * (time.perf_counter() - begun)
    measured = measure(models, pcm)
    return {
        "model": "portrait", **machine(), "width": WIDTH, "height": HEIGHT,
        "frames_per_chunk": options.frames_per_chunk, "ingest_ms": round(ingest_ms, 1), **measured,
        "peak_memory_bytes": peak_resident(),
    }  # fmt: skip


def measure(models: Models, pcm: np.ndarray) -> dict[str, Any]:
    """Run `pcm` [n] float32 through the chunk loop; slots are freed as soon as they are drawn."""
    done, errors = threading.Semaphore(0), []
    stats, first_ms = StageStats(), []
    begun = time.perf_counter()

    def deliver(chunk: DecodedChunk) -> None:
        if not first_ms:
            first_ms.append(1000 * (time.perf_counter() - begun))
        stats.add(chunk.stage_ms)
        loop.pool.release(chunk.slots)
        done.release()

    def failed(error: BaseException) -> None:
        errors.append(error)
        done.release()

    loop = ChunkLoop(FrameBus.create(), deliver, failed)
    loop.swap(models)
    cpu = time.process_time()
    frames = _feed(loop, models, pcm, done, errors)
    elapsed = time.perf_counter() - begun
    cpu_s = time.process_time() - cpu
    loop.close()
    return {
        "frames": frames, "elapsed_s": round(elapsed, 3),
        "fps_with_decode": round(frames / elapsed, 2),
        "realtime_factor": round(frames / FPS / elapsed, 3),
        "cpu_ms_per_frame": round(1000 * cpu_s / frames, 3),
        "first_chunk_ms": round(first_ms[0], 2), "stages": stats.summary(),
    }  # fmt: skip


def _feed(
    loop: ChunkLoop, models: Models, pcm: np.ndarray, done: threading.Semaphore, errors: list[Any]
) -> int:
    """Keep at most three chunks in flight; returns how many frames were drawn."""
    generator = models.generator
    chunker = Chunker(generator.frames_per_chunk, generator.lookahead_samples)
    waiting = frames = 0
    for at in range(0, len(pcm), SAMPLES_PER_BLOCK):
        chunker.append(at, pcm[at : at + SAMPLES_PER_BLOCK])
        while (chunk := chunker.next_chunk()) is not None:
            loop.put(1, chunk)
            frames += chunk.frame_count
            waiting += 1
            if waiting >= MAX_AHEAD:
                done.acquire()
                waiting -= 1
            if errors:
                raise errors[0]
    for _ in range(waiting):
        done.acquire()
    if frames == 0:
        raise EngineError("bad_audio", "the sound is shorter than one chunk", "use a longer one")
    return frames


def machine() -> dict[str, Any]:
    """Device, cores and versions: what every benchmark says about where it ran."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return {
        "device": _processor(), "cores": _cores(), "versions": versions,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": "avatar-engine " + " ".join(sys.argv[1:]),
    }  # fmt: skip


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _sound(path: Path | None, seconds: float) -> np.ndarray:
    """Speech from a file, repeated to the length; or noise in 4 Hz bursts, seeded."""
    count = int(seconds * SAMPLE_RATE)
    if path is None:
        noise = np.random.default_rng(1).normal(0, 0.1, count)
        rhythm = np.clip(np.sin(2 * np.pi * 4 * np.arange(count) / SAMPLE_RATE), 0, None)
        return (noise * rhythm).astype(np.float32)
    from engine.audio_file import read_whole

    return np.resize(read_whole(path), count).astype(np.float32)
