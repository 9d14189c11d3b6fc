"""Where every millisecond of one tensor-parallel rank goes: a ladder of ways, in one run.

The first row keeps its window and its arithmetic as open systems do, the last as we do; weights are
synthetic, communication between ranks is not in it. `python -m engine.bench_video --model
avatar-57b --rank 0 --of 3`. Knows nothing of decoding or of live sessions.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from engine.errors import EngineError, first_line
from engine.machine import describe, say
from engine.memoryplan import plan
from engine.models.causal_dit import Way
from engine.models.denoiser import Denoiser
from engine.models.dit_config import PRESETS, DitConfig, Shard, preset, shard
from engine.models.dit_weights import DitWeights, synthetic_weights

PEERS = Way(fp8=False, cache="rerope", fused_quantise=False, fused_elementwise=False)
UNFUSED = replace(PEERS, fp8=True)
RING = replace(UNFUSED, cache="ring")
# name -> (way, graph): each row changes one thing
LADDER: dict[str, tuple[Way, bool]] = {
    "peers: bf16, rerope": (PEERS, False),
    "fp8 linears, unfused": (UNFUSED, False),
    "shift": (replace(UNFUSED, cache="shift"), False),
    "ring": (RING, False),
    "fused quantisation": (replace(RING, fused_quantise=True), False),
    "fused elementwise": (Way(), False),
    "graph": (Way(), True),
    "graph, ring attention bf16": (Way(attention="ring"), True),
    "graph, ring attention fp8": (Way(attention="ring8"), True),
}
KINDS = ("gemm", "attention", "cache", "elementwise")


def conditioning(config: DitConfig, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Random (text, reference latent, audio) of the right shapes."""
    source = torch.Generator(device).manual_seed(11)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=source, device=device)

    return (
        normal(config.text_tokens, config.width),
        normal(config.sink_tokens, config.token_channels),
        normal(config.audio_tokens, config.audio_features),
    )


def timed(call: Callable[[], object], count: int, device: torch.device) -> list[float]:
    """Milliseconds of each of `count` calls; device events, or wall time on a CPU."""
    if device.type != "cuda":
        return [_wall_ms(call) for _ in range(count)]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in pairwise(events)]


