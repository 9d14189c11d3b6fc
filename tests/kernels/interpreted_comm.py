"""The kernels between ranks in Triton's interpreter, ranks one after another; prints JSON.

A process of its own: TRITON_INTERPRET must be set before Triton is imported.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import torch
import triton.runtime.interpreter as interpreter

from kernels import ops
from kernels.gemm_blocks import Blocks
from tests.kernels.cases import Draw, relative_error
from tests.kernels.interpreted import _scalars_as_indices
from tests.kernels.ranks import Call, group, linear_call, plain_call, run

SMALL = Blocks(16, 16, 32, 4, 2)


def calls(draw: Draw, ranks: int) -> Iterator[tuple[str, Call, dict[str, Any]]]:
    """Tiles that do not divide, both forms of the scales, each way of storing, twice each: the
    second call works in the other half."""
    for turn in range(2):
        scaled = turn == 0
        for rows, columns, inner in ((21, 48, 48),) if turn or ranks > 1 else ():
            label = f"{ranks} ranks {rows}x{columns}x{inner} {'row' if scaled else 'tensor'}"
            for op in ("gather_linear", "linear_scatter"):
                call = linear_call(draw, op, ranks, rows, columns, inner, scaled, not scaled)
                yield f"{op} {label}", call, {"blocks": SMALL}
        for op in ("peer_gather", "peer_scatter", "peer_sum", "square_sum"):
            yield f"{op} {ranks} ranks turn {turn}", plain_call(draw, op, ranks, 37, 200), {}


def main() -> None:
    interpreter._patch_lang_tensor = _scalars_as_indices
    torch.set_num_threads(1)
    draw = Draw("cpu", torch.float32)
    errors = {}
    for ranks in (1, 2, 4):
        spaces = group(ranks, 1 << 18, 3, "cpu")  # all ops share one workspace
        for name, call, more in calls(draw, ranks):
            fast = getattr(importlib.import_module(ops.PEERS[call.op][0]), call.op)
            call.poison()
            run(call, fast, spaces, **more)
            pairs = zip(call.outputs(), call.want, strict=True)
            errors[name] = max(relative_error(got, want) for got, want in pairs)
    sys.stdout.write(json.dumps(errors))


if __name__ == "__main__":
    main()
