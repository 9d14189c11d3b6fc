"""What the live encoder costs: `python -m engine.speech.cost [--out FILE.json]`.

CPU time of one thread, so that a busy machine distorts it less than wall time would. Knows nothing
of how right the answers are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_BLOCK
from engine.speech.encoder import SHIPPED, SpeechEncoder


def cost_ms(weights: Path, seconds: float = 60) -> dict[str, float]:
    """CPU milliseconds a 20 ms block; `best_second_ms` is the least disturbed second's mean."""
    encoder = SpeechEncoder(weights)
    pcm = np.random.default_rng(0).standard_normal(int(seconds * SAMPLE_RATE)).astype(np.float32)
    spent = []
    for start in range(0, len(pcm), SAMPLES_PER_BLOCK):
        began = time.thread_time()
        encoder.push(0.1 * pcm[start : start + SAMPLES_PER_BLOCK])
        spent.append((time.thread_time() - began) * 1000)
    by_second = np.array(spent[: len(spent) // 50 * 50]).reshape(-1, 50).mean(1)
    return {
        "mean_ms": float(np.mean(spent)),
        "median_ms": float(np.median(spent)),
        "p99_ms": float(np.percentile(spent, 99)),
        "best_second_ms": float(by_second.min()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began = time.perf_counter()
    SpeechEncoder(given.weights)
    loading = (time.perf_counter() - began) * 1000
    report = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "load_average": os.getloadavg()[0],
        "load_ms": loading,
        "block_20_ms": cost_ms(given.weights),
    }
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
