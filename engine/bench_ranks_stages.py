"""The stages of a run on several GPUs; `engine.bench_ranks` starts ranks for each.

Every stage takes (ranks, model, layers, seconds) on every rank, and returns what rank 0 writes:
`lines` for people, `good`, and its figures. Synthetic weights. Knows nothing of processes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch

from engine.bench_complete import memory
from engine.bench_video import PEERS, RING, UNFUSED, conditioning, parts_of, timed
from engine.errors import EngineError, first_line
from engine.memoryplan import GIB, plan
from engine.models.causal_dit import Way
from engine.models.denoiser import Denoiser
from engine.models.dit_config import DitConfig, preset, shard
from engine.models.dit_weights import DitWeights, synthetic_weights
from engine.parallel import OneRank, Ranks, library_linear
from kernels.bench_comm import rows_for

Stage = Callable[..., dict[str, Any]]
ROW_ERROR = 0.05  # of the worst row: a tile gone stale makes 0.18, bf16 rounding 0.004
WAYS = ("collective", "two_shot", "fused")
FP8_WINDOW = Way(attention="ring8")
# what each row adds to the one above it
LADDER: dict[str, tuple[Way, bool]] = {
    "peers: bf16, rerope, collectives": (PEERS, False),
    "fp8 linears, unfused": (UNFUSED, False),
    "ring": (RING, False),
    "fused quantisation and elementwise": (Way(), False),
    "graph": (Way(), True),
    "fp8 window": (FP8_WINDOW, True),
    "cross-attention by rows": (FP8_WINDOW, True),
    "two-shot exchange": (replace(FP8_WINDOW, communication="two_shot"), True),
    "two-shot, cross by rows": (replace(FP8_WINDOW, communication="two_shot"), True),
    "GEMM fused with its exchange": (replace(FP8_WINDOW, communication="fused"), True),
    "fused, cross by rows": (replace(FP8_WINDOW, communication="fused"), True),
    "best exchange, cross by rows": (replace(FP8_WINDOW, communication="best"), True),
}
FUSED_ROWS = 3  # the last ones, which have ranks of their own
CROSS_ROWS = frozenset(name for name in LADDER if name.endswith("by rows"))


def build(
    config: DitConfig, ranks: Ranks, way: Way, graph: bool, weights: DitWeights | None = None,
    cross_rows: bool = False,
) -> tuple[Denoiser, torch.Tensor]:  # fmt: skip
    """A denoiser of this rank with its sink written, and the audio to feed it."""
    device, part = ranks.device, shard(config, ranks.rank, ranks.ranks, cross_rows)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    weights = weights or synthetic_weights(config, part, device, dtype, way.fp8)
    denoiser = Denoiser(config, part, weights, way, device, dtype, ranks=ranks)
    text, reference, audio = conditioning(config, device)
    denoiser.prefill(text, reference)
    if way.fp8 and way.fused_quantise:
        denoiser.calibrate()
    if graph and device.type == "cuda":
        denoiser.capture()
    return denoiser, audio


# -- the ranks against one rank ------------------------------------------------------------------


def correct(ranks: Ranks, model: str, layers: int, seconds: float) -> dict[str, Any]:
    """Latents of the ranks against one rank's: ring wraps, an interruption, every exchange."""
    cuda = ranks.device.type == "cuda"
    cases = [("tiny", preset("tiny"), 12)]
    if cuda:
        cases.append((f"{model}, 2 layers", preset(model, layers=2), 24))
    rows = []
    for name, config, chunks in cases:
        for fp8 in (False, True) if cuda and config.width % 256 == 0 else (False,):
            rows += _against_one(name, config, chunks, Way(fp8=fp8), ranks)
    return {
        "rows": rows,
        "good": all(row["good"] for row in rows),
        "lines": [_verdict(row) for row in rows],
    }


def _verdict(row: dict[str, Any]) -> str:
    found = f"relative error {row['error']:.1e} (limit {row['limit']:.0e})"
    precision = "fp8" if row["fp8"] else "full"
    return f"{row['case']:22s}{precision:6s}{row['communication']:12s}{row['failed'] or found}"


