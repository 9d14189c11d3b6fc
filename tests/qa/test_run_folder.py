"""A run's folder: resumed only with the same run, damaged results are made again."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import EngineError
from engine.qa.jobs import FORMAT, Configuration, Job, RunFile, check_configuration
from engine.qa.report import ClipResult
from engine.qa.run_folder import RunFolder


def job(clip: str, name: str = "a", seed: int = 1) -> Job:
    return Job(clip, Configuration(name), seed, "ruler", f"/{clip}.flac", "mira", "/mira.avatar")


def run_of(*jobs: Job, scorer: str = "ruler") -> RunFile:
    return RunFile(FORMAT, "test", "1.0", "abc", scorer, {}, list(jobs))


@pytest.fixture
def folder(tmp_path):
    return RunFolder.open(tmp_path / "run", run_of(job("x"), job("y"), job("x", seed=2)))


def test_results_come_in_the_order_of_the_run(folder):
    for each in reversed(folder.run.jobs):
        folder.store(each, ClipResult(each.clip, "ruler", seed=each.seed))
    assert [(r.clip, r.seed) for r in folder.results()] == [("x", 1), ("y", 1), ("x", 2)]
    assert folder.waiting() == []


def test_a_stopped_run_goes_on(folder):
    folder.store(folder.run.jobs[1], ClipResult("y", "ruler"))
    again = RunFolder.open(folder.path, folder.run)
    assert [j.clip for j in again.waiting()] == ["x", "x"]
    assert RunFolder.existing(folder.path).run == folder.run


def test_half_a_result_is_made_again(folder):
    first = folder.run.jobs[0]
    folder.store(first, ClipResult("x", "ruler"))
    path = folder.result_file(first)
    path.write_bytes(path.read_bytes()[:-5])
    assert first in folder.waiting()


def test_a_result_of_another_ruler_is_made_again(folder):
    first = folder.run.jobs[0]
    folder.store(first, ClipResult("x", "other"))
    assert first in folder.waiting()


def test_one_clip_can_be_done_anew(folder):
    for each in folder.run.jobs:
        folder.store(each, ClipResult(each.clip, "ruler", failed="" if each.clip == "x" else "bad"))
    assert [j.clip for j in folder.waiting(failed=True)] == ["y"]
    folder.store(folder.run.jobs[1], ClipResult("y", "ruler"))
    assert [j.seed for j in folder.waiting(again=["x"])] == [1, 2]
    with pytest.raises(EngineError, match="no clip 'z'"):
        folder.waiting(again=["z"])


def test_one_seed_of_a_clip_can_be_done_anew(folder):
    for each in folder.run.jobs:
        folder.store(each, ClipResult(each.clip, "ruler", seed=each.seed))
    assert [(j.clip, j.seed) for j in folder.waiting(again=["a/seed2/x"])] == [("x", 2)]
    with pytest.raises(EngineError, match="has no clip 'a/seed3/x'"):
        folder.waiting(again=["a/seed3/x"])


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (run_of(job("x"), scorer="new"), "ruler"),
        (run_of(job("x")), "other configurations"),
        (msgspec.structs.replace(run_of(job("x")), set_hash="d"), "another set"),
    ],
)
def test_another_run_is_refused(folder, other, word):
    with pytest.raises(EngineError, match=word) as caught:
        RunFolder.open(folder.path, other)
    assert caught.value.code == "bad_input"


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(EngineError, match="not empty"):
        RunFolder.open(tmp_path, run_of(job("x")))
    with pytest.raises(EngineError, match="holds no run"):
        RunFolder.existing(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(EngineError, match="damaged"):
        RunFolder.existing(tmp_path)


@pytest.mark.parametrize(
    "bad",
    [
        Configuration("../up"),
        Configuration(""),
        Configuration("a", drive="telepathy"),
        Configuration("a", model="avatar-5b", drive="phones"),
    ],
)
def test_a_configuration_that_cannot_be(bad):
    with pytest.raises(EngineError) as caught:
        check_configuration(bad)
    assert caught.value.code == "bad_input"


def test_alignments_of_users_clips_may_lie_there_already(tmp_path):
    (tmp_path / "alignments").mkdir()
    assert RunFolder.open(tmp_path, run_of(job("x"))).results() == []
