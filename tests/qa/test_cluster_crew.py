"""Who does what, with nodes that lie, die and are full: a pretended cluster, no Ray."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from engine.errors import EngineError
from engine.qa import cluster
from engine.qa.cluster import TRIES, Cluster, check_spreadable
from engine.qa.jobs import Configuration, Job
from engine.qa.ray_door import LostError, Node
from engine.qa.report import ClipResult
from engine.qa.same_code import Identity
from engine.qa.shipped import Shipment
from engine.qa.workers import Task, Tools

HERE = Identity("1", "r", "c", "x86_64", {})


@dataclass
class Worker:
    node: Node
    alive: bool = True


@dataclass
class Door:
    """Calls are answered oldest first, one a wait. `dies(node, clip)` kills who has that clip."""

    machines: list[Node]
    dies: object = lambda node, clip: False
    greets: dict[str, Identity | bytes] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)  # nodes on which no worker ever starts
    workers: list[Worker] = field(default_factory=list)
    calls: dict[int, tuple] = field(default_factory=dict)
    given: Counter = field(default_factory=Counter)
    most: Counter = field(default_factory=Counter)
    last: int = 0

    def nodes(self):
        return list(self.machines)

    def put(self, data):
        return data

    def start(self, node):
        worker = Worker(node)
        self.workers.append(worker)
        alive = sum(w.alive for w in self.workers if w.node is node)
        self.most[node.id] = max(self.most[node.id], alive)
        return worker

    def call(self, worker, method, *arguments):
        number = self.last = self.last + 1
        self.calls[number] = (worker, method, arguments)
        return number

    def wait(self, calls, timeout_s):
        ready = [c for c in calls if self.calls[c][0].node.id not in self.full]
        return sorted(ready)[:1]

    def answer(self, call):
        worker, method, arguments = self.calls.pop(call)
        if method == "hello":
            said = self.greets.get(worker.node.id, HERE)
            if isinstance(said, Exception):
                raise said
            return said if isinstance(said, bytes) else msgspec.json.encode(said)
        task = msgspec.json.decode(arguments[0], type=Shipment).task
        self.given[task.job.clip] += 1
        if worker.node not in self.machines or self.dies(worker.node, task.job.clip):
            worker.alive = False
            raise LostError("the node is gone")
        result = ClipResult(task.job.clip, task.job.scorer, configuration=worker.node.id)
        return msgspec.json.encode(result), b"film" if task.job.keep_video else None

    def kill(self, worker):
        worker.alive = False

    def close(self):
        pass


@pytest.fixture(autouse=True)
def same_program(monkeypatch):
    monkeypatch.setattr(cluster, "identity", lambda models, more=(): HERE)
    monkeypatch.setattr(cluster, "pack_tools", lambda tools, store: (b"", []))
    monkeypatch.setattr(cluster, "IDLE_S", 0.05)
    monkeypatch.setattr(cluster, "LEAVE_S", 0.05)


@pytest.fixture
def said_aloud(monkeypatch) -> list[str]:
    """The lines that the command would log."""
    lines: list[str] = []
    monkeypatch.setattr(cluster.LOG, "warning", lambda text, *words: lines.append(text % words))
    return lines


def tasks(folder: Path, count: int, keep: bool = False) -> list[Task]:
    made = []
    for n in range(count):
        job = Job(str(n), Configuration("a"), 1, "s", "/none.wav", "m", "/m.avatar",
                  keep_video=keep)  # fmt: skip
        made.append(Task(job, str(folder / "videos" / f"{n}.mp4")))
    return made


def done(door: Door, work: list[Task], count: int = 0) -> dict[str, ClipResult]:
    found = list(Cluster(door).do_all(work, count, Tools("")))  # pyright: ignore
    assert not any(worker.alive for worker in door.workers), "all are ended"
    assert len(found) == len({job.clip for job, _ in found}), "each clip once"
    return {job.clip: result for job, result in found}


def nodes(*cores: int) -> list[Node]:
    return [Node(f"n{i}", f"10.0.0.{i}", c) for i, c in enumerate(cores)]


def test_every_core_works_and_every_clip_is_done_once(tmp_path):
    door = Door(nodes(2, 1))
    found = done(door, tasks(tmp_path, 9))
    assert set(found) == {str(n) for n in range(9)}
    assert door.most == {"n0": 2, "n1": 1}
    assert {r.configuration for r in found.values()} == {"n0", "n1"}


@pytest.mark.parametrize(("count", "jobs", "started"), [(2, 9, 2), (0, 1, 1), (0, 0, 0), (9, 5, 3)])
def test_no_more_workers_than_asked_for_or_of_use(tmp_path, count, jobs, started):
    door = Door(nodes(2, 1))
    done(door, tasks(tmp_path, jobs), count)
    assert len(door.workers) == started


def test_videos_are_written_here(tmp_path):
    done(Door(nodes(1)), tasks(tmp_path, 2, keep=True))
    films = sorted(p.name for p in (tmp_path / "videos").iterdir())
    assert films == ["0.mp4", "1.mp4"]
    assert (tmp_path / "videos" / "0.mp4").read_bytes() == b"film"


def test_a_video_that_cannot_be_written_fails_its_clip_alone(tmp_path):
    (tmp_path / "videos").write_text("a file where the folder should be")
    found = done(Door(nodes(1)), tasks(tmp_path, 2, keep=True))
    assert all("cannot be written" in r.failed for r in found.values())


def test_a_dying_node_loses_nothing(tmp_path, said_aloud):
    door = Door(nodes(1, 2))

    def dies(node: Node, clip: str) -> bool:
        if node.id == "n1" and sum(door.given.values()) > 3 and node in door.machines:
            door.machines.remove(node)
        return node not in door.machines

    door.dies = dies
    found = done(door, tasks(tmp_path, 12))
    assert set(found) == {str(n) for n in range(12)}
    assert not any(r.failed for r in found.values())
    assert max(door.given.values()) == 2, "a job was lost and given again"
    assert any("goes to another" in s for s in said_aloud)


def test_a_node_that_comes_later_works_too(tmp_path):
    first, late = nodes(1, 1)
    door = Door([first])

    def comes(node: Node, clip: str) -> bool:
        if clip == "2":
            door.machines.append(late)
        return False

    door.dies = comes
    found = done(door, tasks(tmp_path, 8))
    assert {r.configuration for r in found.values()} == {"n0", "n1"}


def test_a_job_that_kills_its_workers_fails_after_some_tries(tmp_path):
    door = Door(nodes(1), dies=lambda node, clip: clip == "1")
    found = done(door, tasks(tmp_path, 4))
    assert door.given["1"] == TRIES
    assert f"{TRIES} workers were lost with it" in found["1"].failed
    assert [r.failed for clip, r in found.items() if clip != "1"] == ["", "", ""]


def test_many_such_jobs_do_not_cost_a_good_node(tmp_path):
    door = Door(nodes(2), dies=lambda node, clip: int(clip) < 6)
    found = done(door, tasks(tmp_path, 9))
    assert sorted(c for c, r in found.items() if r.failed) == list("012345")


def test_a_node_that_loses_everything_is_left_alone(tmp_path, said_aloud):
    """Its memory is full, say: the other does the work."""
    door = Door(nodes(1, 1), dies=lambda node, clip: node.id == "n1")
    work = tasks(tmp_path, 40)
    found = {j.clip: r for j, r in Cluster(door).do_all(work, 0, Tools(""))}  # pyright: ignore
    assert len(found) == 40
    assert sum(worker.node.id == "n1" for worker in door.workers) <= TRIES + 1
    assert sum(bool(r.failed) for r in found.values()) <= 1


OTHER = msgspec.structs.replace(HERE, code="d")


@pytest.mark.parametrize(
    ("greeting", "said"),
    [
        (OTHER, "its code or assets are d, here are c"),
        (b"from another age", "its avatar-studio is another"),
        (LostError("No module named 'engine.qa'"), "No module named 'engine.qa'"),
    ],
)
def test_a_node_that_differs_is_told_and_not_used(tmp_path, said_aloud, greeting, said):
    door = Door(nodes(1, 3), greets={"n1": greeting})
    found = done(door, tasks(tmp_path, 6))
    assert {r.configuration for r in found.values()} == {"n0"}
    assert [s for s in said_aloud if "not used" in s] == [f"node 10.0.0.1 is not used: {said}"]


def test_no_node_that_can_be_used_is_one_line(tmp_path):
    door = Door(nodes(1, 1), greets={"n0": OTHER, "n1": OTHER})
    with pytest.raises(EngineError, match=r"can be used: 10\.0\.0\.0: its code"):
        done(door, tasks(tmp_path, 3))
    assert not any(worker.alive for worker in door.workers)


@pytest.mark.parametrize("machines", [[], nodes(1)])
def test_a_cluster_without_a_free_core_is_one_line(tmp_path, machines, monkeypatch, said_aloud):
    monkeypatch.setattr(cluster, "POLL_S", 0.01)
    monkeypatch.setattr(cluster, "NOTICE_S", -1.0)
    monkeypatch.setattr(cluster, "IDLE_S", 0.3)
    door = Door(machines, full={"n0"})
    with pytest.raises(EngineError, match="no core of the cluster became free"):
        done(door, tasks(tmp_path, 3))
    assert len(said_aloud) == 1 and "waiting" in said_aloud[0]


def test_another_processor_is_told_and_used(tmp_path, said_aloud):
    door = Door(nodes(2), greets={"n0": msgspec.structs.replace(HERE, processor="Z80")})
    assert len(done(door, tasks(tmp_path, 4))) == 4
    assert len(said_aloud) == 1 and "another processor (Z80)" in said_aloud[0]


def test_stopping_ends_every_worker(tmp_path):
    door = Door(nodes(2))
    going = Cluster(door).do_all(tasks(tmp_path, 6), 0, Tools(""))  # pyright: ignore
    next(going)
    assert any(worker.alive for worker in door.workers)
    going.close()
    assert not any(worker.alive for worker in door.workers)


def test_only_the_portrait_and_finished_videos_are_spread():
    check_spreadable([Configuration("a"), Configuration("v", model="", drive="video")])
    with pytest.raises(EngineError, match="weights are not sent"):
        check_spreadable([Configuration("a"), Configuration("b", model="avatar-57b")])
