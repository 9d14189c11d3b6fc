"""Processes that do jobs, one a core. One that dies fails its job, and another takes its place.

Jobs and results cross as msgspec bytes. Knows nothing of folders of runs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.__main__ import THREAD_VARIABLES
from engine.errors import EngineError
from engine.qa.jobs import Job
from engine.qa.report import ClipResult

if TYPE_CHECKING:  # numpy is imported after the thread variables are set
    from engine.qa.do_job import Bench


class Task(msgspec.Struct, frozen=True):
    job: Job
    video: str


class Tools(msgspec.Struct, frozen=True):
    """What a worker needs to know once."""

    cache: str
    models: str = ""
    syncnet: str = ""
    checkpoints: tuple[str, ...] = ()


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    task: Task | None = None


def work(pipe: Connection, told: bytes) -> None:
    """The body of a worker process: tasks in, results out, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends it
    one_core()
    bench = start_bench(msgspec.json.decode(told, type=Tools))
    while True:
        try:
            task = msgspec.json.decode(pipe.recv_bytes(), type=Task)
        except (EOFError, OSError):  # closed, or closed with an answer on its way
            return
        try:
            pipe.send_bytes(msgspec.json.encode(do_task(task, bench)))
        except OSError:
            return


def one_core() -> None:
    """For a process that shares the cores with its like. Before numpy is imported.

    Whatever the environment says: two BLAS threads add in another order, which moves landmarks by
    up to 0.09 px, and the same input shall give the same numbers.
    """
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))


def start_bench(tools: Tools) -> Bench:
    """Raises EngineError for SyncNet weights that are none."""
    import cv2

    from engine.folders import Folders
    from engine.qa.do_job import Bench
    from engine.qa.lse import load_syncnet

    cv2.setNumThreads(1)
    checkpoints = tuple(map(Path, tools.checkpoints))
    folders = Folders(Path(tools.cache), Path(tools.models) if tools.models else None, checkpoints)
    return Bench(folders, load_syncnet(Path(tools.syncnet)) if tools.syncnet else None)


def do_task(task: Task, bench: Bench) -> ClipResult:
    """Never raises: a fault of ours fails its clip, and the run goes on."""
    from engine.qa.do_job import do_job

    try:
        return do_job(task.job, Path(task.video), bench)
    except Exception as error:  # the top of the process
        return failed(task.job, f"the scorer failed: {type(error).__name__}: {error}")


def failed(job: Job, why: str) -> ClipResult:
    return ClipResult(
        job.clip, job.scorer, configuration=job.configuration.name, seed=job.seed,
        character=job.character, language=job.language, split=job.split, failed=why,
    )  # fmt: skip


def do_all(
    tasks: Sequence[Task], count: int, tools: Tools
) -> Generator[tuple[Job, ClipResult], None, None]:
    """Every task's result as it is done, by `count` processes; those end with the iterator."""
    waiting = list(reversed(tasks))
    workers = [_start(tools) for _ in range(min(count, len(tasks)))]
    try:
        for worker in workers:
            _give(worker, waiting)
        while busy := [w for w in workers if w.task is not None]:
            for pipe in wait([w.pipe for w in busy]):
                worker = next(w for w in busy if w.pipe is pipe)
                assert worker.task is not None
                job, result = worker.task.job, _answer(worker)
                worker.task = None
                if not worker.process.is_alive() and waiting:
                    workers[workers.index(worker)] = worker = _start(tools)
                _give(worker, waiting)
                yield job, result
    finally:
        for worker in workers:
            worker.pipe.close()
            worker.process.join(0.5)
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join(5)


def _start(tools: Tools) -> _Worker:
    start = multiprocessing.get_context("spawn")
    ours, theirs = start.Pipe()
    process = start.Process(target=work, args=(theirs, msgspec.json.encode(tools)), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _give(worker: _Worker, waiting: list[Task]) -> None:
    """The next task. A worker that ended meanwhile is found when its pipe is read."""
    if not waiting:
        return
    worker.task = waiting.pop()
    try:
        worker.pipe.send_bytes(msgspec.json.encode(worker.task))
    except OSError:
        return


def _answer(worker: _Worker) -> ClipResult:
    assert worker.task is not None
    try:
        return msgspec.json.decode(worker.pipe.recv_bytes(), type=ClipResult)
    except (EOFError, OSError):
        worker.process.join(5)
        status = worker.process.exitcode
        return failed(worker.task.job, f"the process that scored it ended with status {status}")


def cores() -> int:
    """How many processes are worth starting here."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def check_count(count: int) -> int:
    """0 means one a core. Raises EngineError("bad_input")."""
    if not 0 <= count <= 512:
        raise EngineError("bad_input", f"{count} workers", "give 1 to 512, or 0: one a core")
    return count or cores()
