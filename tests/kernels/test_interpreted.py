"""Each Triton kernel against its truth, interpreted on the CPU."""

from __future__ import annotations

import pytest

from tests.kernels.interpreter import interpreted_errors

OPS = (
    "residual_norm", "residual_gate", "rms_norm", "square_sums", "gelu", "quantise",
    "qk_norm_rope_store", "rotate_rows", "ring_attention", "norm_silu", "causal_conv", "upsample",
    "spread",
)  # fmt: skip


@pytest.fixture(scope="module")
def errors() -> dict[str, float]:
    return interpreted_errors("tests.kernels.interpreted", 110)


@pytest.mark.parametrize("op", OPS)
def test_kernel_equals_its_truth(errors: dict[str, float], op: str) -> None:
    mine = {name: error for name, error in errors.items() if name.split()[0] == op}
    assert mine
    for name, error in mine.items():
        # the interpreter truncates towards zero when it makes fp8: up to 1/8 a value
        quantised = any(word in name for word in ("tensor", "row", "fp8"))
        assert error < (0.15 if quantised else 1e-5), name
