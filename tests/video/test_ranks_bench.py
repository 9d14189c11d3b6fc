"""The one command for several GPUs runs here too, over gloo, and keeps what it has."""

from __future__ import annotations

import json

from engine import bench_ranks


def test_stages_run_and_are_kept(tmp_path) -> None:
    arguments = ["--gpus", "2", "--model", "tiny", "--out", str(tmp_path), "--seconds", "100"]
    assert bench_ranks.main([*arguments, "--chunks", "7", "--stages", "correct", "growth"]) == 0
    report = json.loads((tmp_path / "ranks-of-2.json").read_text())
    assert report["ranks"] == 2
    (row,) = report["stages"]["correct"]["rows"]
    assert 0 < row["error"] < row["limit"]
    assert report["stages"]["growth"]["growth_bytes"] == {}
    assert report["stages"]["growth"]["chunks"] == 7
    assert report["versions"]["torch"]


def test_out_of_time_is_said_and_fails(tmp_path, capsys) -> None:
    arguments = ["--gpus", "2", "--model", "tiny", "--out", str(tmp_path), "--seconds", "0"]
    assert bench_ranks.main([*arguments, "--stages", "correct"]) == 1
    assert "out of time" in capsys.readouterr().err


def test_a_failing_rank_is_named(tmp_path, capfd) -> None:
    arguments = ["--gpus", "4", "--model", "tiny", "--out", str(tmp_path), "--seconds", "60"]
    assert bench_ranks.main([*arguments, "--stages", "correct"]) == 1
    report = json.loads((tmp_path / "ranks-of-4.json").read_text())
    assert "heads" in report["stages"]["correct"]["rows"][0]["failed"]
