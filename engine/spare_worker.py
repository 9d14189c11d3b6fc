"""A worker without a session: kept started so that a session opens at once; inspects pictures.

Knows nothing of clients or lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import worker_messages as wm
from engine.errors import EngineError
from engine.launch import WorkerProcess


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
        self._jobs: set[int] = set()

    def ensure(self) -> WorkerProcess:
        if self.worker is None:
            self.worker = self._start()
            self.worker.send(wm.WarmJob())
        return self.worker

    def take(self) -> WorkerProcess:
        """The worker, now the caller's; jobs that it still runs are answered from there."""
        worker = self.ensure()
        self.worker = None
        self._jobs.clear()
        return worker

    def run(self, job: wm.InspectJob | wm.DoctorJob) -> None:
        self._jobs.add(job.job)
        self.ensure().send(job)

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
            self.worker.close()
            self.worker = None

    def _heard(self, worker: WorkerProcess, message: Any, now: float) -> None:
        match message:
            case wm.WorkerReady():
                worker.liveness.was_ready(now)
            case wm.Heartbeat(busy_s=busy_s):
                worker.liveness.heard(now, busy_s)
            case wm.JobProgress(job=job, fraction=fraction, what=what):
                self._progress(job, fraction, what)
            case wm.JobDone(job=job, reply=reply):
                self._jobs.discard(job)
                self._job_ended(job, reply)
            case wm.JobFailed(job=job, code=code, message=text, hint=hint):
                self._jobs.discard(job)
                self._job_ended(job, EngineError(code, text, hint))
            case wm.WorkerFailed(message=text):
                worker.last_words = text

    def _lost(self, worker: WorkerProcess, reason: str) -> None:
        worker.close()
        self.worker = None
        self._log("error", reason)
        jobs, self._jobs = self._jobs, set()
        for job in jobs:
            self._job_ended(job, EngineError("worker_died", reason, "try another picture"))
