"""A whole video model on one device: audio in, pictures out, decoding included.

Generator and decoder run on a thread each, as in a live session, as fast as they go.
`python -m engine.bench_complete --model avatar-5b --chunks 3000`; with `--peers` the same geometry
also with the window and the arithmetic of open systems, in the same process and with the same
decoder. Synthetic weights. Knows nothing of sockets, of encoding to a file or of screens.
"""

from __future__ import annotations

import argparse
import gc
import json
import queue
import sys
import threading
import time
from dataclasses import replace
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from engine.clock import FPS, HEIGHT, SAMPLES_PER_FRAME, WIDTH
from engine.errors import EngineError, first_line
from engine.machine import describe, say
from engine.memoryplan import plan
from engine.models.base import Chunk, Latents
from engine.models.causal_dit import Way
from engine.models.conditioning import SyntheticConditioning, shown_frames, vae_config
from engine.models.dit_config import DitConfig, preset, scheduled, shard
from engine.models.vae_memory import decoder_bytes
from engine.models.video import VideoDecoder, VideoGenerator

PLAIN = Way(fp8=False, fused_quantise=False, fused_elementwise=False)
# name -> (way, whose it is); None is ours, with graphs
ROWS: dict[str, tuple[Way | None, str]] = {
    "ours": (None, "ring, fp8, fused, graphs"),
    "peers: rerope": (replace(PLAIN, cache="rerope"), "bf16; LightX2V, LongLive relative"),
    "peers: shift": (replace(PLAIN, cache="shift"), "bf16; Self-Forcing family"),
    "ring, else as peers": (PLAIN, "bf16; what the window alone changes"),
}
WARM_UP = 12  # chunks: the window fills and the clocks settle
PEER_SECONDS = 8.0  # of each row, once its window is full


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
        self.shown = generator.frames_per_chunk
        self.frames = [np.empty((HEIGHT, WIDTH, 4), np.uint8) for _ in range(self.shown)]

    def run(self, chunks: int, seconds: float = float("inf"), filling: int = 0) -> float:
        """Until either is reached; the first `filling` chunks take none of the seconds, and three
        more are made however long they take. Returns seconds to the first chunk's pictures.
        """
        thread = threading.Thread(target=self._decode_all, name="decoder")
        thread.start()
        n = self.shown
        samples = n * SAMPLES_PER_FRAME
        begun = counted = time.perf_counter()
        for i in range(chunks):
            if i <= filling:
                counted = time.perf_counter()
            elif i > filling + 2 and time.perf_counter() - counted > seconds:
                break
            latents = self.generator.step(Chunk(0, i, n * i, n, speech_like(i, samples)))
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
    config: DitConfig, chunks: int, fp8_decoder: bool = False, seconds: float = float("inf"),
    peers: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Our row's report, memory watched throughout; `peers` adds `rows`, each like the report."""
    decoder = VideoDecoder(SyntheticConditioning(config), fp8_decoder)
    character, device = any_character(), decoder.device
    decoder.prepare(character, {}, lambda done, what: None)
    rows: dict[str, dict[str, Any]] = {}
    for name in ROWS if peers else ["ours"]:
        try:
            rows[name] = row_of(name, config, decoder, character, chunks, seconds)
        except (EngineError, torch.OutOfMemoryError) as error:
            rows[name] = {"failed": first_line(error)}
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        say(_line(name, rows[name]))
    report = describe(device) | {
        "model": config.name, "weights": "synthetic", "grid": config.grid,
        "tokens": config.tokens, "steps": config.steps, "forwards": config.forwards,
        "latent_frames": config.frames, "window_frames": config.frames * config.ring_chunks,
        "sink_tokens": config.sink_tokens, "pictures": config.pixel_frames,
        "native_fps": config.native_fps,
        "pixels": list(decoder.vae.pictures.shape[1:3]) if decoder.vae else [],
        "decoder": "fp8" if fp8_decoder else "bf16" if device.type == "cuda" else "fp32",
    }  # fmt: skip
    return report | rows["ours"] | ({"rows": rows} if peers else {})


