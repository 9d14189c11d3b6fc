"""A worker without a session: kept started so that a session opens at once; inspects pictures.

Knows nothing of clients or lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import worker_messages as wm
from engine.errors import EngineError
from engine.launch import WorkerProcess
from engine.protocol.messages import ModelLoaded

SpareJob = (
    wm.InspectJob | wm.DoctorJob | wm.ListModelsJob | wm.LoadModelJob | wm.BenchModelJob
)  # fmt: skip


class SpareWorker:
    """`take` hands the process over to a session; a dead one is replaced when it is next needed."""

    def __init__(
        self,
        start: Callable[[], WorkerProcess],
        job_ended: Callable[[int, Any], None],
        progress: Callable[[int, float, str], None],
        log: Callable[[str, str], None],
    ) -> None:
        self._start, self._job_ended = start, job_ended
        self._progress, self._log = progress, log
        self.worker: WorkerProcess | None = None
        self.holds = ""  # a model whose weights it has read
        self._jobs: set[int] = set()
        self._models: dict[int, str] = {}  # job -> the model that it reads or measures

    def ensure(self) -> WorkerProcess:
        if self.worker is None:
            self.worker = self._start()
            self.worker.send(wm.WarmJob())
        return self.worker

    def take(self, model: str = "") -> WorkerProcess:
        """The worker, now the caller's; jobs that it still runs are answered from there. One that
        reads, holds or measures another model stays, and the caller gets a new one.
        """
        engaged = set(self._models.values()) | ({self.holds} - {""})
        if engaged - {model}:
            return self._start()
        worker = self.ensure()
        self._forget()
        return worker

    def run(self, job: SpareJob) -> None:
        self._jobs.add(job.job)
        if isinstance(job, wm.LoadModelJob | wm.BenchModelJob):
            self._models[job.job] = job.model
        self.ensure().send(job)

    def unload(self) -> None:
        """Give a held model's memory back: with its process, so that none is left over."""
        self.close()
        self.ensure()

    def _forget(self) -> None:
        self.worker, self.holds = None, ""
        self._jobs.clear()
        self._models.clear()

    def cancel(self, job: int) -> None:
        if self.worker is not None and job in self._jobs:
            self.worker.send(wm.CancelJob(job))

    def tick(self, now: float) -> None:
        if self.worker is None:
            return
        for message in self.worker.messages():
            self._heard(self.worker, message, now)
        self.worker.read_stderr(lambda line: self._log("info", line))
        reason = self.worker.fate(now)
        if reason:
            self._lost(self.worker, reason)

    def close(self) -> None:
        if self.worker is not None:
            self._lost(self.worker, "")

    def _heard(self, worker: WorkerProcess, message: Any, now: float) -> None:
        match message:
            case wm.WorkerReady():
                worker.liveness.was_ready(now)
            case wm.Heartbeat(busy_s=busy_s):
                worker.liveness.heard(now, busy_s)
            case wm.JobProgress(job=job, fraction=fraction, what=what):
                self._progress(job, fraction, what)
            case wm.JobDone(job=job, reply=reply):
                self._ended(job)
                if isinstance(reply, ModelLoaded):
                    self.holds = reply.model
                self._job_ended(job, reply)
            case wm.JobFailed(job=job, code=code, message=text, hint=hint):
                self._ended(job)
                self._job_ended(job, EngineError(code, text, hint))
            case wm.WorkerFailed(message=text):
                worker.last_words = text

    def _ended(self, job: int) -> None:
        self._jobs.discard(job)
        self._models.pop(job, None)

    def _lost(self, worker: WorkerProcess, reason: str) -> None:
        """It died (`reason`), or is ended on purpose ("")."""
        worker.close()
        jobs = set(self._jobs)
        self._forget()
        if reason:
            self._log("error", reason)
        error = EngineError("worker_died", reason, "ask again; if it dies again, the log says why")
        if not reason:
            error = EngineError("cancelled", "the worker was ended", "ask again")
        for job in jobs:
            self._job_ended(job, error)
