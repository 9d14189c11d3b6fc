"""A whole video model on one device: audio in, pictures out, decoding included.

Generator and decoder run on a thread each, as in a live session, as fast as they go.
`python -m engine.bench_complete --model avatar-5b --chunks 3000`. Synthetic weights. Knows nothing
of sockets, of encoding to a file or of screens.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
import time
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from engine.clock import FPS, HEIGHT, SAMPLES_PER_FRAME, WIDTH
from engine.errors import EngineError
from engine.machine import describe, say
from engine.memoryplan import plan
from engine.models.base import Chunk, Latents
from engine.models.causal_dit import Way
from engine.models.conditioning import vae_config
from engine.models.dit_config import shard
from engine.models.vae_memory import decoder_bytes
from engine.models.video import (
    VideoDecoder,
    VideoGenerator,
    preset_decoder,
    preset_generator,
)

WARM_UP = 12  # chunks: the window fills and the clocks settle


def speech_like(chunk: int, samples: int) -> np.ndarray:
    """Noise in syllables, 4 a second: float32 [samples]."""
    source = np.random.default_rng(chunk)
    at = (chunk * samples + np.arange(samples)) / 48_000
    loud = 0.15 * (1 + np.sin(2 * np.pi * 4 * at))
    return (loud * source.standard_normal(samples)).astype(np.float32)


def any_character() -> SimpleNamespace:
    """A picture of nobody, where a character's canvas is expected."""
    source = np.random.default_rng(3)
    coarse = source.integers(0, 255, (HEIGHT // 32, WIDTH // 32, 4), np.uint8)
    pixels = coarse.repeat(32, 0).repeat(32, 1)
    return SimpleNamespace(canvas=SimpleNamespace(pixels=pixels))


def percentiles(values: list[float]) -> dict[str, float]:
    return {
        "p50_ms": median(values),
        "p95_ms": float(np.percentile(values, 95)),
        "p99_ms": float(np.percentile(values, 99)),
        "max_ms": max(values),
    }


class Complete:
    """One run; `times` are the seconds at which each chunk's pictures were ready."""

    def __init__(self, generator: VideoGenerator, decoder: VideoDecoder) -> None:
        self.generator, self.decoder = generator, decoder
        self.waiting: queue.Queue[Latents | None] = queue.Queue(1)
        self.times: list[float] = []
        self.denoise: list[float] = []
        self.decode: list[float] = []
        self.frames = [np.empty((HEIGHT, WIDTH, 4), np.uint8) for _ in range(4)]

    def run(self, chunks: int, seconds: float = float("inf")) -> float:
        """Until either is reached. Returns seconds to the first chunk's pictures."""
        thread = threading.Thread(target=self._decode_all, name="decoder")
        thread.start()
        samples = 4 * SAMPLES_PER_FRAME
        begun = time.perf_counter()
        for i in range(chunks):
            if time.perf_counter() - begun > seconds:
                break
            latents = self.generator.step(Chunk(0, i, 4 * i, 4, speech_like(i, samples)))
            self.denoise.append(latents.stage_ms["denoise"])
            self.waiting.put(latents)
        self.waiting.put(None)
        thread.join()
        return self.times[0] - begun

    def _decode_all(self) -> None:
        while (latents := self.waiting.get()) is not None:
            begun = time.perf_counter()
            self.decoder.decode(latents, self.frames)
            self.times.append(time.perf_counter())
            self.decode.append(1000 * (self.times[-1] - begun))


def bench(
    model: str, chunks: int, fp8_decoder: bool = False, seconds: float = float("inf")
) -> dict[str, Any]:
    """The report of `chunks` chunks after a warm-up, memory watched throughout."""
    generator, decoder = (
        preset_generator(model, synthetic=1),
        preset_decoder(model, int(fp8_decoder)),
    )
    character = any_character()
    begun = time.perf_counter()
    for part in (generator, decoder):
        part.prepare(character, {}, lambda done, what: None)
    ready_s = time.perf_counter() - begun
    device = generator.device
    Complete(generator, decoder).run(WARM_UP)
    generator.reset()
    decoder.reset()
    before = memory(device)
    run = Complete(generator, decoder)
    first_s = run.run(chunks, seconds)
    after = memory(device)
    steady = np.diff(run.times) * 1000
    report = describe(device) | {
        "model": model, "weights": "synthetic", "chunks": len(run.times),
        "frames": 4 * len(run.times),
        "decoder": "fp8" if fp8_decoder else "bf16" if device.type == "cuda" else "fp32",
        "ready_s": ready_s, "first_chunk_ms": 1000 * first_s,
        "fps_with_decode": 4000 / float(steady.mean()),
        "chunk": percentiles(steady.tolist()),
        "late_chunks": int((steady > 4000 / FPS).sum()),
        "denoise": percentiles(run.denoise), "decode": percentiles(run.decode),
        "peak_memory_bytes": after.get("peak", 0),
        "memory_growth_bytes": {k: after[k] - before[k] for k in after},
    }  # fmt: skip
    if device.type == "cuda":
        config = generator.config
        report["planned_bytes"] = plan(
            config, shard(config), Way(), decoder_bytes(vae_config(config))
        ).total
    return report


def memory(device: torch.device) -> dict[str, int]:
    """Allocated, reserved and peak bytes of the device's allocator."""
    if device.type != "cuda":
        return {}
    torch.cuda.synchronize()
    return {
        "allocated": torch.cuda.memory_allocated(device),
        "reserved": torch.cuda.memory_reserved(device),
        "peak": torch.cuda.max_memory_allocated(device),
    }


def complete(model: str, argv: list[str] | None) -> dict[str, Any]:
    """The report for command-line arguments. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="engine.bench_complete", description=__doc__)
    parser.add_argument("--model", default=model)
    parser.add_argument("--chunks", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--fp8-decoder", action="store_true")
    args = parser.parse_args(argv)
    if args.model != "tiny" and not torch.cuda.is_available():
        raise EngineError(
            "bad_config", f"{args.model} needs a CUDA GPU and this machine has none",
            "run it on an H100 or H200, or use --model tiny",
        )  # fmt: skip
    return bench(args.model, args.chunks, args.fp8_decoder, args.seconds)


def main(argv: list[str] | None = None) -> int:
    try:
        report = complete("avatar-5b", argv)
    except EngineError as error:
        say(str(error))
        return error.exit_status
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if report["fps_with_decode"] >= FPS else 1


if __name__ == "__main__":
    sys.exit(main())
