"""Each kernel's time at the real shapes, beside the device's ceilings, its truth and the compiler.

`python -m kernels.bench [--json FILE] [--compiled]`. Times are medians of graph replays over input
sets larger than the L2 cache. Knows nothing of models.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from kernels import ops, reference, shapes
from kernels.grid import Grid
from kernels.reference import FP8
from kernels.sdpa import sdpa

L2_BYTES = 60 << 20


@dataclass(frozen=True)
class Bench:
    name: str
    op: str
    args: Callable[[], tuple[Any, ...]]  # a fresh input set
    bytes: int
    flops: float = 0.0
    matrix: str = "bf16"  # which ceiling


def replay_us(calls: list[Callable[[], object]], repeats: int = 20) -> float:
    """Median microseconds of one call, by replays of a graph of all of them."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    taken = []
    for i in range(repeats + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 3:
            taken.append(start.elapsed_time(end) * 1e3 / len(calls))
    return median(taken)


def eager_us(call: Callable[[], object], repeats: int = 10) -> float:
    """Median microseconds of one eager call, launches included."""
    taken = []
    for i in range(repeats + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        if i >= 2:
            taken.append(start.elapsed_time(end) * 1e3)
    return median(taken)


def ceilings() -> dict[str, float]:
    """GB/s of a large copy (both ways counted), TFLOP/s of large bf16 and fp8 products."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    # eager: within a graph a copy becomes a memcpy node, which is a third slower
    copy = 2 * source.numel() / eager_us(lambda: target.copy_(source), 10) / 1e3
    n = 8192
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    c = torch.empty_like(a)
    bf16 = 2 * n**3 / replay_us([lambda: torch.mm(a, b.t(), out=c)], 10) / 1e6
    one, a8, b8 = torch.ones(1, device="cuda"), a.to(FP8), b.to(FP8)
    linear = ops.choose("fp8_linear", "cuda")
    fp8 = 2 * n**3 / replay_us([lambda: linear(a8, one, b8, one, None, c)], 10) / 1e6
    return {"copy_gb_s": copy, "bf16_tflops": bf16, "fp8_tflops": fp8}


def _normal(*shape: int, kind: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(kind)


def _vector(width: int) -> Tensor:
    return torch.randn(width, device="cuda")


def row_benches() -> Iterator[Bench]:
    rows, width, hidden, part = shapes.TOKENS, 7680, 10_240, 2560
    scale = torch.full((1,), 0.05, device="cuda")
    per_row = torch.zeros(rows, 1, device="cuda")

    def norm(out_scale: Tensor) -> tuple[Any, ...]:
        x, y, vectors = _normal(rows, width), _normal(rows, width), [_vector(width)] * 3
        return (x, y, *vectors, _normal(rows, width, kind=FP8), out_scale)

    size = rows * width
    yield Bench(
        "residual + gate + norm + modulate + fp8", "residual_norm", lambda: norm(scale), 7 * size
    )
    yield Bench("the same, a scale a row", "residual_norm", lambda: norm(per_row), 7 * size)
    yield Bench(
        "GELU + fp8", "gelu",
        lambda: (_normal(rows, hidden), _normal(rows, hidden, kind=FP8), scale), 3 * rows * hidden,
    )  # fmt: skip
    yield Bench(
        "residual + gate", "residual_gate",
        lambda: (_normal(rows, width), _normal(rows, width), _vector(width)), 6 * size,
    )  # fmt: skip
    yield Bench(
        "query RMSNorm", "rms_norm",
        lambda: (_normal(rows, part), _vector(part), _normal(rows, part)), 4 * rows * part,
    )  # fmt: skip
    yield Bench(
        "quantise", "quantise",
        lambda: (_normal(rows, part), _normal(rows, part, kind=FP8), scale), 3 * rows * part,
    )  # fmt: skip


def ring_benches() -> Iterator[Bench]:
    rows, heads, head_dim, ring = shapes.TOKENS, 20, 128, 5984
    width = heads * head_dim
    row = torch.tensor([ring - rows], dtype=torch.int32, device="cuda")
    length = torch.tensor([ring], dtype=torch.int32, device="cuda")
    angle = torch.rand(rows, head_dim // 2, device="cuda")

    def kept(count: int, kind: torch.dtype, turned: bool = False) -> Tensor:
        tensor = _normal(count, heads, head_dim, kind=kind)
        return tensor.permute(1, 2, 0).contiguous() if turned else tensor

    def store(kind: torch.dtype) -> tuple[Any, ...]:
        fp8 = kind == FP8
        cache = kept(rows, kind), kept(ring, kind), kept(ring, kind, fp8)
        vectors = _vector(width), _vector(width), angle.cos(), angle.sin()
        return (_normal(rows, 3 * width), *vectors, row, *cache, fp8)

    def attend(kind: torch.dtype) -> tuple[Any, ...]:
        fp8 = kind == FP8
        cache = kept(rows, kind), kept(ring, kind), kept(ring, kind, fp8)
        return (*cache, length, _normal(rows, width), None, fp8)

    flops = 4.0 * rows * ring * width
    size = rows * width
    yield Bench(
        "qk-norm + rotary + store", "qk_norm_rope_store", lambda: store(torch.bfloat16), 12 * size
    )
    yield Bench("the same into fp8", "qk_norm_rope_store", lambda: store(FP8), 9 * size)
    yield Bench("ring attention bf16", "ring_attention", lambda: attend(torch.bfloat16), 0, flops)
    yield Bench("ring attention fp8", "ring_attention", lambda: attend(FP8), 0, flops, "fp8")


def linear_benches() -> Iterator[Bench]:
    rows, one = shapes.TOKENS, torch.ones(1, device="cuda")
    for name, (inner, columns) in shapes.LINEARS.items():

        def make(inner: int = inner, columns: int = columns) -> tuple[Any, ...]:
            a, w = _normal(rows, inner, kind=FP8), _normal(columns, inner, kind=FP8)
            return a, one, w, one, _normal(columns), _normal(rows, columns)

        flops = 2.0 * rows * inner * columns
        yield Bench(f"fp8 linear {name} {inner}->{columns}", "fp8_linear", make, 0, flops, "fp8")


def picture_benches() -> Iterator[Bench]:
    base = torch.ones(1, dtype=torch.int32, device="cuda")
    for height, width, channels, columns, frames in (
        (136, 88, 1024, 1024, 2), (272, 176, 512, 512, 4), (544, 352, 256, 256, 4),
    ):  # fmt: skip
        grid = Grid(height, width)
        for kind, matrix in ((torch.bfloat16, "bf16"), (FP8, "fp8")):

            def make(
                grid: Grid = grid, c: int = channels, n: int = columns, t: int = frames,
                kind: torch.dtype = kind,
            ) -> tuple[Any, ...]:  # fmt: skip
                ring = _normal((t + 2) * grid.rows, c, kind=kind)
                weight, out = _normal(n, 27 * c, kind=kind), _normal(t * grid.rows, n)
                return ring, weight, _vector(n), out, base, grid, t, (3, 3), None, 0.02

            flops = 2.0 * 27 * channels * columns * frames * height * width
            name = f"causal conv {matrix} {frames}x{height}x{width} {channels}->{columns}"
            yield Bench(name, "causal_conv", make, 0, flops, matrix)

    def norm() -> tuple[Any, ...]:
        ring = torch.zeros(6 * grid.rows, 256, device="cuda", dtype=torch.bfloat16)
        return _normal(4 * grid.rows, 256), _vector(256), ring, base, grid, 4

    yield Bench("norm + SiLU + store 4x544x352x256", "norm_silu", norm, 4 * 4 * 544 * 352 * 256)


def measure(bench: Bench, limits: dict[str, float], compiled: bool) -> dict[str, Any]:
    """One row of the table; a failure is a row too."""
    sets = [bench.args()]
    footprint = sum(a.numel() * a.element_size() for a in sets[0] if isinstance(a, Tensor))
    sets += [bench.args() for _ in range(min(8, L2_BYTES // max(footprint, 1) + 1))]
    fast, truth = ops.choose(bench.op, "cuda"), getattr(reference, bench.op)
    us = replay_us([lambda s=s: fast(*s) for s in sets])
    row: dict[str, Any] = {"kernel": bench.name, "us": us}
    if bench.flops:
        row["tflops"] = bench.flops / us / 1e6
        row["share"] = row["tflops"] / limits[f"{bench.matrix}_tflops"]
    else:
        row["gb_s"] = bench.bytes / us / 1e3
        row["share"] = row["gb_s"] / limits["copy_gb_s"]
    row["truth_us"] = eager_us(lambda: truth(*sets[0]), 5)
    row["gain_over_truth"] = row["truth_us"] / us
    if compiled and bench.op not in ("ring_attention", "causal_conv", "fp8_linear"):
        quick = torch.compile(truth, dynamic=False)
        row["compiled_us"] = eager_us(lambda: quick(*sets[0]), 20)
        row["gain_over_compiled"] = row["compiled_us"] / us
    return row


def library_rows(limits: dict[str, float]) -> list[dict[str, Any]]:
    """cuDNN's attention on the same window, which ours has to beat."""
    q, k, v = (_normal(n, 20, 128) for n in (shapes.TOKENS, 5984, 5984))
    us = replay_us([lambda: sdpa(q, k, v)])
    tflops = 4.0 * shapes.TOKENS * 5984 * 2560 / us / 1e6
    share = tflops / limits["bf16_tflops"]
    return [{"kernel": "cuDNN attention bf16", "us": us, "tflops": tflops, "share": share}]


def run(compiled: bool, only: str) -> dict[str, Any]:
    limits = ceilings()
    rows = library_rows(limits)
    for family in (row_benches, ring_benches, linear_benches, picture_benches):
        for bench in family():
            if only not in bench.name:
                continue
            try:
                rows.append(measure(bench, limits, compiled))
            except Exception as error:
                rows.append({"kernel": bench.name, "failed": str(error).splitlines()[0][:300]})
            sys.stderr.write(f"{rows[-1]}\n")
            torch.cuda.empty_cache()
    return {"ceilings": limits, "rows": rows}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kernels.bench", description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--compiled", action="store_true", help="also time torch.compile")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        sys.stderr.write("kernels.bench needs a CUDA device; this machine has none\n")
        return 1
    report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    report |= run(args.compiled, args.only)
    text = json.dumps(report, indent=1)
    if args.json:
        args.json.write_text(text)
    else:
        sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
