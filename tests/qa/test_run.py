"""A run from the command's first line to its results, on the shortest clips there are."""

from __future__ import annotations

import os
import signal
import threading
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from engine.errors import EngineError
from engine.qa.__main__ import run as avatar_qa
from engine.qa.clip_set import load_set
from engine.qa.jobs import Configuration, Job
from engine.qa.report import ClipResult
from engine.qa.run import plan, run
from engine.qa.run_command import configurations_of, numbers, seeds_of
from engine.qa.run_folder import RunFolder
from engine.qa.workers import Task, Tools, do_all
from tests.qa.conftest import write_wav

CLIP = "es-allison-vm-reachoper"  # 2.9 s, drawn or painted


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def plain(result: ClipResult) -> ClipResult:
    return msgspec.structs.replace(result, timings_ms={})


@pytest.fixture(scope="module")
def twice(tmp_path_factory, environment):
    """Two configurations in one folder, then the first of them again in another."""
    folders = []
    for number, names in ((1, ("a:mouth=1.0", "b:drive=phones")), (2, ("a:mouth=1.0",))):
        out = tmp_path_factory.mktemp("runs") / str(number)
        command = ["run", "--out", str(out), "--only", CLIP, "--workers", "1", "--no-videos"]
        command += [word for name in names for word in ("--configuration", name)]
        assert avatar_qa(command, environment) == 0
        folders.append(RunFolder.existing(out))
    return folders


def test_both_configurations_are_scored(twice):
    results = twice[0].results()
    assert [r.configuration for r in results] == ["a", "b"]
    for result in results:
        assert result.failed == ""
        assert result.range_source == "sweep"
        assert abs(result.frames - result.duration_s * 24) < 1
        assert result.value("r0") > 0.3
    assert not list(twice[0].path.rglob("*.mp4"))


def test_a_rerun_gives_the_same_but_for_timings(twice):
    first, second = (folder.results() for folder in twice)
    assert plain(first[0]) == plain(second[0])
    assert first[0].timings_ms != second[0].timings_ms


def test_perfect_phones_are_no_worse_than_heard_ones(twice):
    heard, told = twice[0].results()
    assert told.value("r0") >= heard.value("r0") - 0.05


def test_a_finished_run_does_nothing_more(twice, environment, capsys):
    before = {p: p.stat().st_mtime_ns for p in twice[0].path.rglob("*.json")}
    command = ["run", "--out", str(twice[0].path), "--only", CLIP, "--no-videos", "--json"]
    command += ["--configuration", "a:mouth=1.0", "--configuration", "b:drive=phones"]
    assert avatar_qa(command, environment) == 0
    assert {p: p.stat().st_mtime_ns for p in twice[0].path.rglob("*.json")} == before
    said = msgspec.json.decode(capsys.readouterr().out)
    assert said["failed"] == []
    assert set(said["means"]) == {"a", "b"}


def test_a_users_folder_with_a_bad_clip_goes_to_its_end(tmp_path, environment, capsys):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "broken.wav").write_bytes(b"RIFF but no sound")
    (mine / "film.mp4").write_bytes(b"no film")
    write_wav(mine / "hum.wav", np.sin(np.arange(48_000 * 2) / 30))
    out = tmp_path / "run"
    command = ["run", "--out", str(out), "--clips", str(mine), "--workers", "1", "--no-videos"]
    command += ["--character", "lisar"]  # whose picture is prepared already
    assert avatar_qa(command, environment) == 1
    results = {r.clip: r for r in RunFolder.existing(out).results()}
    assert set(results) == {"broken", "film", "hum"}
    assert "broken.wav" in results["broken"].failed
    assert "film.mp4" in results["film"].failed
    assert results["hum"].failed == ""
    assert "text" in results["hum"].score("r0").skipped
    assert "Traceback" not in capsys.readouterr().err


def dying_job(clip: str, setting: float) -> Task:
    configuration = Configuration("a", settings={"mouth": setting})
    return Task(Job(clip, configuration, 1, "s", "/none.wav", "m", "/none.avatar"), "/none.mp4")


def test_a_process_that_dies_fails_its_clip_alone():
    """Workers are killed once they are up; every task has an answer all the same."""
    import multiprocessing

    tasks = [dying_job(str(n), 1.0) for n in range(4)]
    found = do_all(tasks, 2, Tools("/nowhere"))

    def kill() -> None:
        while not (alive := multiprocessing.active_children()):
            pass
        os.kill(alive[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    results = dict((job.clip, result) for job, result in found)
    killer.join()
    assert sorted(results) == ["0", "1", "2", "3"]
    assert sum("ended with status" in r.failed for r in results.values()) == 1
    assert all(r.failed for r in results.values())
    assert not multiprocessing.active_children()


def test_stopping_leaves_the_rest_for_later(tmp_path):
    clips = load_set(verify=False)
    wanted = plan(clips, [Configuration("a")], [1], "s", tmp_path / "run")
    assert len(wanted.jobs) == 53
    characters = [j.character for j in wanted.jobs]
    assert len(set(characters)) == 1 + sum(a != b for a, b in pairwise(characters))
    jobs = [
        msgspec.structs.replace(j, unreadable="made unreadable", audio="") for j in wanted.jobs[:5]
    ]
    folder = RunFolder.open(tmp_path / "run", msgspec.structs.replace(wanted, jobs=jobs))
    told = []
    run(folder, Tools(str(tmp_path)), 1, told.append, stop=lambda: len(told) == 2)
    assert len(folder.waiting()) == 3
    assert [(p.done, p.total, p.failed) for p in told] == [(1, 5, 1), (2, 5, 2)]
    run(folder, Tools(str(tmp_path)), 1, told.append)
    assert told[-1].done == told[-1].failed == 5


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--only", "nobody"], "nobody"),
        (["--seeds", "one"], "seeds"),
        (["--seeds", "1,1"], "seeds"),
        (["--configuration", "a:mouth"], "not understood"),
        (["--configuration", "a", "--configuration", "a"], "two configurations"),
        (["--settings", "mouth=wide"], "not understood"),
        (["--clips", "/no/such/folder"], "no folder"),
        (["--workers", "-1"], "workers"),
    ],
)
def test_bad_input_is_one_line(tmp_path, environment, capsys, arguments, word):
    command = ["run", "--out", str(tmp_path / "run"), *arguments]
    assert avatar_qa(command, environment) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert word in said[0]


def test_numbers_and_seeds():
    assert numbers("a=1,b=0.5") == {"a": 1.0, "b": 0.5}
    assert seeds_of("1,20") == [1, 20]
    with pytest.raises(EngineError):
        seeds_of("1,")


def test_configurations_build_on_the_other_options():
    import argparse

    options = argparse.Namespace(
        model="portrait", drive="audio", settings="head=0.5", options="",
        configuration=["plain", "loud:drive=loudness,mouth=1.5"],
    )  # fmt: skip
    plain_one, loud = configurations_of(options)
    assert plain_one == Configuration("plain", settings={"head": 0.5})
    assert loud.drive == "loudness"
    assert loud.settings == {"head": 0.5, "mouth": 1.5}