def _against_one(
    name: str, config: DitConfig, chunks: int, way: Way, ranks: Ranks
) -> list[dict[str, Any]]:
    truth = _latents(config, OneRank(ranks.device), way, chunks)
    # bf16 sums in another order; fp8 also rounds differently where a scale was agreed on
    limit = 1e-5 if ranks.device.type == "cpu" else (0.05 if way.fp8 else 0.02)
    rows = []
    ways = [(communication, False) for communication in WAYS] + [("best", True)]
    for communication, by_rows in ways if ranks.device.type == "cuda" else ways[:1]:
        row: dict[str, Any] = {
            "case": name, "fp8": way.fp8, "communication": communication, "limit": limit,
            "chunks": chunks, "cross_by_rows": by_rows, "failed": "", "error": 0.0,
        }  # fmt: skip
        try:
            exchange = replace(way, communication=communication)
            found = _latents(config, ranks, exchange, chunks, by_rows)
            row["error"] = float((found - truth).norm() / truth.norm())
        except EngineError as error:
            row["failed"] = str(error)
        row["good"] = not row["failed"] and row["error"] < limit
        rows.append(row)
    return rows


def _latents(
    config: DitConfig, ranks: Ranks, way: Way, chunks: int, cross_rows: bool = False
) -> torch.Tensor:
    """Of `chunks` chunks; before the last a chunk is begun and dropped, as by an interruption."""
    denoiser, audio = build(config, ranks, way, graph=True, cross_rows=cross_rows)
    found = []
    for i in range(chunks):
        if i == chunks - 1:
            denoiser.cache.begin()
            denoiser.forward(0)
            denoiser.rollback()
        found.append(denoiser.chunk(audio * (1 + i % 3)).clone())
    del denoiser
    _free(ranks.device)
    return torch.stack(found).float()


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


# -- the whole model -----------------------------------------------------------------------------


def ladder(ranks: Ranks, model: str, layers: int, seconds: float) -> dict[str, Any]:
    """Each row the whole model on all ranks: step, its parts on rank 0, memory."""
    return _ladder(ranks, model, layers, list(LADDER)[:-FUSED_ROWS])


def fused(ranks: Ranks, model: str, layers: int, seconds: float) -> dict[str, Any]:
    """The last rows, on ranks of its own: a kernel that waits for ever must not cost the others."""
    return _ladder(ranks, model, layers, list(LADDER)[-FUSED_ROWS:])


def _ladder(ranks: Ranks, model: str, layers: int, names: list[str]) -> dict[str, Any]:
    config = preset(model, layers=layers) if layers else preset(model)
    rows: list[dict[str, Any]] = []
    kinds = {name: (LADDER[name][0].fp8, name in CROSS_ROWS) for name in names}
    for fp8, cross_rows in sorted(set(kinds.values())):
        part = shard(config, ranks.rank, ranks.ranks, cross_rows)
        dtype = torch.bfloat16 if ranks.device.type == "cuda" else torch.float32
        weights = synthetic_weights(config, part, ranks.device, dtype, fp8)
        rows += [
            _row(name, config, ranks, *LADDER[name], weights)
            for name in names
            if kinds[name] == (fp8, cross_rows)
        ]
        del weights
        _free(ranks.device)
    return {
        "rows": rows, "sessions": _sessions(rows), "good": all("step_ms" in row for row in rows),
        "lines": [_line(row) for row in rows],
    }  # fmt: skip


