"""What N denoise GPUs and M decode GPUs would do, predicted before anybody has them.

From measured times of one rank without its peers (`benchmarks/avatar-57b-rank-of-N.json`), the
decoder's, and a link described by latency and bandwidth; printed beside a measurement wherever one
exists (`benchmarks/ranks-*.json`). `avatar-engine bench --plan`. Knows nothing of processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.arguments import Parser
from engine.clock import FPS
from engine.errors import EngineError
from engine.gpus import parse
from engine.memoryplan import GIB, plan
from engine.models.causal_dit import Way
from engine.models.dit_config import DitConfig, preset, shard

BENCHMARKS = Path(__file__).parent / "benchmarks"
CARD_GIB = 80  # of the card that the plan is for, an H100
FRAMES = 4
BEST = "graph, ring attention fp8"
COLUMNS = ("gemm_ms", "attention_ms", "cache_upkeep_ms", "elementwise_ms")
HBM_BYTES_S = 4.2e12  # device copy, both ways counted
CROSS_ROWS_GEMM_MS = 5.0  # more for cross-attention's weights whole on every rank, of 2 ranks


@dataclass(frozen=True, slots=True)
class Exchange:
    """One way to exchange rows: microseconds of one = latency + bytes received / bandwidth.

    A block has three gathers (qkv, cross q, ff1), three scatters (o, cross o, ff2) and two sums of
    norms; with cross-attention by rows one less of each.
    """

    latency_us: float
    gb_s: float
    sum_us: float
    cross_rows: bool = False

    @property
    def count(self) -> int:
        return 2 if self.cross_rows else 3

    def block_us(self, whole_bytes: float, ranks: int) -> float:
        """Of one block; `whole_bytes` of all rows in fp8 (a gather; a scatter has twice that)."""
        received = whole_bytes * (ranks - 1) / ranks
        both = 2 * self.latency_us + 3 * received / (self.gb_s * 1e3)
        return self.count * both + (self.count - 1) * self.sum_us

    def words(self) -> str:
        return f"{self.latency_us:g} us + bytes / {self.gb_s:g} GB/s, sums {self.sum_us:g} us"


# Fitted to whole steps of two H200 over NV18 (benchmarks/ranks-of-2.json) less one rank's own time.
# Nothing hides in "fused": its transfers overlap, and its GEMM is slower than the library's by as
# much. Before that run the plan said 283, 216 and 193 ms; it took 263, 207 and 219.
EXCHANGES: dict[str, Exchange] = {
    "collective": Exchange(30.5, 180.0, 9.1),
    "two_shot": Exchange(3.0, 300.0, 4.8),
    "fused": Exchange(11.2, 300.0, 4.8),
    "two_shot, cross by rows": Exchange(3.0, 300.0, 4.8, cross_rows=True),
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """One set-up. Times in ms a chunk of four pictures; memory in GiB."""

    gpus: str
    way: str
    parts: dict[str, float]  # the columns and "unaccounted", of one rank
    comm_ms: float
    decode_ms: float
    period_ms: float
    denoise_gib: float
    decode_gib: float
    limit: str

    @property
    def step_ms(self) -> float:
        return sum(self.parts.values()) + self.comm_ms

    @property
    def fps(self) -> float:
        return 1000 * FRAMES / self.period_ms


def predict(config: DitConfig, denoise: int, decode: int, way: str) -> Prediction:
    """Raises EngineError when a rank of `denoise` was never measured near enough."""
    parts = _rank_parts(config, denoise)
    exchange = EXCHANGES[way]
    comm = _comm_ms(config, denoise, exchange) if denoise > 1 else 0.0
    if exchange.cross_rows and denoise > 1:
        parts["gemm_ms"] += CROSS_ROWS_GEMM_MS
    step = sum(parts.values()) + comm
    decode_ms = _decode_ms()
    # On one GPU both fill the chip (avatar-5b: 53 and 90 ms took 143), else the slower paces
    period = max(step, decode_ms) if decode else step + decode_ms
    rows = exchange.cross_rows and denoise > 1
    rank = plan(config, shard(config, 0, denoise, rows), Way(attention="ring8"))
    decoder = _decoder_gib()
    return Prediction(
        f"{denoise}+{decode}", way, parts, comm, decode_ms, period,
        rank.total / GIB + (0 if decode else decoder), decoder if decode else 0.0,
        _limit(parts, comm, decode_ms, step, decode),
    )  # fmt: skip


def _limit(parts: dict[str, float], comm: float, decode_ms: float, step: float, decode: int) -> str:
    if decode and decode_ms > step:
        return "video decode"
    shares = {**parts, "link": comm} | ({} if decode else {"video decode": decode_ms})
    names = {
        "gemm_ms": "fp8 matrix rate", "attention_ms": "attention", "elementwise_ms": "memory",
        "cache_upkeep_ms": "memory", "unaccounted": "sustained clock",
    }  # fmt: skip
    largest = max(shares, key=lambda k: shares[k])
    return names.get(largest, largest)


def _rank_parts(config: DitConfig, ranks: int) -> dict[str, float]:
    """Columns of one rank of `ranks`: measured, or fitted as a + b / ranks to the ones measured."""
    rows = _rank_rows(config.name)
    fit = _fitted(rows, ranks)
    parts = {name: fit(lambda r, n=name: r[n]) for name in COLUMNS}
    # measured with every row on every rank; on N ranks the norms see 1/N of the rows
    parts["elementwise_ms"] -= _norm_ms(config) * (1 - 1 / ranks)
    parts["unaccounted"] = fit(lambda r: r["step_ms"] - sum(r[n] for n in COLUMNS))
    return parts


def _fitted(
    rows: dict[int, dict[str, Any]], ranks: int
) -> Callable[[Callable[[dict[str, Any]], float]], float]:
    if ranks in rows:
        return lambda pick: float(pick(rows[ranks]))
    if len(rows) < 2:
        raise EngineError(
            "missing_asset", f"a rank of {ranks} was not measured, nor two others to fit from",
            f"run `avatar-engine bench --rank 0 --of {ranks} --json` on a GPU and keep its output",
        )  # fmt: skip
    inverse = [1 / n for n in rows]

    def fit(pick: Callable[[dict[str, Any]], float]) -> float:
        slope, base = np.polyfit(inverse, [pick(r) for r in rows.values()], 1)
        return float(base + slope / ranks)

    return fit


def _rank_rows(model: str) -> dict[int, dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for path in sorted(BENCHMARKS.glob(f"{model}-rank-of-?.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        for row in report["rows"]:
            if row["configuration"] == BEST and "gemm_ms" in row:
                rows[report["ranks"]] = row
    if not rows:
        raise EngineError(
            "missing_asset", f"no rank of {model} has been measured",
            f"run `avatar-engine bench --model {model} --rank 0 --of 2 --json` on a GPU",
        )  # fmt: skip
    return rows


def _norm_ms(config: DitConfig) -> float:
    """The three norms of a block over all rows: x and y in, x out (bf16), fp8 out."""
    moved = 3 * config.tokens * config.width * (2 + 2 + 2 + 1)
    return 1000 * moved * config.layers * config.forwards / HBM_BYTES_S


def _comm_ms(config: DitConfig, ranks: int, exchange: Exchange) -> float:
    block_us = exchange.block_us(config.tokens * config.width, ranks)
    return config.layers * config.forwards * block_us / 1000


def _decoder_report() -> dict[str, Any]:
    return json.loads((BENCHMARKS / "video-decoder.json").read_text(encoding="utf-8"))


def _decode_ms() -> float:
    return float(_decoder_report()["bf16"]["graph"])


def _decoder_gib() -> float:
    return float(_decoder_report()["peak_gib"]["bf16"])


def measured() -> dict[tuple[str, str, str], dict[str, Any]]:
    """(model, gpus, communication) -> row of a run on real GPUs."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in sorted(BENCHMARKS.glob("ranks-*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")).get("sessions", []):
            if "step_ms" in row:
                rows = ", cross by rows" if row.get("cross_rows") else ""
                found[row["model"], row["gpus"], row["communication"] + rows] = row
    return found


