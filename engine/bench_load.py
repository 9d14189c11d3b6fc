"""How long a large checkpoint takes to load, and how much host memory that needs at its peak.

`python -m engine.bench_load` writes a Wan 14B of 28 GB in the original layout (five shards and an
index; every tensor a piece of one random block), loads it in processes of its own and deletes it.
"cold" rows drop the files from the page cache first, as far as the system obeys. Needs the disk
space, and a GPU for the figures that count: on a CPU the weights themselves lie in host memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch

from engine.errors import EngineError
from engine.machine import describe, say
from engine.models.dit_config import DitConfig, preset, shard
from engine.models.wan_keys import wan_keys
from engine.peak_memory import peak_resident

SHARD = 5_950_000_000  # bytes: five for 28.6 GB, as large as the publishers' own
BLOCK = 1 << 27  # random numbers drawn; tensors take them in turn
BUDGET_S = 150.0  # rows that would begin later are skipped, and say so
# name -> (fp8, keep, rank, ranks, cold)
ROWS: dict[str, tuple[bool, bool, int, int, bool]] = {
    "bf16, cold": (False, False, 0, 1, True),
    "fp8, first load, cold": (True, True, 0, 1, True),
    "fp8, from its cache, cold": (True, True, 0, 1, True),
    "fp8, from its cache, warm": (True, True, 0, 1, False),
    "fp8, rank 0 of 3, warm": (True, False, 0, 3, False),
    "bf16, warm": (False, False, 0, 1, False),
}


def write_checkpoint(folder: Path, config: DitConfig, shard_bytes: int = SHARD) -> list[Path]:
    """Shards and index of a model of random bf16 numbers; memory stays at one block."""
    shapes = {name: spec.shape for name, spec in wan_keys(config).items()}
    groups: list[dict[str, int]] = [{}]
    for name, shape in shapes.items():
        size = 2 * torch.Size(shape).numel()
        if sum(groups[-1].values()) + size > shard_bytes:
            groups.append({})
        groups[-1][name] = size
    source = torch.Generator().manual_seed(28)
    block = (torch.randn(min(BLOCK, 1 << 24), generator=source) * 0.02).bfloat16()
    block = block.repeat(BLOCK // block.numel()).view(torch.uint8).numpy()
    index: dict[str, str] = {}
    paths = []
    for i, group in enumerate(groups):
        path = folder / f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors"
        _write_shard(path, group, shapes, block.data)
        index |= dict.fromkeys(group, path.name)
        paths.append(path)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return paths


def _write_shard(
    path: Path, sizes: dict[str, int], shapes: dict[str, tuple[int, ...]], block: memoryview
) -> None:
    at, header = 0, {}
    for name, size in sizes.items():
        header[name] = {
            "dtype": "BF16", "shape": list(shapes[name]), "data_offsets": [at, at + size]
        }  # fmt: skip
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for size in sizes.values():
            for start in range(0, size, len(block)):
                file.write(block[: min(len(block), size - start)])
        file.flush()
        os.fsync(file.fileno())


def drop_pages(paths: list[Path]) -> None:
    """Ask the system to forget files' pages, so that they are read from the disk again."""
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class HostMemory:
    """Resident bytes above those at `begin`, at their highest: the kernel's own peak."""

    def begin(self) -> None:
        # the peak starts anew; a kernel that cannot do that counts imports in, which are smaller
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._base = psutil.Process().memory_info().rss

    def peak(self) -> int:
        return max(0, peak_resident() - self._base)