def _sessions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best rows of each exchange, as `bench --plan` shows beside its predictions."""
    chosen = list(LADDER)[list(LADDER).index("fp8 window") :]
    return [r for r in rows if r["configuration"] in chosen and "step_ms" in r]


def _row(
    name: str, config: DitConfig, ranks: Ranks, way: Way, graph: bool, weights: DitWeights
) -> dict[str, Any]:
    device = ranks.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    row: dict[str, Any] = {
        "configuration": name, "model": config.name, "gpus": f"{ranks.ranks}+0",
        "ranks": ranks.ranks, "communication": way.communication, "layers": config.layers,
        "weights": "synthetic",
    }  # fmt: skip
    try:
        denoiser, audio = build(config, ranks, way, graph, weights, name in CROSS_ROWS)
    except (EngineError, torch.OutOfMemoryError) as error:
        return row | {"failed": first_line(error)}
    for _ in range(config.ring_chunks + 1):
        denoiser.chunk(audio)
    steps = 20 if device.type == "cuda" else 2
    taken = timed(partial(denoiser.chunk, audio), steps, device)
    row |= {"step_ms": median(taken), "step_ms_worst": max(taken), "steps": len(taken)}
    if device.type == "cuda":
        row["peak_memory_bytes"] = torch.cuda.max_memory_allocated(device)
        row["planned_bytes"] = plan(config, denoiser.model.part, way).total
        row |= _columns(denoiser, device)
    del denoiser
    _free(device)
    return row


def _columns(denoiser: Denoiser, device: torch.device) -> dict[str, Any]:
    """Milliseconds by kind, or why they are not known: NCCL's kernels do not bear marks."""
    try:
        parts = parts_of(denoiser, device)
    except RuntimeError as error:
        return {"parts_failed": first_line(error)}
    return {f"{'cache_upkeep' if k == 'cache' else k}_ms": ms for k, ms in parts.items()}


def _line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['configuration']:36s}{row['failed']}"
    names = ("gemm_ms", "attention_ms", "cache_upkeep_ms", "elementwise_ms", "comm_ms")
    parts = "  ".join(f"{n.removesuffix('_ms')} {row[n]:.1f}" for n in names if n in row)
    parts += row.get("parts_failed", "")
    peak = row.get("peak_memory_bytes", 0) / GIB
    return f"{row['configuration']:36s}{row['step_ms']:7.1f} ms  {parts}  {peak:.1f} GiB"


# -- memory --------------------------------------------------------------------------------------


def growth(
    ranks: Ranks, model: str, layers: int, seconds: float, chunks: int = 0
) -> dict[str, Any]:
    """Utterances of 50 lengths, every fifth cut off: full width, by default 2,000 chunks through 4
    layers; all 60 take 0.2 s a chunk.
    """
    config = preset(model, layers=layers or 4) if model != "tiny" else preset(model)
    usual, warm_up = (2_000, 60) if ranks.device.type == "cuda" else (20, 2)
    chunks = chunks or usual
    way = replace(FP8_WINDOW, communication="fused")
    try:
        denoiser, audio = build(config, ranks, way, graph=True)
    except EngineError:
        way = Way(fp8=ranks.device.type == "cuda")
        denoiser, audio = build(config, ranks, way, graph=True)
    _utterances(denoiser, audio, warm_up)
    before = memory(ranks.device)
    _utterances(denoiser, audio, chunks)
    after = memory(ranks.device)
    grown = {k: after[k] - before[k] for k in after}
    return {
        "chunks": chunks, "layers": config.layers, "communication": way.communication,
        "growth_bytes": grown, "good": not any(grown.values()),
        "lines": [f"{chunks} chunks, {way.communication}, {config.layers} layers: grown {grown}"],
    }  # fmt: skip


def _utterances(denoiser: Denoiser, audio: torch.Tensor, chunks: int) -> None:
    done = spoken = 0
    while done < chunks:
        for _ in range(min(1 + 3 * (spoken % 50), chunks - done)):
            denoiser.chunk(audio)
            done += 1
        spoken += 1
        if spoken % 5 == 0:
            denoiser.cache.begin()
            denoiser.forward(0)
            denoiser.rollback()


def kernels(ranks: Ranks, model: str, layers: int, seconds: float) -> dict[str, Any]:
    """Each fused kernel at its real shapes beside GEMM alone, collective, two-shot, the library."""
    if ranks.device.type != "cuda":
        return {"lines": ["fused kernels run between GPUs only"], "rows": []}
    rows = rows_for(ranks, library_linear, repetitions=1000)
    wrong = [r["layer"] for r in rows if r.get("error", 0) > ROW_ERROR]
    return {"rows": rows, "good": not wrong, "wrong": wrong, "lines": [*map(_kernel_line, rows)]}


def _kernel_line(row: dict[str, Any]) -> str:
    cells = [f"{row['layer']:24s}"]
    for name, value in row.items():
        if name not in ("layer", "ranks"):
            cells.append(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}")
    return "  ".join(cells)


STAGES: dict[str, Stage] = {
    "correct": correct, "kernels": kernels, "ladder": ladder, "fused": fused, "growth": growth,
}  # fmt: skip
