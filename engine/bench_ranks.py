"""Everything that a few minutes on several GPUs of one host should answer, in one command.

`python -m engine.bench_ranks --gpus 2 --out DIR`: starts a process a GPU, and stage after stage
checks the ranks against one rank, times the fused kernels, runs the ladder of the whole model, and
watches memory. Each stage is written to DIR as soon as it is done, so that a run cut short keeps
what it has; a table comes last. On a machine without GPUs `--model tiny` runs the same over gloo.
Knows nothing of servers or sessions (`engine.bench_sessions` does).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from engine.bench_ranks_stages import STAGES
from engine.errors import named_line
from engine.machine import describe, say
from engine.parallel import join

GRACE_S = 5.0


def main(argv: list[str] | None = None) -> int:
    options = _arguments(argv)
    return _rank(options) if options.rank is not None else _all(options)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="engine.bench_ranks", description=__doc__)
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count() or 2)
    parser.add_argument("--model", default="avatar-57b")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--seconds", type=float, default=470.0, help="of all stages together")
    parser.add_argument("--layers", type=int, default=0, help="fewer, for a quick look")
    parser.add_argument("--chunks", type=int, default=0, help="of the stage growth")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meeting", default="", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _all(options: argparse.Namespace) -> int:
    """Stage after stage, each on ranks of its own, so that one that fails or hangs costs only
    itself. Returns 1 when any fell short.
    """
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    for name in options.stages:
        left = end - time.monotonic()
        if left > 0:
            _run_stage(name, options, left)
    report = _collect(options)
    for line in table(report):
        say(line)
    stages = report["stages"].values()
    return int(any("failed" in stage or not stage.get("good", True) for stage in stages))


def _run_stage(name: str, options: argparse.Namespace, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "engine.bench_ranks", "--gpus", str(options.gpus),
            "--model", options.model, "--out", str(options.out), "--seconds", str(seconds),
            "--layers", str(options.layers), "--chunks", str(options.chunks), "--stages", name,
            "--meeting", str(Path(folder) / "meeting"),
        ]  # fmt: skip
        # ranks that each start a thread a core wait for one another: 12 chunks of tiny took 5 s
        # with one thread each and more than 200 with two, on two cores
        threads = max(1, (os.cpu_count() or 1) // options.gpus)
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        ranks = [
            subprocess.Popen([*command, "--rank", str(r)], env=environment)
            for r in range(options.gpus)
        ]
        _wait(ranks, seconds)


def _wait(ranks: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Until all have ended; once one fails or time is up the others get a moment and are killed."""
    limit = time.monotonic() + seconds
    while any(rank.poll() is None for rank in ranks):
        time.sleep(0.2)
        if any(rank.returncode for rank in ranks):
            limit = min(limit, time.monotonic() + GRACE_S)
        if time.monotonic() > limit:
            for rank in ranks:
                rank.kill()
    for rank in ranks:
        rank.wait()


def _collect(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {"stages": {}, "sessions": [], "model": options.model}
    for name in options.stages:
        path = options.out / f"stage-{name}.json"
        if path.exists():
            stage = json.loads(path.read_text(encoding="utf-8"))
            report |= stage.pop("machine")
            report["sessions"] += stage.pop("sessions", [])
            report["stages"][name] = stage
        else:
            report["stages"][name] = {"failed": "did not run: out of time, or a rank ended before"}
    report["ranks"] = options.gpus
    path = options.out / f"ranks-of-{options.gpus}.json"
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def _rank(options: argparse.Namespace) -> int:
    """The body of one rank's process: one stage, written by rank 0 or by whichever rank fails."""
    cuda, name = torch.cuda.is_available(), options.stages[0]
    device = torch.device("cuda", options.rank) if cuda else torch.device("cpu")
    begun = time.time()
    result: dict[str, Any]
    try:
        if cuda:
            torch.cuda.set_device(device)
        ranks = join(options.rank, options.gpus, device, options.meeting)
        more = {"chunks": options.chunks} if name == "growth" else {}
        result = STAGES[name](ranks, options.model, options.layers, options.seconds, **more)
        ranks.close()
    except Exception as error:  # the top of a rank's process: its report says what happened
        traceback.print_exc()
        result = {"failed": f"rank {options.rank}: {named_line(error)[:300]}"}
    result |= {"seconds": time.time() - begun, "machine": describe(device)}
    target = options.out / f"stage-{name}.json"
    if options.rank == 0 or ("failed" in result and not target.exists()):
        target.write_text(json.dumps(result), encoding="utf-8")
        say(f"{name}: {result.get('failed') or 'done'} in {result['seconds']:.1f} s")
    return int("failed" in result)


def table(report: dict[str, Any]) -> list[str]:
    """The whole run for people: one line a row."""
    lines = []
    for name, stage in report["stages"].items():
        lines.append(f"-- {name}: " + (stage.get("failed") or f"{stage['seconds']:.0f} s"))
        lines += stage.get("lines", [])
    steps = [
        row["step_ms"]
        for name in ("ladder", "fused")
        for row in report["stages"].get(name, {}).get("rows", [])
        if "step_ms" in row
    ]
    return lines + ([f"first row / last row: {steps[0] / steps[-1]:.2f} x"] if steps else [])


if __name__ == "__main__":
    sys.exit(main())
