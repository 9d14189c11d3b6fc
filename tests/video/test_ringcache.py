"""The ring against the peers' ways and against a cache that keeps everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.models.dit_config import DitConfig, preset, shard
from engine.peercache import ReropeCache, ShiftCache
from engine.ringcache import CacheLayout, RingCache
from engine.rotary import Phases
from kernels.sdpa import sdpa
from tests.video.growing import GrowingCache

CPU = torch.device("cpu")


def layout_of(**changes: int) -> CacheLayout:
    config: DitConfig = preset("tiny", **changes)
    return CacheLayout.of(config, shard(config))


def feed(cache: object, layout: CacheLayout, chunks: int, skip_after: int = -1) -> Tensor:
    """Attention outputs of `chunks` chunks, two denoise steps each; all from one seed."""
    source = torch.Generator().manual_seed(2)
    width = layout.heads * layout.head_dim
    weight = torch.rand(2, width, generator=source) + 0.5
    outputs = []

    def forward(tokens: int) -> Tensor:
        result = []
        for layer in range(layout.layers):
            qkv = torch.randn(tokens, 3 * width, generator=source)
            q = torch.empty(tokens, layout.heads, layout.head_dim)
            cache.store(layer, qkv, weight[0], weight[1], q)
            result.append(sdpa(q, *cache.window(layer)))
        return torch.stack(result)

    if layout.sink_tokens:
        cache.begin_sink()
        forward(layout.sink_tokens)
        cache.commit()
    for chunk in range(chunks):
        if chunk == skip_after:  # an interrupted chunk: it must leave no trace
            state = source.get_state()
            cache.begin()
            forward(layout.tokens)
            cache.rollback()
            source.set_state(state)
        cache.begin()
        forward(layout.tokens)
        outputs.append(forward(layout.tokens))
        cache.commit()
    return torch.stack(outputs)


@pytest.mark.parametrize("sink", [0, 1, 3])
@pytest.mark.parametrize("frames", [1, 2])
def test_ring_equals_a_cache_that_keeps_everything(sink: int, frames: int) -> None:
    layout = layout_of(sink_frames=sink, frames=frames, sink_reach=5)
    chunks = 3 * layout.slots + 2  # more than three wraps, the filling included
    want = feed(GrowingCache(layout), layout, chunks)
    for cache in (RingCache, ShiftCache, ReropeCache):
        got = feed(cache(layout, CPU, torch.float32), layout, chunks)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, msg=cache.__name__)


@pytest.mark.parametrize("cache", [RingCache, ShiftCache, ReropeCache])
@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_an_interrupted_chunk_leaves_no_trace(cache: type, chunk: int) -> None:
    layout = layout_of()
    clean = feed(cache(layout, CPU, torch.float32), layout, 10)
    cut = feed(cache(layout, CPU, torch.float32), layout, 10, skip_after=chunk)
    torch.testing.assert_close(cut, clean, rtol=1e-6, atol=1e-6)


def test_addresses_never_change() -> None:
    layout = layout_of()
    ring = RingCache(layout, CPU, torch.float32)
    before = [t.data_ptr() for t in (ring.k, ring.v, ring.row, ring.valid, ring.phases.cos)]
    feed(ring, layout, 9)
    assert before == [t.data_ptr() for t in (ring.k, ring.v, ring.row, ring.valid, ring.phases.cos)]


@pytest.mark.parametrize("start", [1023, 7_200, 21_600, 400_000])
def test_position_never_runs_out(start: int) -> None:
    """Past row 1,024 of the public tables, 20 minutes, an hour, 18 hours: scores are those of a
    young session, because only differences of position matter."""
    layout = replace(layout_of(), sink_tokens=0, sink_frames=0)
    young = feed(RingCache(layout, CPU, torch.float32), layout, 6)
    old_ring = RingCache(layout, CPU, torch.float32)
    shifted = old_ring.phases.move
    old_ring.phases.move = lambda position: shifted(position + start)  # type: ignore[method-assign]
    old = feed(old_ring, layout, 6)
    torch.testing.assert_close(old, young, rtol=1e-3, atol=2e-5)


def test_phases_are_exact_after_an_hour() -> None:
    phases = Phases(1, (2, 3), 128, CPU)
    phases.move(21_600)
    angle = 21_600 * 10_000.0 ** (-torch.arange(22, dtype=torch.float64) / 22)
    assert (phases.cos[0, :22].double() - angle.cos()).abs().max() < 1e-7
    assert phases.temporal == 22  # of 64 pairs, as Wan: 22 + 21 + 21


def test_sink_is_turned_to_its_longest_distance_and_no_further() -> None:
    layout = layout_of(sink_reach=2)
    ring = RingCache(layout, CPU, torch.float32)
    feed(ring, layout, 8)
    near = RingCache(layout, CPU, torch.float32)
    near.sink_phases.turn(8)
    sink = slice(0, layout.sink_tokens)
    near._rotate(ring.sink, near.sink_phases.cos, near.sink_phases.sin, near.k[:, sink])
    torch.testing.assert_close(ring.k[:, sink], near.k[:, sink])


def test_fp8_ring_is_close_to_full_precision() -> None:
    layout = layout_of()
    full, small = RingCache(layout, CPU, torch.float32), RingCache(layout, CPU, torch.float32, True)
    width = layout.heads * layout.head_dim
    qkv, ones = torch.randn(layout.tokens, 3 * width), torch.ones(width)
    q = torch.empty(layout.tokens, layout.heads, layout.head_dim)
    for ring in (full, small):
        ring.begin()
        ring.store(0, qkv, ones, ones, q)
    rows = slice(layout.sink_tokens, layout.sink_tokens + layout.tokens)
    for want, got in (
        (full.k[0, rows], small.k[0, rows].float()),
        (full.v[0, rows], small.v[0].float().permute(2, 0, 1)[rows]),
    ):
        assert (got - want).norm() / want.norm() < 0.04
