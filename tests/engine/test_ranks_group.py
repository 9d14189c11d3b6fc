"""A group of ranks without a server: what it says when one fails, new faces, the hand-over."""

from __future__ import annotations

import numpy as np
import psutil
import pytest

import tests.engine.ranked_meter  # registers the model
from engine.chunk_loop import Models
from engine.errors import EngineError
from engine.folders import Folders
from engine.framebus import FrameBus
from engine.gpus import Gpus
from engine.model_factory import ModelFactory
from engine.models.base import Chunk
from engine.protocol.character import CharacterSpec
from engine.rank_handover import PLACE_BYTES, LatentsBuffer
from engine.rank_start import RankStart

MODULE = tests.engine.ranked_meter.__name__


class Group:
    """A factory with its ranks; `said` is what the ranks wrote, `told` how they ended."""

    def __init__(self, tmp_path, gpus, **options):
        self.said, self.told = [], []
        self.bus = FrameBus.create(8)
        folders = Folders(tmp_path)
        start = RankStart(gpus, self.bus, folders, MODULE, self.said.append, self.told.append)
        self.factory = ModelFactory("ranked", options, folders, start)

    def load(self, picture=b"") -> Models:
        return self.factory.load(picture, CharacterSpec(), lambda f, w: None, lambda: False)[1]

    def processes(self):
        below = psutil.Process().children(recursive=True)
        return [p for p in below if "engine.rank_body" in p.cmdline()]

    def picture(self, models, index, level=0.5):
        count = 2 * 2000 + (3840 if index == 0 else 0)
        chunk = Chunk(1, index, 2 * index, 2, np.full(count, level, np.float32))
        latents = models.generator.step(chunk)
        models.decoder.decode(latents, [self.bus.view(3), self.bus.view(5)])
        return latents


@pytest.fixture
def group(tmp_path):
    made = []

    def make(gpus, **options):
        made.append(Group(tmp_path, gpus, **options))
        return made[-1]

    yield make
    for one in made:
        one.factory.close()
        one.bus.close()
        assert not one.processes()


def test_pictures_come_from_the_decode_rank_and_a_new_face_waits_for_its_turn(group):
    one = group(Gpus(1, 1))
    first = one.load(b"1234")
    latents = one.picture(first, 0)
    assert one.bus.view(3)[1, 1, 0] == 44 and one.bus.view(5)[0, 0, 0] == 50
    assert [(t.rank, t.stage) for t in latents.rank_times] == [(0, "denoise"), (1, "decode")]
    second = one.load(b"12")
    one.picture(first, 1)
    assert one.bus.view(3)[1, 1, 0] == 44  # the one on stage goes on
    one.picture(second, 0)
    assert one.bus.view(3)[1, 1, 0] == 42
    assert len(one.processes()) == 1  # nothing was started twice
    first.generator.interrupt()
    first.decoder.reset()
    one.picture(first, 0)
    assert one.bus.view(5)[1, 1, 0] == 44


def test_a_rank_that_fails_is_named_with_its_own_report(group):
    one = group(Gpus(2, 0), fail_rank=1)
    models = one.load()
    for index in range(3):
        one.picture(models, index)
    with pytest.raises(EngineError) as caught:
        one.picture(models, 3)
    assert caught.value.code == "worker_died"
    assert str(caught.value).startswith("denoise rank 1 (cpu): ValueError: this rank's own fault")
    report = [line for line in one.said if line.startswith("denoise rank 1 (cpu): ")]
    assert any("Traceback" in line for line in report)
    assert any('raise ValueError("this rank' in line for line in report)
    assert one.factory.is_dead
    with pytest.raises(EngineError):
        one.load()  # not tried with what is left


def test_a_set_up_that_fails_is_one_line(group):
    one = group(Gpus(2, 0), join_fails=1)
    with pytest.raises(EngineError) as caught:
        one.load()
    assert "denoise rank 1 (cpu): RuntimeError: no memory between the ranks" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_rank_killed_while_nobody_calls_is_told(group):
    one = group(Gpus(1, 1))
    one.load()
    (rank,) = one.processes()
    rank.kill()
    one.factory.group._watcher.join(5)
    assert [error.message for error in one.told] == ["decode rank 1 (cpu) was killed by SIGKILL"]


def test_latents_alternate_between_two_places():
    buffer = LatentsBuffer.create()
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    places = [buffer.put(values + i)[0] for i in range(3)]
    assert places == [0, 1, 0]
    assert (buffer.view(1, [2, 3, 4], "float32") == values + 1).all()
    assert (buffer.view(0, [2, 3, 4], "float32") == values + 2).all()
    with pytest.raises(EngineError):
        buffer.put(np.zeros(PLACE_BYTES + 1, np.uint8))
    buffer.close()
