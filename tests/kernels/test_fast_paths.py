"""Each fast path against its truth on a CUDA device, at real and odd shapes; and the choosing."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain

import pytest
import torch

from kernels import ops, reference, shapes
from kernels.reference import FP8
from tests.kernels.cases import Draw, error_of, picture_cases, relative_error, ring_cases, row_cases

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
RING = ((748, 20, 128, 5984), (748, 24, 128, 5984), (748, 15, 128, 1504), (13, 3, 64, 208))
PICTURE = (
    (68, 44, 1024, 1024, 1), (68, 44, 256, 256, 4), (31, 17, 128, 16, 2), (9, 5, 64, 32, 1),
    (31, 17, 384, 192, 2), (31, 17, 192, 96, 4),
)  # fmt: skip


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("op", [op for op in ops.FAST if op != "fp8_linear"])
def test_fast_path_equals_truth(op: str) -> None:
    draw = Draw("cuda", torch.bfloat16)
    cases = chain(
        row_cases(draw, shapes.REAL_ROWS + shapes.ODD_ROWS),
        ring_cases(draw, RING),
        picture_cases(draw, PICTURE[:2], (False, True)),
        picture_cases(draw, PICTURE[2:], (False,)),
    )
    seen = 0
    for case in cases:
        if case.op != op:
            continue
        error = error_of(case, ops.choose(op, "cuda"), getattr(reference, op))
        print(f"{case.name}: {error:.1e}")
        quantised = any(word in case.name for word in (" tensor", " row", "fp8"))
        assert error < (4e-2 if quantised else 6e-3), case.name
        seen += 1
    assert seen


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("per_row", [False, True])
def test_fp8_linear(per_row: bool) -> None:
    draw = Draw("cuda", torch.bfloat16)
    for rows, (inner, columns) in ((748, shapes.LINEARS["o"]), (16, (256, 512))):
        a, w = draw(rows, inner).to(FP8), draw(columns, inner).to(FP8)
        a_scale = torch.full((rows, 1) if per_row else (1,), 0.02, device="cuda")
        w_scale = torch.full((1, columns) if per_row else (1,), 0.03, device="cuda")
        bias = draw(columns)
        got, want = draw.blank(rows, columns), draw.blank(rows, columns)
        ops.choose("fp8_linear", "cuda")(a, a_scale, w, w_scale, bias, got)
        reference.fp8_linear(a, a_scale, w, w_scale, bias, want)
        assert relative_error(got, want) < 6e-3


def test_cpu_takes_the_truth_and_says_why() -> None:
    for op, path in ops.paths("cpu").items():
        assert path.startswith("truth: CPU"), op
        assert ops.choose(op, "cpu") is getattr(reference, op)


def test_importing_ops_starts_neither_cuda_nor_triton() -> None:
    check = (
        "import sys, torch, kernels.ops\n"
        "assert 'triton' not in sys.modules and not torch.cuda.is_initialized()"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)


def test_static_scale_saturates_and_row_scale_does_not() -> None:
    x = torch.tensor([[1.0, 1000.0]])
    out = torch.empty(1, 2).to(FP8)
    reference.quantise(x, out, torch.tensor([1.0]))
    assert out.float().tolist() == [[1.0, 448.0]]
    scale = torch.zeros(1, 1)
    reference.quantise(x, out, scale)
    assert (out.float() * scale)[0, 1].item() == pytest.approx(1000.0)
