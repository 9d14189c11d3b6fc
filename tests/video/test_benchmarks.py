"""Benchmarks of the video models run on a CPU too: no change breaks them unseen."""

from __future__ import annotations

from engine import bench_accuracy, bench_growth, bench_video


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
