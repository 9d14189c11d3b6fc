"""Benchmarks of the video models run on a CPU too: no change breaks them unseen."""

from __future__ import annotations

from dataclasses import replace

from engine import bench_accuracy, bench_complete, bench_growth, bench_video
from engine.models.dit_config import preset


def test_accuracy_of_every_way() -> None:
    report = bench_accuracy.bench("tiny", 1, 0, 2)
    assert report["rows"]
    fp8 = [row for row in report["rows"] if "fp8" in str(row).lower()]
    assert fp8, report["rows"]


def test_growth_counts_utterances() -> None:
    report = bench_growth.bench("tiny", 12, with_decoder=False)
    assert report["chunks"] == 12
    assert report["utterances"] >= 3


def test_a_row_of_one_rank_of_three() -> None:
    report = bench_video.bench("tiny", 0, 3, steps=1, rows=["graph", "ring"])
    assert [row["configuration"] for row in report["rows"]] == ["graph", "ring"]
    assert all(row["step_ms"] > 0 for row in report["rows"])


def test_a_complete_run_counts_full_windows() -> None:
    config = replace(preset("tiny", layers=1), grid=(1, 1))
    report = bench_complete.bench(config, 5)
    assert report["chunks"] == 5
    assert report["steady_chunks"] == 4 - (config.ring_chunks - 1) - 1
    assert report["chunk"]["p50_ms"] > 0


def test_seconds_count_from_a_full_window_on() -> None:
    config = replace(preset("tiny", layers=1), grid=(1, 1))
    report = bench_complete.bench(config, 100, seconds=1e-9)
    assert report["chunks"] == config.ring_chunks + 2
    assert report["steady_chunks"] == 1
