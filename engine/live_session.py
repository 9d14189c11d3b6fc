"""A Session together with the worker that serves it: starts, feeds, watches and replaces it.

Runs on the socket thread and never waits. Knows nothing of clients or lanes: what leaves goes
through the `Outlet` it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from engine import worker_messages as wm
from engine.audio import Chunker
from engine.errors import EngineError
from engine.launch import WorkerProcess
from engine.protocol import messages as pm
from engine.protocol.audio_block import AudioBlock
from engine.protocol.frame import Frame, encode
from engine.session import Session
from engine.supervision import RestartBudget

RELOAD = -1  # job number of a character that is loaded again after a restart


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where a session's output goes."""

    frame: Callable[[bytearray], None]
    telemetry: Callable[[msgspec.Struct], None]
    start_worker: Callable[[], WorkerProcess]
    job_ended: Callable[[int, Any], None]  # job, reply body or EngineError
    job_progress: Callable[[int, float, str], None]


class LiveSession:
    def __init__(
        self, number: int, request: pm.OpenSession, worker: WorkerProcess, out: Outlet
    ) -> None:
        self.number = number
        self.model = request.model
        self.worker: WorkerProcess | None = worker
        self.session: Session | None = None  # until the model has said its chunk size
        self.opened: pm.SessionOpened | EngineError | None = None
        self.kernel_path, self.synthetic, self.ranks = "", False, ""
        self._open = wm.OpenModel(request.model, request.options)
        self._out = out
        self._budget = RestartBudget()
        self._load: wm.LoadJob | None = None  # the character in use, to load it again
        self._loading: wm.LoadJob | None = None
        self._settings: dict[str, float] | None = None
        self._since_load = False  # settings came after the character that is being loaded
        self._captured: dict[tuple[int, int], int] = {}  # (run, chunk) -> oldest capture time
        self._cut: dict[tuple[int, int], float] = {}  # (run, chunk) -> when it was handed over
        worker.send(self._open)

    def _send(self, message: Any) -> None:
        if self.worker is not None:
            self.worker.send(message)

    # --- requests -----------------------------------------------------------------------------
    def load(self, job: int, request: pm.LoadCharacter) -> None:
        if self.worker is None:
            error = EngineError("worker_died", "the session has failed", "open a new session")
            self._out.job_ended(job, error)
            return
        self._loading = wm.LoadJob(job, self.number, request.spec, request.picture)
        self._since_load = False
        self._send(self._loading)

    def cancel(self, job: int) -> None:
        self._send(wm.CancelJob(job))

    def set_settings(self, settings: Any) -> None:
        self._settings = msgspec.structs.asdict(settings)
        self._since_load = True
        self._send(wm.ApplySettings(self._settings))

    def drop_under_way(self, reset: bool) -> None:
        """After the session began a new epoch: the worker need not finish the old one."""
        assert self.session is not None
        self._captured.clear()
        self._cut.clear()
        self._send(wm.DropRun(self.session.run, reset))

    # --- the loop -----------------------------------------------------------------------------
    def take_block(self, block: AudioBlock, now: float) -> None:
        if self.session is not None:
            self.session.take_block(block, now)

    def tick(self, now: float) -> None:
        """Everything that is due: messages of the worker, its fate, chunks to hand over."""
        if self.worker is not None:
            self._watch(self.worker, now)
        if self.session is None:
            return
        for chunk in self.session.due_chunks(now):
            self._cut[self.session.run, chunk.index] = time.monotonic()
            self._send(
                wm.ChunkJob(
                    self.session.run, chunk.epoch, chunk.index, chunk.first_frame,
                    chunk.frame_count, chunk.pcm.tobytes(),
                )
            )  # fmt: skip
        if self.session.changed:
            self.session.changed = False
            self.publish_state(now)

    def _watch(self, worker: WorkerProcess, now: float) -> None:
        for message in worker.messages():
            self._heard(worker, message, now)
        worker.read_stderr(self._log)
        reason = worker.fate(now)
        if reason:
            self._replace_worker(worker, reason, now)

    def _log(self, line: str) -> None:
        self._out.telemetry(pm.LogLine(level="info", source="worker", text=line))

    def publish_state(self, now: float) -> None:
        if self.session is not None:
            state = self.session.snapshot(now, self.kernel_path, self.synthetic, self.ranks)
            self._out.telemetry(state)

    def close(self, now: float) -> None:
        if self.session is not None:
            self.session.close()
            self.publish_state(now)
        if self.worker is not None:
            self.worker.close()

    # --- what the worker says -------------------------------------------------------------------
    def _heard(self, worker: WorkerProcess, message: Any, now: float) -> None:
        match message:
            case wm.FrameDone():
                self._frame(worker, message)
            case wm.ChunkDone():
                self._chunk_done(worker, message)
            case wm.Heartbeat(busy_s=busy_s):
                worker.liveness.heard(now, busy_s)
            case wm.WorkerReady():
                worker.liveness.was_ready(now)
            case wm.ModelOpened():
                self._model_opened(message, now)
            case wm.WorkerFailed():
                worker.last_words = message.message
            case _:
                self._job_news(message)

    def _job_news(self, message: wm.JobProgress | wm.JobDone | wm.JobFailed) -> None:
        match message:
            case wm.JobProgress(job=job, fraction=fraction, what=what):
                self._out.job_progress(job, fraction, what)
            case wm.JobDone():
                self._job_done(message)
            case wm.JobFailed():
                self._job_failed(message)

    def _model_opened(self, message: wm.ModelOpened, now: float) -> None:
        self.synthetic, self.kernel_path = message.synthetic, message.kernel_path
        self.ranks = message.ranks
        if self.session is None:
            chunker = Chunker(message.frames_per_chunk, message.lookahead_samples)
            self.session = Session(self.number, chunker, now)
            self.opened = pm.SessionOpened(
                session=self.number, frames_per_chunk=message.frames_per_chunk,
                lookahead_samples=message.lookahead_samples, synthetic=message.synthetic,
            )  # fmt: skip
        elif self._load is None:
            self.session.worker_back()

    def _job_done(self, message: wm.JobDone) -> None:
        if isinstance(message.reply, pm.CharacterLoaded) and self.session is not None:
            self._send(wm.UseCharacter(message.job))
            if message.job == RELOAD:
                if self._settings is not None:
                    self._send(wm.ApplySettings(self._settings))
                return self.session.worker_back()
            assert self._loading is not None
            self._load, self._loading = self._loading, None
            if self._since_load and self._settings is not None:
                self._send(wm.ApplySettings(self._settings))
            else:
                self._settings = msgspec.structs.asdict(self._load.spec.settings)
            self.session.character_taken()
        return self._out.job_ended(message.job, message.reply)

    def _job_failed(self, message: wm.JobFailed) -> None:
        error = EngineError(message.code, message.message, message.hint)
        if message.job in (0, RELOAD):
            self._fail(error)
        else:
            self._out.job_ended(message.job, error)

    def _frame(self, worker: WorkerProcess, message: wm.FrameDone) -> None:
        assert self.session is not None
        stamp = self.session.frame_stamp(message.run, message.chunk_index, message.frame_index)
        if stamp is not None:
            key = (message.run, message.chunk_index)
            if stamp.capture_time_ns:
                self._captured.setdefault(key, stamp.capture_time_ns)
            frame = Frame(
                self.number, self.session.epoch, message.frame_index,
                2_000 * message.frame_index, stamp.capture_time_ns, time.monotonic_ns(),
                worker.bus.view(message.slot), self.synthetic, stamp.idle,
            )  # fmt: skip
            self._out.frame(encode(frame))
        worker.send(wm.FreeSlots([message.slot]))

    def _chunk_done(self, worker: WorkerProcess, message: wm.ChunkDone) -> None:
        assert self.session is not None
        worker.liveness.finished_chunk()
        captured = self._captured.pop((message.run, message.chunk_index), 0)
        if not self.session.chunk_done(message.run, message.chunk_index):
            return
        age_ms = (time.monotonic_ns() - captured) / 1e6 if captured else 0.0
        self._out.telemetry(
            pm.ChunkTimings(
                session=self.number, epoch=message.epoch, chunk_index=message.chunk_index,
                first_frame=message.first_frame, frame_count=message.frame_count,
                stage_ms=self._with_audio(message), capture_to_publish_ms=age_ms,
                queue_chunks=self.session.queued_chunks, ranks=message.ranks,
            )
        )  # fmt: skip

    def _with_audio(self, message: wm.ChunkDone) -> dict[str, float]:
        """The worker's stages and `audio`: cutting, hand-over and waiting for its turn."""
        cut = self._cut.pop((message.run, message.chunk_index), None)
        for key in [k for k in self._cut if k[0] != message.run or k[1] < message.chunk_index]:
            del self._cut[key]  # dropped on the way
        if cut is None:
            return message.stage_ms
        in_engine_ms = 1e3 * (time.monotonic() - cut)
        audio_ms = max(0.0, in_engine_ms - sum(message.stage_ms.values()))
        return {"audio": audio_ms, **message.stage_ms}

    def _fail(self, error: EngineError) -> None:
        """Before the session was opened the client hears of it as the answer, else as a state."""
        if self.session is None:
            self.opened = error
        else:
            self.session.fail(error)

    # --- its fate -------------------------------------------------------------------------------
    def _replace_worker(self, worker: WorkerProcess, reason: str, now: float) -> None:
        worker.close()
        self._out.telemetry(pm.LogLine(level="error", source="engine", text=reason))
        error = EngineError("worker_died", reason, "see the log; open the session again")
        if self._loading is not None:
            # Most likely it is the new picture that kills: do not try that again by ourselves.
            self._out.job_ended(self._loading.job, error)
            self._loading = None
        if self.session is None or not self._budget.spend(now):
            self._fail(error)
            self.worker = None  # may not be restarted any more
            return
        self.session.worker_lost(reason)
        self.worker = self._out.start_worker()
        self._send(self._open)
        if self._load is not None:
            self._send(wm.LoadJob(RELOAD, self.number, self._load.spec, self._load.picture))
