"""How long a picture takes to become a Canvas, stage by stage; one JSON object on stdout.

`python -m engine.portrait.ingest_bench PICTURE.. [--repeats 9]`. Thread CPU time and wall time,
medians; the first round, in which the models are loaded, is reported apart. Knows no limits.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.character import chosen_face
from engine.portrait.faces import Face
from engine.portrait.framing import to_canvas
from engine.portrait.pictures import Picture, read_picture
from engine.protocol.character import CharacterSpec


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, thread CPU ms, wall ms."""
    wall, cpu = time.perf_counter(), time.thread_time()
    result = work()
    return result, (time.thread_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3


def one_round(data: bytes) -> dict[str, tuple[float, float]]:
    """Stage -> (CPU ms, wall ms)."""
    picture: Picture
    face: Face
    picture, *decode = timed(lambda: read_picture(data))
    (face, _), *faces = timed(lambda: chosen_face(picture, CharacterSpec(), None))
    _, *canvas = timed(lambda: to_canvas(picture, face, None))
    stages = {"decode": decode, "faces": faces, "canvas": canvas}
    total = [sum(times) for times in zip(*stages.values(), strict=True)]
    return {name: (cpu, wall) for name, (cpu, wall) in {**stages, "total": total}.items()}


def report(path: Path, repeats: int) -> dict[str, Any]:
    data = path.read_bytes()
    first, *rounds = [one_round(data) for _ in range(repeats + 1)]
    median = {
        stage: {
            "cpu_ms": round(statistics.median(r[stage][0] for r in rounds), 1),
            "wall_ms": round(statistics.median(r[stage][1] for r in rounds), 1),
        }
        for stage in first
    }
    return {"picture": path.name, "bytes": len(data), "first_wall_ms": round(first["total"][1], 1),
            **median}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="engine.portrait.ingest_bench", description=__doc__)
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args(arguments)
    rows = [report(path, options.repeats) for path in options.pictures]
    sys.stdout.write(json.dumps({"repeats": options.repeats, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
