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


def video_rows() -> list[tuple[str, str, str, str]]:
    """(what, status, found, remedy), as `engine.doctor` shows them."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    free = torch.cuda.mem_get_info()[0] if device.type == "cuda" else 0
    rows = []
    for name, ranks in PLACES:
        config = preset(name)
        needed = plan(config, shard(config, 0, ranks), Way())
        found = f"{needed.sentence()}, {free / GIB:.1f} GiB are free here"
        # nothing is wrong with a machine that has no GPU: the portrait model needs none
        status = "warning" if 0 < free < needed.total else "ok"
        rows.append((f"{name} x {ranks}", status, found, ""))
    paths = ops.paths(device)
    slow = {op: why for op, why in paths.items() if why != "fast"}
    found = f"{len(paths) - len(slow)} of {len(paths)} on their fast path"
    why = f" ({next(iter(slow.values()))})" if slow else ""
    return [*rows, ("GPU kernels", "warning" if slow and free else "ok", found + why, "")]
