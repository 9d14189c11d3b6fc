"""p50 and p95 per stage, over the newest samples. Knows nothing of what the stages do."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

KEPT = 20_000  # samples a stage: 14 minutes of frames at 24 fps


class StageStats:
    """`add` milliseconds by stage name, `summary` them at any time."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._samples: dict[str, deque[float]] = {}

    def add(self, stage_ms: Mapping[str, float]) -> None:
        for stage, ms in stage_ms.items():
            self._samples.setdefault(stage, deque(maxlen=self._kept)).append(ms)

    def summary(self) -> dict[str, dict[str, float]]:
        """{stage: {"p50_ms", "p95_ms"}} in the order in which stages appeared."""
        return {
            stage: {
                "p50_ms": round(float(np.percentile(values, 50)), 3),
                "p95_ms": round(float(np.percentile(values, 95)), 3),
            }
            for stage, values in self._samples.items()
        }