def one_load(folder: Path, name: str, cache: Path) -> dict[str, Any]:
    """Load once in this process. Returns the row."""
    from engine.models.weights import load_weights, open_model

    fp8, keep, rank, ranks, _ = ROWS[name]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.zeros(1, device=device)  # the driver's own memory is not the load's
    memory = HostMemory()
    begun = time.perf_counter()
    model = open_model(folder)
    opened = time.perf_counter()
    memory.begin()
    part = shard(model.config, rank, ranks)
    weights = load_weights(
        model, part, device, torch.bfloat16, fp8, cache if keep else None,
        lambda fraction, what: None,
    )  # fmt: skip
    if device.type == "cuda":
        torch.cuda.synchronize()
    done = time.perf_counter()
    row = {
        "configuration": name, "open_s": round(opened - begun, 3),
        "load_s": round(done - opened, 3), "peak_host_bytes": memory.peak(),
        "checkpoint_bytes": model.checkpoint.bytes, "layout": model.line,
        "layers": len(weights.blocks),
    }  # fmt: skip
    if device.type == "cuda":
        row["peak_gpu_bytes"] = torch.cuda.max_memory_allocated()
        row["gpu_bytes"] = torch.cuda.memory_allocated()
    return row


def rows(folder: Path, paths: list[Path], cache: Path, until: float) -> Iterator[dict[str, Any]]:
    """Each row in a process of its own."""
    largest = max(path.stat().st_size for path in paths)
    for name, (*_, cold) in ROWS.items():
        if time.monotonic() > until:
            yield {"configuration": name, "failed": "skipped: the time was up"}
            continue
        if cold:
            drop_pages([*paths, *cache.rglob("*.safetensors")])
        command = [
            sys.executable, "-m", "engine.bench_load", "--row", name, "--folder", str(folder),
            "--cache", str(cache),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines() or ["no words"]
            yield {"configuration": name, "failed": last[-1]}
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        row["peak_over_largest_shard"] = round(row["peak_host_bytes"] / largest, 4)
        row["gb_per_s"] = round(row["checkpoint_bytes"] / row["load_s"] / 1e9, 2)
        kept = sum(p.stat().st_size for p in cache.rglob("*.safetensors"))
        yield row | {"cache_bytes": kept}


def bench(layers: int, place: Path | None) -> dict[str, Any]:
    """Write, load, delete. Raises EngineError when the disk is too small."""
    config = preset("wan-14b", layers=layers)
    needed = int(3.2 * config.parameters) + (2 << 30)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory(prefix="bench-load-", dir=place) as made:
        root, begun = Path(made), time.monotonic()
        free = shutil.disk_usage(root).free
        if free < needed:
            raise EngineError(
                "bad_config",
                f"{needed / 1e9:.0f} GB of disk are needed, {free / 1e9:.0f} are free",
                "choose another place with --place, or fewer --layers",
            )  # fmt: skip
        folder, cache = root / "model", root / "cache"
        folder.mkdir()
        cache.mkdir()
        paths = write_checkpoint(folder, config)
        written = time.monotonic() - begun
        total = sum(path.stat().st_size for path in paths)
        say(f"wrote {total / 1e9:.1f} GB in {len(paths)} shards, {written:.1f} s")
        report = describe(device) | {
            "weights": "synthetic", "layers": layers, "shards": len(paths), "write_s": written,
            "largest_shard_bytes": max(path.stat().st_size for path in paths),
            "command": f"python -m engine.bench_load --layers {layers}",
        }  # fmt: skip
        report["rows"] = []
        for row in rows(folder, paths, cache, begun + BUDGET_S):
            report["rows"].append(row)
            say(_line(row))
    return report


def _line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['configuration']:28s} {row['failed']}"
    return (
        f"{row['configuration']:28s} {row['load_s']:.1f} s, {row['gb_per_s']} GB/s, host peak "
        f"{row['peak_host_bytes'] / 1e9:.2f} GB ({row['peak_over_largest_shard']} of a shard)"
    )


def main(argv: list[str] | None = None) -> int:
    """`python -m engine.bench_load --json`."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench_load", description=__doc__)
    parser.add_argument("--layers", type=int, default=40, help="40 make 28 GB")
    parser.add_argument("--place", type=Path, help="folder on the disk to be measured")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--row", choices=list(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        if args.row:
            report = one_load(args.folder, args.row, args.cache)
        else:
            report = bench(args.layers, args.place)
    except EngineError as error:
        say(str(error))
        return error.exit_status
    if args.json or args.row:
        sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
