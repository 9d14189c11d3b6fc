"""Jobs on the cores of a cluster: as `workers.do_all`, to the byte, with nodes that come and go.

Each node is asked which program it runs before it works; one that differs is not used. A worker
holds one job at a time; the job of a lost one is given to another, TRIES times at most. Videos come
back as bytes and are written here. Knows Ray through its door alone.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from engine.errors import EngineError
from engine.log import LOG
from engine.qa.jobs import Configuration, Job
from engine.qa.ray_door import GO_ON, LostError, Node, RayDoor, connect
from engine.qa.report import ClipResult
from engine.qa.run import DoAll
from engine.qa.run_folder import write_whole
from engine.qa.run_models import LIGHT
from engine.qa.same_code import Identity, difference, identity
from engine.qa.shipped import Store, pack_task, pack_tools
from engine.qa.workers import Task, Tools, failed

TRIES = 3
POLL_S = 2.0  # between looks for new nodes
IDLE_S = 180.0  # without any worker that could do something: cores are taken, imports are slow
NOTICE_S = 20.0
LEAVE_S = 3.0

Done = tuple[Job, ClipResult]


def check_spreadable(configurations: Sequence[Configuration]) -> None:
    """Raises EngineError("bad_input") for a model that does not come with the program."""
    for one in configurations:
        if one.drive != "video" and one.model not in LIGHT:
            problem = f"model {one.model!r} cannot be spread: weights are not sent to nodes"
            raise EngineError("bad_input", problem, "run it without --ray where it lies")


@dataclass(slots=True)
class _Hand:
    """A worker. `task` None: it is starting and will say which program it is, or it is idle."""

    worker: Any
    node: Node
    call: Any
    task: Task | None = None
    ready: bool = False


@contextmanager
def on_cluster(address: str) -> Generator[DoAll, None, None]:
    """What `run` takes instead of this machine's processes. Raises EngineError, see `connect`."""
    door = connect(address)
    try:
        yield Cluster(door).do_all
    finally:
        door.close()


class Cluster:
    """`do_all` has the signature and meaning of `workers.do_all`; `count` 0 is every core."""

    def __init__(self, door: RayDoor) -> None:
        self._door = door

    def do_all(
        self, tasks: Sequence[Task], count: int, tools: Tools
    ) -> Generator[Done, None, None]:
        """Raises EngineError where no node is left that can be used."""
        crew = _Crew(self._door, tasks, count or len(tasks), tools)
        try:
            while crew.unfinished:
                yield from crew.step()
        finally:
            crew.end()


