"""Engines with ranks, started and ended in every way: nothing is left, none meets another."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from engine.protocol import messages as pm
from tests.engine.test_ranks_live import patient
from tests.engine.wire_client import EngineUnderTest, WireClient

WAYS = ("terminate", "kill the engine", "kill the worker", "kill a rank")
MODULE = ("--model-module", "tests.engine.ranked_meter")


def shared_memory():
    return {p.name for p in Path("/dev/shm").iterdir()}


def opened(engine, others=()):
    """A studio with a loaded session."""
    client = WireClient(engine.ready)
    session = patient(client, pm.OpenSession(model="ranked"), others=others)
    load = pm.LoadCharacter(session=session.session, spec=pm.CharacterSpec(), picture=b"meter")
    loaded = patient(client, load, others=others)
    assert isinstance(loaded, pm.CharacterLoaded), loaded
    return client


def end(engine, way):
    """End the engine in one way; returns what was below it."""
    below = psutil.Process(engine.process.pid).children(recursive=True)
    ranks = [p for p in below if "engine.rank_body" in p.cmdline()]
    assert len(ranks) == 2
    if way == "kill the engine":
        engine.process.kill()
        engine.process.wait()
        engine.process.stdout.close()
        engine.log.close()
        return below
    if way == "kill the worker":
        ranks[0].parent().kill()
    if way == "kill a rank":
        ranks[-1].kill()
    begun = time.monotonic()
    assert engine.close() == 0
    assert time.monotonic() - begun < 8  # draining is bounded
    return below


def cycle(tmp_path, way):
    engine = EngineUnderTest(tmp_path, "--gpus", "2+1", *MODULE)
    client = opened(engine)
    below = end(engine, way)
    client.close()
    _, alive = psutil.wait_procs(below, timeout=5)
    assert not alive, [(p.pid, p.status(), p.cmdline()) for p in alive]


# The others are among the 50, and what they do to a session in test_ranks_live.
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS[:2])
def test_nothing_is_left(tmp_path, way):
    before = shared_memory()
    cycle(tmp_path, way)
    left = [p for p in tmp_path.glob("avatar-*")]
    assert len(left) == (way == "kill the engine")  # nobody could: the next one does
    if left:
        engine = EngineUnderTest(tmp_path)
        assert not left[0].exists()
        engine.close()
    assert not shared_memory() - before


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif("AVATAR_SLOW" not in os.environ, reason="minutes: set AVATAR_SLOW")
def test_nothing_is_left_after_50(tmp_path):
    before, descriptors = shared_memory(), psutil.Process().num_fds()
    for number in range(50):
        cycle(tmp_path, WAYS[number % len(WAYS)])
    assert not shared_memory() - before
    assert psutil.Process().num_fds() <= descriptors + 1
    assert len(list(tmp_path.glob("avatar-*"))) <= 1


@pytest.mark.slow
def test_two_engines_do_not_meet(tmp_path):
    first = EngineUnderTest(tmp_path, "--gpus", "2+1", *MODULE)
    (tmp_path / "other").mkdir()
    second = EngineUnderTest(tmp_path / "other", "--gpus", "2+1", *MODULE)
    clients = [opened(first)]
    clients.append(opened(second, clients))
    end(first, "kill a rank")
    below = psutil.Process(second.process.pid).children(recursive=True)
    assert len([p for p in below if "engine.rank_body" in p.cmdline()]) == 2
    for client in clients:
        client.close()
    assert second.close() == 0