def report(model: str, gpus: list[str], ways: list[str]) -> dict[str, Any]:
    """Rows of predictions with the measurement beside. Raises EngineError."""
    config, known = preset(model), measured()
    rows = []
    for text in gpus:
        wanted = parse(text)
        for way in ways if wanted.denoise > 1 else ways[:1]:
            p = predict(config, wanted.denoise, wanted.decode, way)
            run = known.get((model, p.gpus, way), {})
            rows.append({
                "model": model, "gpus": p.gpus,
                "communication": way if wanted.denoise > 1 else "none",
                "step_ms": round(p.step_ms, 1), "comm_ms": round(p.comm_ms, 1),
                "decode_ms": round(p.decode_ms, 1), "fps": round(p.fps, 1), "limit": p.limit,
                "denoise_gib": round(p.denoise_gib, 1), "decode_gib": round(p.decode_gib, 1),
                "fits_80_gb": max(p.denoise_gib, p.decode_gib) < CARD_GIB * 1e9 / GIB,
                "on_time": p.fps >= FPS, "measured_step_ms": run.get("step_ms"),
                "measured_fps": run.get("fps_with_decode"),
            })  # fmt: skip
    return {"plan": rows, "exchanges": {k: v.words() for k, v in EXCHANGES.items()}}


def command(arguments: list[str]) -> dict[str, Any]:
    """`avatar-engine bench --plan [--gpus 2+1 3+1]`: prints a table, returns the report."""
    parser = Parser(prog="avatar-engine bench --plan", description=__doc__)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--model", default="avatar-57b")
    parser.add_argument("--gpus", nargs="+", default=["1+1", "2+0", "2+1", "3+1", "4+0", "4+1"])
    parser.add_argument(
        "--communication", nargs="+", choices=list(EXCHANGES), default=list(EXCHANGES)
    )
    options = parser.parse_args(arguments)
    return report(options.model, options.gpus, options.communication)


def table(plan_report: dict[str, Any]) -> list[str]:
    """The same for people: one line a row, then what the link was taken to be."""
    lines = [
        "gpus   communication             step ms  link ms  decode ms   fps   GiB a GPU    limit"
        "                measured"
    ]
    for row in plan_report["plan"]:
        memory = f"{row['denoise_gib']:.1f}" + (
            f" + {row['decode_gib']:.1f}" if row["decode_gib"] else ""
        )
        run = row["measured_step_ms"]
        beside = (
            f"{run:.1f} ms" + (f", {row['measured_fps']:.1f} fps" if row["measured_fps"] else "")
            if run
            else "not run"
        )
        too_big = "" if row["fits_80_gb"] else " (over 80 GB)"
        lines.append(
            f"{row['gpus']:<7}{row['communication']:<26}{row['step_ms']:7.1f}{row['comm_ms']:9.1f}"
            f"{row['decode_ms']:11.1f}{row['fps']:6.1f}   {memory:<13}{row['limit']:<21}"
            f"{beside}{too_big}"
        )
    return lines + [f"{name}: {words}" for name, words in plan_report["exchanges"].items()]
