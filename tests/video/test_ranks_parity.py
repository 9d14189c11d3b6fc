"""Several ranks give what one gives: every way, padded, round the ring, with interruptions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.errors import EngineError
from engine.marks import Marks
from engine.memoryplan import plan
from engine.models.causal_dit import Way
from engine.models.denoiser import Denoiser
from engine.models.dit_config import preset, shard
from engine.models.dit_weights import synthetic_weights
from engine.parallel import PEER_BYTES, OneRank, join, rows_of
from tests.video import ranks_world

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")
pytestmark = pytest.mark.timeout(300)  # nine processes on what cores there are
MANY = [world for world in ranks_world.WORLDS if world > 1]
Results = dict[tuple[int, int], dict[str, np.ndarray]]


def run_world(folder: Path, *arguments: str, seconds: float = 280) -> None:
    """A world of processes of its own, cleanly ended whatever happens."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.video.ranks_world", str(folder)]
    # the last returns freed tensors to the system at once: resident bytes are what is held
    plain = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "262144"}
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=plain,
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """(world, rank) -> what that rank got."""
    folder = tmp_path_factory.mktemp("ranks")
    run_world(folder)
    found = {}
    for world in ranks_world.WORLDS:
        for rank in range(world):
            with np.load(folder / f"world{world}_rank{rank}.npz") as kept:
                found[world, rank] = dict(kept)
    return found


@pytest.mark.parametrize(
    ("case", "world"),
    [(n, w) for n, case in ranks_world.CASES.items() for w in case.worlds if w > 1],
)
def test_ranks_give_what_one_gives(results: Results, case: str, world: int) -> None:
    want, truth = results[1, 0], f"{case}/latents"
    for rank in range(world):
        got = results[world, rank]
        assert got[f"{case}/finite"]
        assert np.array_equal(got[truth], results[world, 0][truth]), "ranks differ"
    error = np.linalg.norm(got[truth] - want[truth]) / np.linalg.norm(want[truth])
    # fp32: the order of sums. fp8: each rank's weights have a scale of their own, so they round
    # otherwise; as far from one rank as both are from full precision
    assert error < (0.06 if "fp8" in case else 2e-5)


@pytest.mark.parametrize("world", MANY)
def test_static_scales_are_agreed(results: Results, world: int) -> None:
    want = results[1, 0]["fp8/scales"]
    for rank in range(world):
        got = results[world, rank]["fp8/scales"]
        assert np.array_equal(got, results[world, 0]["fp8/scales"])
        assert np.abs(got / want - 1).max() < 0.2  # padded rows would show here


@pytest.mark.parametrize("world", MANY)
def test_no_rank_holds_more_than_its_part_and_one_tensor(results: Results, world: int) -> None:
    for rank in range(world):
        peak, kept, largest, whole = results[world, rank]["loading"]
        # embeddings, which every rank holds, are a quarter of this small model
        assert kept < 1.1 * whole / world + 0.25 * whole
        assert peak < kept + 1.2 * largest + (3 << 20)


def test_memory_does_not_grow_with_utterances(tmp_path: Path) -> None:
    run_world(tmp_path, "300")
    _assert_flat(tmp_path, 300)


@pytest.mark.slow
@pytest.mark.timeout(2600)
def test_memory_does_not_grow_over_ten_thousand_chunks(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("takes minutes: ask for it with -m slow")
    run_world(tmp_path, "10000", seconds=2500)
    _assert_flat(tmp_path, 10_000)


def _assert_flat(folder: Path, chunks: int) -> None:
    for rank in range(2):
        with np.load(folder / f"world2_rank{rank}.npz") as kept:
            assert kept["done"] == chunks
            resident = kept["resident"]
        # the allocator settles in the first tenth
        assert resident[-1] - resident[1] < 2 << 20, resident


def test_rows_are_shared_and_padded() -> None:
    class Group:
        rank, ranks = 2, 3

    rows = rows_of(Group(), 748)  # type: ignore[arg-type]
    assert (rows.share, rows.first, rows.own) == (250, 500, 248)
    Group.rank, Group.ranks = 3, 4
    assert rows_of(Group(), 6).own == 0  # type: ignore[arg-type]
    assert rows_of(OneRank(CPU), 6).own == 6


def test_wrong_configurations_are_refused_with_the_remedy(tmp_path: Path) -> None:
    meeting = str(tmp_path / "meeting")
    with pytest.raises(EngineError, match="at most 60 ranks"):
        shard(preset("avatar-57b"), 0, 61)
    with pytest.raises(EngineError, match="leave rank 6 without any: 6 ranks of 4 heads"):
        shard(preset("avatar-5b"), 0, 7)
    with pytest.raises(EngineError, match="rank 3 of 3"):
        join(3, 3, CPU, meeting)
    with pytest.raises(EngineError, match=r"rank 0 of 3 waited 0.2 s for rank 1 and 2") as late:
        join(0, 3, CPU, meeting, timeout_s=0.2)
    assert late.value.code == "timeout" and "\n" not in str(late.value)
    config = preset("tiny")
    weights = synthetic_weights(config, shard(config), CPU, torch.float32)
    alone = shard(config, 0, 3, cross_rows=True)
    with pytest.raises(EngineError, match="rank 0 of 3 is alone"):
        Denoiser(config, alone, weights, Way(fp8=False), CPU, torch.float32)
    way = Way(fp8=False, communication="pigeon")
    with pytest.raises(EngineError, match="'pigeon': use collective, two_shot, fused, best"):
        Denoiser(config, shard(config), weights, way, CPU, torch.float32)


@pytest.mark.parametrize("world", MANY)
def test_a_group_is_set_up_once(results: Results, world: int) -> None:
    for rank in range(world):
        again, larger = results[world, rank]["refusals"]
        assert "start each rank in a process of its own" in again
        assert "bytes of peer memory asked for" in larger and "restart the engine" in larger
        assert results[world, rank]["without peers"] == "collective"


def test_seven_ranks_of_sixty_heads_pad() -> None:
    shares = [shard(preset("avatar-57b"), rank, 7).heads for rank in range(7)]
    assert shares == [9] * 7


def test_the_plan_counts_the_exchange_and_whole_cross_weights() -> None:
    config, way = preset("avatar-57b"), Way(communication="best")
    heads = plan(config, shard(config, 0, 3), way).parts
    rows = plan(config, shard(config, 0, 3, cross_rows=True), way).parts
    assert heads["exchange"] > PEER_BYTES
    assert 4.6e9 < rows["weights"] - heads["weights"] < 4.8e9  # two thirds of 120 matrices
    assert plan(config, shard(config), way).parts["exchange"] == 0


def test_columns_that_cannot_be_are_not_told() -> None:
    class Event:
        def __init__(self, at: float) -> None:
            self.at = at

        def elapsed_time(self, after: Event) -> float:
            return after.at - self.at

    marks = Marks()
    marks.stretches = [("gemm", Event(0)), ("comm", Event(5)), ("end", Event(10))]  # type: ignore[list-item]
    assert marks.sums(whole_ms=8.0) == {"gemm": 4.0, "comm": 4.0}
    marks.stretches[1] = ("comm", Event(0.5))  # type: ignore[assignment]
    assert marks.sums(whole_ms=5.0) == {}
