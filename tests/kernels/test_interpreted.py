"""Each Triton kernel against its truth, interpreted on the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPS = (
    "residual_norm", "residual_gate", "rms_norm", "square_sums", "gelu", "quantise",
    "qk_norm_rope_store", "rotate_rows", "ring_attention", "norm_silu", "causal_conv", "upsample",
    "spread",
)  # fmt: skip


@pytest.fixture(scope="module")
def errors() -> dict[str, float]:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    result = subprocess.run(
        [sys.executable, "-m", "tests.kernels.interpreted"],
        cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True,
        timeout=110, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("op", OPS)
def test_kernel_equals_its_truth(errors: dict[str, float], op: str) -> None:
    mine = {name: error for name, error in errors.items() if name.split()[0] == op}
    assert mine
    for name, error in mine.items():
        # the interpreter truncates towards zero when it makes fp8: up to 1/8 a value
        quantised = any(word in name for word in ("tensor", "row", "fp8"))
        assert error < (0.15 if quantised else 1e-5), name