def _wall_ms(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def ready(
    config: DitConfig, part: Shard, weights: DitWeights, way: Way, graph: bool, device: torch.device
) -> tuple[Denoiser, torch.Tensor]:
    """A denoiser with a full window, and the audio to feed it."""
    text, reference, audio = conditioning(config, device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    denoiser = Denoiser(config, part, weights, way, device, dtype)
    denoiser.prefill(text, reference)
    if way.fp8 and way.fused_quantise:
        denoiser.calibrate()
    if graph:
        denoiser.capture()
    for _ in range(config.ring_chunks + 1):
        denoiser.chunk(audio)
    return denoiser, audio


def parts_of(denoiser: Denoiser, device: torch.device) -> dict[str, float]:
    """Device milliseconds of one step by kind: the forwards from events within a graph, whatever
    the row's way, so that launches do not count; then the window's work once a chunk.
    """
    parts = {k: denoiser.config.forwards * ms for k, ms in denoiser.forward_parts().items()}
    if not parts:
        raise RuntimeError("the marks changed what they measured")

    def once_a_chunk() -> None:
        denoiser.cache.begin()
        denoiser.cache.commit()

    with torch.inference_mode():
        upkeep = median(timed(once_a_chunk, 7, device))
    parts["cache"] = parts.get("cache", 0.0) + upkeep
    return parts


def row_of(
    name: str, config: DitConfig, part: Shard, weights: DitWeights, steps: int, device: torch.device
) -> dict[str, Any]:
    """Measure one row of the ladder."""
    way, graph = LADDER[name]
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    denoiser, audio = ready(config, part, weights, way, graph and device.type == "cuda", device)
    taken = timed(lambda: denoiser.chunk(audio), steps, device)
    row: dict[str, Any] = {
        "configuration": name, "model": config.name, "ranks": part.ranks, "weights": "synthetic",
        "step_ms": median(taken), "step_ms_worst": max(taken), "steps": steps, "comm_ms": 0.0,
    }  # fmt: skip
    if device.type == "cuda":
        row["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        row["planned_bytes"] = plan(config, part, way).total
        try:
            parts = parts_of(denoiser, device)
        except RuntimeError as error:
            return row | {"parts_failed": first_line(error)}
        row |= {f"{'cache_upkeep' if k == 'cache' else k}_ms": parts.get(k, 0.0) for k in KINDS}
        row["device_ms"] = sum(parts.values())
        # launches that the device waited for, sampler, audio context
        row["other_ms"] = row["step_ms"] - sum(parts.get(k, 0.0) for k in KINDS)
    return row


def ladder(
    config: DitConfig, part: Shard, steps: int, device: torch.device, names: list[str]
) -> list[dict[str, Any]]:
    """Rows by name, weights built once a kind. A row that fails says why and the rest go on."""
    rows: list[dict[str, Any]] = []
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    for fp8 in (False, True):
        chosen = [n for n in names if LADDER[n][0].fp8 == fp8]
        if not chosen:
            continue
        weights = synthetic_weights(config, part, device, dtype, fp8)
        for name in chosen:
            try:
                rows.append(row_of(name, config, part, weights, steps, device))
            except (RuntimeError, EngineError) as error:
                reason = first_line(error)
                rows.append({"configuration": name, "failed": reason})
            say(_line(rows[-1]))
        del weights
    return rows


def _line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['configuration']:28s} failed: {row['failed']}"
    parts = [f"{k.removesuffix('_ms')} {row[k]:.1f}" for k in row if k.endswith("_ms")]
    parts += [row["parts_failed"]] if "parts_failed" in row else []
    memory = row.get("peak_memory_bytes", 0) / (1 << 30)
    return f"{row['configuration']:28s} {', '.join(parts)}, peak {memory:.1f} GiB"


def bench(
    model: str, rank: int = 0, ranks: int = 1, steps: int = 20, rows: list[str] | None = None,
    layers: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The report of one rank. Raises EngineError for an unknown model, rank or row."""
    config = preset(model) if layers is None else preset(model, layers=layers)
    part = shard(config, rank, ranks)
    unknown = [name for name in rows or [] if name not in LADDER]
    if unknown:
        known = ", ".join(LADDER)
        raise EngineError("bad_input", f"no row is called {unknown[0]!r}", f"rows are {known}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    needed = plan(config, part, Way())
    if device.type == "cuda":
        needed.require(torch.cuda.mem_get_info()[0])
    elif model != "tiny":
        raise EngineError(
            "bad_config", f"{needed.sentence()} and this machine has no CUDA GPU",
            "run it on an H100 or H200, or use --model tiny",
        )  # fmt: skip
    say(needed.sentence())
    report = describe(device) | {
        "weights": "synthetic", "model": model, "rank": rank, "ranks": ranks,
        "layers": config.layers, "memory_plan": needed.parts,
    }  # fmt: skip
    report["rows"] = ladder(config, part, steps, device, rows or list(LADDER))
    return report


def _arguments(model: str, argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="avatar-engine bench", description=__doc__)
    parser.add_argument("--model", default=model, choices=list(PRESETS))
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--of", type=int, default=1, dest="ranks")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rows", nargs="*", help="only these rows of the ladder")
    parser.add_argument("--layers", type=int, help="fewer layers, for a quick look")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser.parse_args(argv)


def _report(args: argparse.Namespace) -> dict[str, Any]:
    return bench(args.model, args.rank, args.ranks, args.steps, args.rows, args.layers)


def avatar_57b(arguments: list[str], folders: object = None) -> dict[str, Any]:
    """For `avatar-engine bench --model avatar-57b --rank 0 --of 3`."""
    return _report(_arguments("avatar-57b", arguments))


def tiny(arguments: list[str], folders: object = None) -> dict[str, Any]:
    """The same ladder on the tiny model, which any machine runs."""
    return _report(_arguments("tiny", arguments))


def avatar_5b(arguments: list[str], folders: object = None) -> dict[str, Any]:
    """The complete model: pictures a second with decoding included."""
    from engine.bench_complete import complete

    return complete("avatar-5b", arguments)


def main(argv: list[str] | None = None) -> int:
    """`python -m engine.bench_video`; `avatar-engine bench --model ...` does the same."""
    args = _arguments("avatar-57b", argv)
    try:
        report = _report(args)
    except EngineError as error:
        say(str(error))
        return error.exit_status
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
