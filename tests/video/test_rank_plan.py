"""The plan of several GPUs: arithmetic on measured files, and refusals in one line."""

from __future__ import annotations

import json

import pytest

from engine import rank_plan
from engine.errors import EngineError
from engine.models.dit_config import preset


def test_measured_rank_is_taken_as_it_is() -> None:
    rows = rank_plan._rank_rows("avatar-57b")
    prediction = rank_plan.predict(preset("avatar-57b"), 3, 1, "fused")
    assert prediction.parts["gemm_ms"] == rows[3]["gemm_ms"]
    alone = rows[3]["step_ms"] - rank_plan._norm_ms(preset("avatar-57b")) * (2 / 3)
    assert prediction.step_ms == pytest.approx(alone + prediction.comm_ms)


def test_more_ranks_take_less_arithmetic_and_more_link() -> None:
    config = preset("avatar-57b")
    two, seven = (rank_plan.predict(config, n, 1, "collective") for n in (2, 7))
    assert seven.parts["gemm_ms"] < two.parts["gemm_ms"]
    assert seven.comm_ms > two.comm_ms
    assert seven.denoise_gib < two.denoise_gib


def test_one_rank_needs_no_link_and_the_slower_gpu_paces() -> None:
    config = preset("avatar-57b")
    apart = rank_plan.predict(config, 1, 1, "fused")
    shared = rank_plan.predict(config, 1, 0, "fused")
    assert apart.comm_ms == 0
    assert apart.period_ms == max(apart.step_ms, apart.decode_ms)
    assert shared.period_ms == pytest.approx(apart.step_ms + apart.decode_ms)
    assert shared.denoise_gib > apart.denoise_gib


def test_a_block_exchanges_three_times_each_way() -> None:
    exchange = rank_plan.Exchange(latency_us=10, gb_s=100, sum_us=5)
    # fp8 gathered, bf16 scattered: 3 MB at 100 GB/s
    assert exchange.block_us(2e6, ranks=2) == pytest.approx(3 * (20 + 30) + 2 * 5)
    rows = rank_plan.Exchange(10, 100, 5, cross_rows=True)
    assert rows.block_us(2e6, ranks=2) == pytest.approx(2 * (20 + 30) + 5)


def test_a_measurement_stands_beside_its_prediction(tmp_path, monkeypatch) -> None:
    for path in rank_plan.BENCHMARKS.glob("*.json"):
        if not path.name.startswith("ranks-"):
            (tmp_path / path.name).write_text(path.read_text())
    session = {"model": "avatar-57b", "gpus": "2+0", "communication": "fused", "step_ms": 190.0}
    (tmp_path / "ranks-of-2.json").write_text(json.dumps({"sessions": [session]}))
    monkeypatch.setattr(rank_plan, "BENCHMARKS", tmp_path)
    found = rank_plan.report("avatar-57b", ["2+0", "3+1"], ["fused"])["plan"]
    assert [row["measured_step_ms"] for row in found] == [190.0, None]
    text = "\n".join(rank_plan.table({"plan": found, "exchanges": {}}))
    assert "190.0 ms" in text
    assert "not run" in text


@pytest.mark.parametrize("gpus", ["3", "0+1", "3-1", "3+2", "a+b"])
def test_bad_gpus_are_one_line(gpus: str) -> None:
    with pytest.raises(EngineError, match="gpus"):
        rank_plan.command(["--plan", "--gpus", gpus])


def test_unmeasured_model_says_how_to_measure() -> None:
    with pytest.raises(EngineError, match="no rank of tiny has been measured"):
        rank_plan.predict(preset("tiny"), 2, 0, "fused")
