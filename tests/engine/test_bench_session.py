"""What a session's figures say when pictures are dropped or late; no engine, no sockets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.bench_session import talked
from engine.errors import EngineError


class Heard:
    """A talker whose pictures are [(seconds, epoch, frame)], come what may."""

    def __init__(self, pictures: list[tuple[float, int, int]]) -> None:
        self.arrived: list[tuple[float, int, int]] = []
        self.timings: list[Any] = []
        self.epoch, self._pictures = 1, pictures

    def start(self) -> None:
        """Nothing to start."""

    def talk(self, pcm: np.ndarray, seconds: float) -> None:
        self.arrived += self._pictures
        self.timings.append(
            SimpleNamespace(stage_ms={"denoise": 9.0}, ranks=[], capture_to_publish_ms=100.0)
        )


def report(frames: list[int]) -> dict[str, Any]:
    pictures = [(100 + n / 24, 1, n) for n in frames]
    return talked(Heard([*pictures, (100.0, 0, 3)]), np.zeros(1), 2.0)  # type: ignore[arg-type]


def test_all_pictures_are_24_a_second() -> None:
    row = report(list(range(49)))
    assert row["fps_with_decode"] == pytest.approx(24)
    assert (row["frames"], row["missing_frames"], row["late_frames"]) == (49, 0, 0)


def test_pictures_that_never_came_are_not_counted() -> None:
    row = report([n for n in range(49) if n % 8 < 4])
    assert row["fps_with_decode"] == pytest.approx(12, abs=0.3)
    assert row["missing_frames"] == 24


def test_silence_is_a_failure() -> None:
    with pytest.raises(EngineError, match="no pictures"):
        report([])
