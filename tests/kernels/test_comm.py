"""The kernels between ranks: interpreted on the CPU; on one GPU, two ranks on two streams; truths.

Several GPUs: `kernels.bench_comm`, from a script that starts the ranks.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernels import ops, reference_peers
from kernels.peer import BOTH, FLAGS, PUSH, PeerBuffer, Workspace, gather_half, scatter_half
from tests.kernels.cases import Draw, relative_error
from tests.kernels.interpreter import interpreted_errors
from tests.kernels.ranks import Call, group, linear_call, plain_call, run

LINEARS = ("gather_linear", "linear_scatter")
PLAIN = ("peer_gather", "peer_scatter", "peer_sum", "square_sum")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def worst(call: Call) -> float:
    return max(relative_error(g, w) for g, w in zip(call.outputs(), call.want, strict=True))


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("op", LINEARS + PLAIN)
def test_truth_equals_the_formula(op: str, ranks: int) -> None:
    draw = Draw("cpu", torch.float32)
    spaces = group(ranks, 1 << 18, 4, "cpu")
    for turn in range(3):
        if op in LINEARS:
            call = linear_call(draw, op, ranks, 9, 32, 48, turn == 1, turn == 0)
        else:
            call = plain_call(draw, op, ranks, 9, 32)
        call.poison()
        run(call, getattr(reference_peers, op), spaces)
        assert worst(call) < 1e-6
    assert ops.choose(op, "cpu") is getattr(reference_peers, op)


def test_truth_refuses_to_wait() -> None:
    x = torch.zeros(2, 8)
    with pytest.raises(ValueError, match="all PUSH, then all TAKE"):
        reference_peers.peer_sum(x, x, group(2, 1 << 17, 1, "cpu")[0], BOTH)


def test_workspace_refuses_what_does_not_fit() -> None:
    space = group(2, gather_half(8, 64, 2), 4, "cpu")[0]
    space.check(16, 64)
    with pytest.raises(ValueError, match="workspace too small: 32 rows of 64 bytes"):
        space.check(32, 64)
    with pytest.raises(ValueError, match="flags"):
        space.check(16, 64, tiles=FLAGS)
    with pytest.raises(ValueError, match="row scales"):
        group(2, 1 << 24, 4, "cpu")[0].check(20_000, 64, scales=True)
    with pytest.raises(ValueError, match="one size"):
        PeerBuffer.of([torch.zeros(4), torch.zeros(5)], 0)
    with pytest.raises(ValueError, match="needs more than"):
        Workspace.over(PeerBuffer.of([torch.zeros(64, dtype=torch.uint8)], 0), 1)


def test_halves_never_overlap_whatever_the_row() -> None:
    """Where one shape's second half starts, no other shape's first half may still be."""
    half = scatter_half(374, 7680, 2)
    space = group(2, half, 4, "cpu")[0]
    first_ends, second_starts = [], []
    for row_bytes, rows in ((7680, 748), (15360, 768), (23040, 20), (48, 5), (65536, 2)):
        space.check(rows, row_bytes)
        first_ends.append(rows * row_bytes)
        second_starts.append(space.base_row(row_bytes) * row_bytes)
        assert space.rows(0, row_bytes).shape[0] >= space.base_row(row_bytes) + rows
    assert max(first_ends) <= min(second_starts)


@pytest.fixture(scope="module")
def interpreted() -> dict[str, float]:
    return interpreted_errors("tests.kernels.interpreted_comm", 200)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("op", LINEARS + PLAIN)
def test_interpreted_kernel_equals_the_formula(interpreted: dict[str, float], op: str) -> None:
    mine = {name: error for name, error in interpreted.items() if name.split()[0] == op}
    assert mine
    for name, error in mine.items():
        assert error < 1e-6, name


def on_two_streams(call: Call, op: Callable[..., None], spaces: list[Workspace]) -> None:
    """Both ranks at once on one device, each on its half of the multiprocessors."""
    streams = [torch.cuda.Stream() for _ in spaces]
    torch.cuda.synchronize()
    for stream, args, space in zip(streams, call.args, spaces, strict=True):
        with torch.cuda.stream(stream):
            op(*args, space)
    torch.cuda.synchronize()


def loaded(call: Call, op: Callable[..., None], spaces: list[Workspace]) -> None:
    """Build and load the kernel while nothing waits: loading one may wait for those that run."""
    for space in spaces:
        space.buffer.local[: 4 * FLAGS].view(torch.int32).fill_(1 << 30)
    on_two_streams(call, op, spaces)
    for space in spaces:
        space.buffer.local.zero_()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("op", [*LINEARS, *PLAIN])
def test_two_ranks_on_one_device(op: str) -> None:
    draw = Draw("cuda", torch.bfloat16)
    half = max(gather_half(374, 7680, 2), scatter_half(374, 7680, 2))
    spaces = group(2, half, torch.cuda.get_device_properties(0).multi_processor_count // 2, "cuda")
    function, first = ops.choose(op, "cuda"), True
    for rows, columns, inner in ((374, 7680, 3840), (93, 272, 208)):
        for turn in range(2):
            if op in LINEARS:
                call = linear_call(draw, op, 2, rows, columns, inner, turn == 1, turn == 1)
            else:
                call = plain_call(draw, op, 2, rows, columns)
            if first or op in LINEARS:
                loaded(call, function, spaces)
                first = False
            for _ in range(9):
                call.poison()
                on_two_streams(call, function, spaces)
                assert worst(call) < 6e-3, (rows, columns, inner, turn)
    assert int(spaces[0].epochs[0]) > 4 and bool((spaces[0].epochs == spaces[0].epochs[0]).all())


@pytest.mark.gpu
@needs_gpu
def test_phases_of_four_ranks_on_one_device() -> None:
    draw = Draw("cuda", torch.bfloat16)
    spaces = group(4, scatter_half(187, 1024, 4), 132, "cuda")
    for op in LINEARS + PLAIN:
        for turn in range(3):
            if op in LINEARS:
                call = linear_call(draw, op, 4, 187, 1024, 512, turn == 1, turn == 2)
            else:
                call = plain_call(draw, op, 4, 187, 512)
            call.poison()
            run(call, ops.choose(op, "cuda"), spaces)
            assert worst(call) < 6e-3, op


def test_a_second_workspace_continues_the_first() -> None:
    first = group(1, 1 << 17, 2, "cpu")[0]
    x = torch.ones(3)
    reference_peers.peer_sum(x, x, first)
    second = Workspace.over(first.buffer, 2)
    assert second.epochs.tolist() == [1, 1]
    reference_peers.peer_sum(x, x, second)
    assert first.epochs.tolist() == [2, 2]


def test_push_alone_does_not_end_a_call() -> None:
    spaces = group(2, 1 << 17, 2, "cpu")
    x = torch.zeros(2, 8)
    reference_peers.peer_sum(x, x, spaces[0], PUSH)
    assert spaces[0].epochs.tolist() == [0, 0]
