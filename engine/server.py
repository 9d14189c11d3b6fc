"""The socket loop of `avatar-engine serve`: one thread owns every socket and never waits.

What a request does is in `engine.requests`, what a session does in `engine.live_session`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psutil
import zmq

import engine.protocol as wire
from engine import requests
from engine import worker_messages as wm
from engine.clients import Client, Clients
from engine.config import Config
from engine.errors import EngineError
from engine.folders import Folders
from engine.frame_queue import FrameQueue
from engine.lanes import Lanes
from engine.launch import LaunchPlan, WorkerProcess
from engine.live_session import LiveSession, Outlet
from engine.protocol import audio_block
from engine.protocol import messages as pm
from engine.security import (
    CurveKeys,
    ZapDoor,
    check_bind,
    load_keys,
    make_runtime_dir,
    sweep_runtime_dirs,
)
from engine.spare_worker import SpareWorker

TICK_LIVE_S = 0.02  # with sessions: how late a starved source may be noticed
TICK_IDLE_S = 0.2
TICK_BURST_S = 0.002  # while frames wait for a subscriber's socket: about a frame's transport
JOBS = 8  # slow requests of one client at a time: each may carry a picture of 60 MB
DRAIN_S = 4.0  # then workers are killed
BATCH = 64  # messages of a lane in one turn, so that no lane starves another


@dataclass(frozen=True, slots=True)
class Job:
    """A slow request under way in a worker."""

    client: bytes
    request: int
    live: LiveSession | None


class Server:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.keys: CurveKeys | None = None
        if config.curve_key_dir is not None:
            self.keys = load_keys(config.curve_key_dir)
        is_ipc = config.bind == "ipc"
        if not is_ipc:
            check_bind(config.bind, self.keys is not None)
        sweep_runtime_dirs(config.runtime_dir)
        self.folder: Path = make_runtime_dir(config.runtime_dir)
        self.door = ZapDoor(self.keys.clients) if self.keys else None
        self.lanes = Lanes(self.folder if is_ipc else None, config.bind, config.port, self.keys)
        self.token = secrets.token_hex(16) if config.token and self.keys is None else ""
        self._frames = FrameQueue(self.lanes.frames)
        self.clients = Clients()
        self.sessions: dict[int, LiveSession] = {}
        self.owners: dict[int, tuple[bytes, int]] = {}  # session -> client, its OpenSession id
        self.refused = 0
        self.stopping = False
        self._jobs: dict[int, Job] = {}
        self._next_job = self._next_worker = 1
        folders = Folders(config.cache_dir, config.models_dir, config.checkpoints)
        self._plan = LaunchPlan(self.folder, folders, config.model_module, config.gpus)
        self._process = psutil.Process()
        self._started = time.monotonic()
        self._next_second = 0.0
        self._parent_is_direct = os.getppid() == config.parent_pid
        self.spare = SpareWorker(self._start_worker, self.job_ended, self._progress, self._log)
        self.outlet = Outlet(
            self._publish_frame, self.publish, self._start_worker, self.job_ended, self._progress
        )

    # --- life -----------------------------------------------------------------------------------
    def ready_line(self) -> dict[str, Any]:
        return {
            "ready": True, "pid": os.getpid(), "protocol": f"{wire.MAJOR}.{wire.MINOR}",
            "endpoints": self.lanes.endpoints, "token": self.token,
            "public_key": self.keys.public.decode() if self.keys else "",
            "runtime_dir": str(self.folder),
        }  # fmt: skip

    def run(self, announce: Callable[[str], None]) -> None:
        """Serve until `stopping` is set or the parent is gone; `announce` gets the ready line."""
        try:
            if self.config.spare_worker:
                self.spare.ensure()
            line = json.dumps(self.ready_line())
            discovery = self.folder / "engine.json"
            discovery.touch(mode=0o600)
            discovery.write_text(line)
            announce(line)
            while not self.stopping and not self._parent_is_gone():
                tick = TICK_LIVE_S if self.sessions else TICK_IDLE_S
                self._wait(TICK_BURST_S if self._frames.waiting else tick)
                self._turn(time.monotonic())
        finally:
            self.close()

    def _drain(self) -> None:
        """Let every worker end what it is at and leave its ranks in order."""
        workers = [self.spare.worker, *(live.worker for live in self.sessions.values())]
        living = [w for w in workers if w is not None]
        for worker in living:
            worker.send(wm.Shutdown())
        deadline = time.monotonic() + DRAIN_S
        while any(w.process.poll() is None for w in living) and time.monotonic() < deadline:
            time.sleep(0.01)

    def close(self) -> None:
        self._drain()
        now = time.monotonic()
        for live in self.sessions.values():
            live.close(now)
        self.sessions.clear()
        self.spare.close()
        self.lanes.close()
        if self.door is not None:
            self.door.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self, seconds: float) -> None:
        """Until something arrives on any lane or worker link."""
        workers = [self.spare.worker, *(live.worker for live in self.sessions.values())]
        sockets = [self.lanes.control, self.lanes.audio, *(w.link for w in workers if w)]
        if self.door is not None:
            sockets.append(self.door.socket)
        zmq.select(sockets, [], [], seconds)

    def _parent_is_gone(self) -> bool:
        if self.config.parent_pid == 0:
            return False
        if self._parent_is_direct:
            return os.getppid() != self.config.parent_pid
        return not psutil.pid_exists(self.config.parent_pid)

    def _turn(self, now: float) -> None:
        if self.door is not None:
            while self.door.socket.poll(0):
                self.door.answer()
        self._frames.flush(now)
        self._read(self.lanes.control, self._control)
        self._read(self.lanes.audio, self._audio)
        self.spare.tick(now)
        for live in list(self.sessions.values()):
            live.tick(now)
            self._answer_open(live)
        if now >= self._next_second:
            self._next_second = now + 1.0
            self._each_second(now)

    def _read(self, socket: zmq.Socket[bytes], take: Callable[[list[bytes]], None]) -> None:
        with contextlib.suppress(zmq.Again):
            for _ in range(BATCH):
                take(socket.recv_multipart(zmq.NOBLOCK))

    # --- control lane -----------------------------------------------------------------------------
    def _control(self, parts: list[bytes]) -> None:
        client = self.clients.heard(parts[0], time.monotonic())
        try:
            if len(parts) != 2:
                raise EngineError("bad_message", f"{len(parts) - 1} parts instead of one")
            envelope = pm.decode_request(parts[1])
        except EngineError as error:
            self.refused += 1
            return self._send(client.identity, pm.encode(pm.ReplyEnvelope(0, _failure(error))))
        if not isinstance(envelope.body, pm.Hello):  # which begins anew
            known = client.reply_to(envelope.id)
            if known is not None:
                return self._send(client.identity, known)
            if envelope.id in client.running:
                return None  # its answer is on the way
        client.running.add(envelope.id)
        try:
            reply = requests.act(self, client, envelope)
        except EngineError as error:
            reply = _failure(error)
        if reply is not None:
            self.reply(client.identity, envelope.id, reply)
        return None

    def reply(self, identity: bytes, request: int, body: Any) -> None:
        client = self.clients.find(identity)
        data = pm.encode(pm.ReplyEnvelope(request, body))
        if client is not None:
            client.remember(request, data)
        self._send(identity, data)

    def _send(self, identity: bytes, data: bytes) -> None:
        with contextlib.suppress(zmq.Again):  # a client that does not read asks again
            self.lanes.control.send_multipart([identity, data], zmq.NOBLOCK)

    # --- audio lane -------------------------------------------------------------------------------
    def _audio(self, parts: list[bytes]) -> None:
        try:
            if len(parts) != 1:
                raise EngineError("bad_message", f"{len(parts)} parts instead of one")
            block = audio_block.decode(parts[0])
        except EngineError:
            self.refused += 1
            return
        live = self.sessions.get(block.session)
        if live is None:
            self.refused += 1
        else:
            now = time.monotonic()
            live.take_block(block, now)
            owner = self.clients.find(self.owners[block.session][0])
            if owner is not None:
                owner.last_heard = now  # whoever speaks is alive

    # --- frames and telemetry ---------------------------------------------------------------------
    def _publish_frame(self, data: bytearray) -> None:
        self._frames.offer(data, time.monotonic())

    def publish(self, message: msgspec.Struct) -> None:
        with contextlib.suppress(zmq.Again):
            self.lanes.telemetry.send(pm.encode(message), zmq.NOBLOCK)

    def _log(self, level: Any, text: str) -> None:
        self.publish(pm.LogLine(level=level, source="worker", text=text))

    def _each_second(self, now: float) -> None:
        for live in self.sessions.values():
            live.publish_state(now)
        self.clients.forget_silent(now)
        for number, (identity, _) in list(self.owners.items()):
            if self.clients.find(identity) is None:
                self.close_session(number)
        self.publish(
            pm.EngineState(
                pid=os.getpid(), rss_bytes=self._process.memory_info().rss,
                cpu_percent=self._process.cpu_percent(), sessions=len(self.sessions),
                worker=self._worker_word(), uptime_s=round(now - self._started, 3),
                messages_refused=self.refused + (self.door.refused if self.door else 0),
            )
        )  # fmt: skip

    def _worker_word(self) -> Any:
        workers = [live.worker for live in self.sessions.values()]
        if any(w is None for w in workers):
            return "dead"
        if any(live.session and live.session.note for live in self.sessions.values()):
            return "restarting"
        if not workers and self.spare.worker is not None:
            workers = [self.spare.worker]
        if any(w is not None and not w.liveness.ready for w in workers):
            return "starting"
        return "busy" if any(w is not None and w.liveness.busy for w in workers) else "ready"

    # --- sessions, workers, jobs ------------------------------------------------------------------
    def close_session(self, number: int) -> None:
        live = self.sessions.pop(number)
        del self.owners[number]
        error = EngineError("cancelled", "the session was closed")
        for job, entry in list(self._jobs.items()):
            if entry.live is live:
                self.job_ended(job, error)
        live.close(time.monotonic())
        if not self.sessions and self.config.spare_worker:
            self.spare.ensure()  # so that the next session opens at once

    def _answer_open(self, live: LiveSession) -> None:
        if live.opened is None:
            return
        opened, live.opened = live.opened, None
        identity, request = self.owners[live.number]
        if isinstance(opened, EngineError):
            self.reply(identity, request, _failure(opened))
            if live.session is None:
                self.close_session(live.number)
        else:
            self.reply(identity, request, opened)

    def _start_worker(self) -> WorkerProcess:
        number, self._next_worker = self._next_worker, self._next_worker + 1
        return WorkerProcess(self._plan, number, time.monotonic())

    def new_job(self, client: Client, request: int, live: LiveSession | None) -> int:
        if sum(job.client == client.identity for job in self._jobs.values()) >= JOBS:
            raise EngineError("bad_input", f"{JOBS} slow requests are under way", "wait for one")
        job, self._next_job = self._next_job, self._next_job + 1
        self._jobs[job] = Job(client.identity, request, live)
        return job

    def job_ended(self, job: int, result: Any) -> None:
        entry = self._jobs.pop(job, None)
        if entry is not None:
            body = _failure(result) if isinstance(result, EngineError) else result
            self.reply(entry.client, entry.request, body)

    def cancel_job(self, identity: bytes, request: int) -> None:
        for job, entry in self._jobs.items():
            if (entry.client, entry.request) == (identity, request):
                self.spare.cancel(job) if entry.live is None else entry.live.cancel(job)

    def _progress(self, job: int, fraction: float, what: str) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            self.publish(pm.ProgressReport(request=entry.request, fraction=fraction, what=what))


def _failure(error: EngineError) -> pm.Failure:
    return pm.Failure(code=error.code, message=error.message, hint=error.hint)
