"""What `doctor` says of the video models: the memory each needs, and which kernels run fast here.

Knows nothing of how rows are shown.
"""

from __future__ import annotations

import torch

from engine.memoryplan import GIB, plan
from engine.models.causal_dit import Way
from engine.models.dit_config import preset, shard
from kernels import ops

PLACES = (("avatar-5b", 1), ("avatar-57b", 2), ("avatar-57b", 3), ("avatar-57b", 4))


def _needed(name: str, ranks: int) -> int:
    """Bytes on each of `ranks` GPUs."""
    config = preset(name)
    return plan(config, shard(config, 0, ranks), Way()).total


def video_rows() -> list[tuple[str, str, str, str]]:
    """(what, status, found, remedy), as `engine.doctor` shows them."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        sizes = ", ".join(f"{name} x {n} {_needed(name, n) / GIB:.0f}" for name, n in PLACES)
        found = f"no CUDA GPU here; GiB needed on each: {sizes}"
        return [("Video models", "warning", found, "only these need one, portrait does not")]
    free = torch.cuda.mem_get_info()[0]
    rows = []
    for name, ranks in PLACES:
        config = preset(name)
        needed = plan(config, shard(config, 0, ranks), Way())
        found = f"{needed.sentence()}, {free / GIB:.1f} GiB are free here"
        status = "warning" if free < needed.total else "ok"
        rows.append((f"{name} x {ranks}", status, found, ""))
    paths = ops.paths(device)
    slow = {op: why for op, why in paths.items() if why != "fast"}
    found = f"{len(paths) - len(slow)} of {len(paths)} on their fast path"
    why = f" ({next(iter(slow.values()))})" if slow else ""
    return [*rows, ("GPU kernels", "warning" if slow else "ok", found + why, "")]
