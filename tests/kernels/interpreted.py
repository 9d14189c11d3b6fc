"""Runs every Triton kernel in the interpreter on the CPU; prints {case: relative error} as JSON.

A process of its own: TRITON_INTERPRET must be set before Triton is imported.
"""

from __future__ import annotations

import importlib
import json
import sys
from itertools import chain
from typing import Any

import torch
import triton.runtime.interpreter as interpreter

from kernels import ops, reference
from tests.kernels.cases import Draw, error_of, picture_cases, ring_cases, row_cases

_patch = interpreter._patch_lang_tensor


def _scalars_as_indices(tensor: Any, scope: Any) -> None:
    """Triton 3.6 turns one-element arrays into loop bounds with int(), which numpy 2.4 refuses."""
    _patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def main() -> None:
    interpreter._patch_lang_tensor = _scalars_as_indices
    torch.set_num_threads(1)
    draw = Draw("cpu", torch.float32)
    errors = {}
    cases = chain(
        row_cases(draw, ((1, 32), (3, 200))),
        ring_cases(draw, ((5, 3, 16, 256),)),
        picture_cases(draw, ((3, 5, 128, 16, 2), (3, 2, 64, 96, 1), (3, 2, 64, 192, 1)), (False,)),
    )
    for case in cases:
        fast = getattr(importlib.import_module(ops.FAST[case.op][0]), case.op)
        errors[case.name] = error_of(case, fast, getattr(reference, case.op))
    sys.stdout.write(json.dumps(errors))


if __name__ == "__main__":
    main()