def row_of(
    name: str, config: DitConfig, decoder: VideoDecoder, character: Any, chunks: int,
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """One way of running the model, from a bare generator on."""
    way, what = ROWS[name]
    generator = VideoGenerator(SyntheticConditioning(config), way=way)
    device = generator.device
    begun = time.perf_counter()
    generator.prepare(character, {}, lambda done, what: None)
    ready_s = time.perf_counter() - begun
    Complete(generator, decoder).run(min(WARM_UP, config.ring_chunks + 2))
    prepared = memory(device).get("peak", 0)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    generator.reset()
    decoder.reset()
    before = memory(device)
    run = Complete(generator, decoder)
    filling = config.ring_chunks - 1  # chunks that see less than a window: up to a third faster
    first_s = run.run(chunks, seconds, filling)
    after = memory(device)
    every = np.diff(run.times) * 1000
    filling = max(0, min(filling, len(every) - 2))
    # nor the last: nothing is denoised beside its decoding, which is shorter for it
    steady = every[filling:-1] if len(every) > 1 else every
    pictures, due_ms = config.pixel_frames, 1000 * shown_frames(config) / FPS
    row = {
        "way": what if device.type == "cuda" else "fp32, no graphs",
        "chunks": len(run.times), "frames": pictures * len(run.times),
        "steady_chunks": len(steady), "ready_s": ready_s, "first_chunk_ms": 1000 * first_s,
        "fps_with_decode": 1000 * pictures / float(steady.mean()),
        "chunk": percentiles(steady.tolist()), "due_ms": due_ms,
        "late_chunks": int((every > due_ms).sum()),
        "denoise": percentiles(run.denoise[filling:]), "decode": percentiles(run.decode[filling:]),
        "peak_memory_bytes": after.get("peak", 0), "prepare_peak_bytes": prepared,
        "memory_growth_bytes": {k: after[k] - before[k] for k in after},
    }  # fmt: skip
    if device.type == "cuda":
        beside = decoder_bytes(vae_config(config))
        row["planned_bytes"] = plan(config, shard(config), way or Way(), beside).total
    return row


def _line(name: str, row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{name:22s} failed: {row['failed']}"
    memory_gib = row["peak_memory_bytes"] / (1 << 30)
    return (
        f"{name:22s} step {row['denoise']['p50_ms']:.1f} ms, decode {row['decode']['p50_ms']:.1f}, "
        f"{row['fps_with_decode']:.1f} pictures/s, first {row['first_chunk_ms']:.0f} ms, "
        f"peak {memory_gib:.1f} GiB ({row['way']})"
    )


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
    parser.add_argument("--synthetic", action="store_true", help="the only weights it knows")
    parser.add_argument("--chunks", type=int, default=300)
    parser.add_argument("--seconds", type=float, help="of each row, once its window is full")
    parser.add_argument("--fp8-decoder", action="store_true")
    parser.add_argument("--peers", action="store_true", help="also with the window of open systems")
    parser.add_argument("--grid", help="tokens down x across a latent frame, as 52x30")
    parser.add_argument("--schedule", help="steps and window of a release, see schedules.py")
    parser.add_argument("--layers", type=int, help="fewer layers, for a quick look")
    args = parser.parse_args(argv)
    if not args.model.startswith("tiny") and not torch.cuda.is_available():
        raise EngineError(
            "bad_config", f"{args.model} needs a CUDA GPU and this machine has none",
            "run it on an H100 or H200, or use --model tiny",
        )  # fmt: skip
    seconds = args.seconds or (PEER_SECONDS if args.peers else float("inf"))
    return bench(configured(args), args.chunks, args.fp8_decoder, seconds, args.peers)


def configured(args: argparse.Namespace) -> DitConfig:
    """The preset with what the command line changes. Raises EngineError."""
    config = preset(args.model)
    if args.schedule:
        config = scheduled(config, args.schedule)
    if args.layers:
        config = replace(config, layers=args.layers)
    if not args.grid:
        return config
    parts = args.grid.split("x")
    if len(parts) != 2 or not all(part.isdigit() and int(part) for part in parts):
        raise EngineError("bad_input", f"--grid {args.grid!r} is no grid", "write it as 52x30")
    return replace(config, grid=(int(parts[0]), int(parts[1])))


def main(argv: list[str] | None = None) -> int:
    try:
        report = complete("avatar-5b", argv)
    except EngineError as error:
        say(str(error))
        return error.exit_status
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if report.get("fps_with_decode", 0.0) >= FPS else 1


if __name__ == "__main__":
    sys.exit(main())