class _Crew:
    """Who does what at this moment."""

    def __init__(self, door: RayDoor, tasks: Sequence[Task], count: int, tools: Tools) -> None:
        self._door, self._count = door, min(count, len(tasks))
        self._waiting = deque(tasks)
        self._hands: list[_Hand] = []
        self._tries: Counter[str] = Counter()
        self._store = Store(door.put)
        self._kit = pack_tools(tools, self._store) if tasks else (b"", [])
        more = ("torch",) if tools.syncnet else ()
        self._here = identity(Path(tools.models) if tools.models else None, more)
        self._heard, self._noticed = time.monotonic(), False

    @property
    def unfinished(self) -> bool:
        return bool(self._waiting) or any(hand.task for hand in self._hands)

    def step(self) -> list[Done]:
        """Starts workers, waits a little, hands out jobs: what was finished meanwhile."""
        self._recruit()
        self._give()
        calls = {hand.call: hand for hand in self._hands if hand.call is not None}
        answered = self._door.wait(list(calls), POLL_S)
        done = [found for call in answered if (found := self._settle(calls[call])) is not None]
        if answered or any(hand.ready for hand in self._hands):
            self._heard, self._noticed = time.monotonic(), False
        else:
            self._idle(time.monotonic() - self._heard)
        return done

    def _idle(self, seconds: float) -> None:
        """Nobody works: says so once, and gives up in the end."""
        if seconds > IDLE_S:
            problem = f"no core of the cluster became free in {IDLE_S:g} s"
            raise EngineError("timeout", problem, GO_ON)
        if seconds > NOTICE_S and not self._noticed:
            self._noticed = True
            LOG.warning("no worker has started yet: waiting %g s for a free core", IDLE_S)

    def _recruit(self) -> None:
        """A worker on each free core as long as there is something to do for it."""
        starting = sum(not hand.ready for hand in self._hands)
        wanted = min(self._count - len(self._hands), len(self._waiting) - starting)
        if wanted <= 0:
            return
        nodes = self._door.nodes()
        here = Counter(hand.node.id for hand in self._hands)
        free = [n for n in nodes if not n.refused for _ in range(n.cores - here[n.id])]
        free.sort(key=lambda n: here[n.id])
        for node in free[:wanted]:
            worker = self._door.start(node)
            self._hands.append(_Hand(worker, node, self._hello(worker)))
        if not self._hands and nodes and all(node.refused for node in nodes):
            problem = f"no node of the cluster can be used: {nodes[0].name}: {nodes[0].refused}"
            raise EngineError("worker_died", problem, "set it up as this machine")

    def _hello(self, worker: Any) -> Any:
        told, contents = self._kit
        return self._door.call(worker, "hello", told, *contents)

    def _give(self) -> None:
        """A job to each worker that has none."""
        for hand in self._hands:
            if self._waiting and hand.ready and hand.task is None:
                hand.task = self._waiting.popleft()
                told, contents = pack_task(hand.task, self._store)
                hand.call = self._door.call(hand.worker, "do", told, *contents)

    def _settle(self, hand: _Hand) -> Done | None:
        """Takes an answer, or the news that there will be none."""
        call, hand.call = hand.call, None
        try:
            value = self._door.answer(call)
            done = self._greet(hand, value) if hand.task is None else self._take(hand.task, value)
        except LostError as error:
            return self._lose(hand, str(error))
        if hand.task is not None:
            hand.node.losses, hand.task = 0, None
        return done

    def _greet(self, hand: _Hand, value: bytes) -> None:
        """Raises LostError for a worker whose program is another."""
        try:
            there = msgspec.json.decode(value, type=Identity)
        except (msgspec.DecodeError, TypeError) as error:
            raise LostError("its avatar-studio is another") from error
        if why := difference(there, self._here):
            hand.node.known = False  # the program changed under us, or was never the same
            raise LostError(why)
        if not hand.node.known and there.processor != self._here.processor:
            LOG.warning(
                "node %s has another processor (%s): scores may differ in their last digits",
                hand.node.name, there.processor,
            )  # fmt: skip
        hand.node.known = hand.ready = True

    def _take(self, task: Task, value: tuple[bytes, bytes | None]) -> Done:
        result, video = msgspec.json.decode(value[0], type=ClipResult), value[1]
        if video is not None:
            path = Path(task.video)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, video)
            except OSError as error:
                return task.job, failed(task.job, f"{path} cannot be written ({error.strerror})")
        return task.job, result

    def _lose(self, hand: _Hand, why: str) -> Done | None:
        """Without this worker; its job goes to another, or fails after TRIES."""
        self._hands.remove(hand)
        self._door.kill(hand.worker)
        node, task = hand.node, hand.task
        node.losses += 1
        if not node.refused and (not node.known or node.losses > TRIES * node.cores):
            node.refused = why
            LOG.warning("node %s is not used: %s", node.name, why)
        if task is None:
            return None
        self._tries[task.video] += 1
        if self._tries[task.video] < TRIES:
            clip = task.job.clip
            LOG.warning(
                "a worker on node %s is lost (%s): %s goes to another", node.name, why, clip
            )
            self._waiting.appendleft(task)
            return None
        node.losses = 0  # it is the job that kills workers
        return task.job, failed(task.job, f"{TRIES} workers were lost with it, the last: {why}")

    def end(self) -> None:
        """Idle workers tidy up, the others are ended as they are."""
        idle = [hand for hand in self._hands if hand.ready and hand.task is None]
        left = [self._door.call(hand.worker, "leave") for hand in idle]
        until = time.monotonic() + LEAVE_S
        while left and (rest := until - time.monotonic()) > 0:
            left = [call for call in left if call not in self._door.wait(left, rest)]
        for hand in self._hands:
            self._door.kill(hand.worker)
