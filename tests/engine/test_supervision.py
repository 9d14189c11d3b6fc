from __future__ import annotations

from engine.supervision import HUNG_STEP_S, Liveness, RestartBudget


def test_verdicts():
    life = Liveness(0.0)
    assert life.verdict(29) == ""
    assert "not ready" in life.verdict(31)
    life.was_ready(31)
    assert life.verdict(33) == ""
    assert "no heartbeat" in life.verdict(34)  # within 3 s
    life.heard(34, {"generator": 200.0, "decoder": 0.0})
    assert life.verdict(34) == "" and life.busy  # a first step may compile
    life.finished_chunk()
    assert f"limit {HUNG_STEP_S:.0f} s" in life.verdict(34) and "generator" in life.verdict(34)
    life.heard(35, {"generator": 0.0})
    assert life.verdict(35) == "" and not life.busy


def test_restarts_are_counted_within_a_window():
    budget = RestartBudget(restarts=2, window_s=10)
    assert budget.spend(0) and budget.spend(1) and not budget.spend(2)
    assert RestartBudget(restarts=1, window_s=10).spend(0)
    slow = RestartBudget(restarts=1, window_s=10)
    assert all(slow.spend(t) for t in range(0, 100, 20))
