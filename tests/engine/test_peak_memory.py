"""A process's peak is its own, however much whoever started it once had."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from engine.peak_memory import peak_resident

MIB = 1 << 20


def test_a_child_of_a_large_process_is_small() -> None:
    large = np.ones(400 * MIB, np.uint8)
    own = peak_resident()
    ask = [sys.executable, "-c", "import engine.peak_memory as m; print(m.peak_resident())"]
    child = int(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)
    assert own >= large.nbytes
    assert 4 * MIB < child < 200 * MIB


def test_a_peak_stays_when_the_memory_is_given_back() -> None:
    large = np.ones(100 * MIB, np.uint8)
    high = peak_resident()
    del large
    assert peak_resident() >= high > 100 * MIB
