"""Runs a module of kernel checks in a process of its own, in Triton's interpreter on the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def interpreted_errors(module: str, timeout_s: float) -> dict[str, float]:
    """What `python -m module` prints: name of a check -> its error. Skips without Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    result = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)
