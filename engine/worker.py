"""Process body of a worker: one session's models, behind a private link to the server.

Threads: this one owns the link; generator and decoder (`engine.chunk_loop`); slow jobs
(`engine.worker_jobs`). Knows nothing of clients, lanes or epochs' meaning.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import queue
import sys
import time
from typing import Any

import numpy as np
import zmq

from engine import worker_messages as wm
from engine.chunk_loop import ChunkLoop
from engine.decoder import DecodedChunk
from engine.errors import EngineError
from engine.folders import add_arguments, from_arguments
from engine.framebus import FrameBus
from engine.gpus import parse
from engine.models.base import Chunk
from engine.rank_start import RankStart
from engine.worker_jobs import JobThread

HEARTBEAT_MS = 500


class Worker:
    """Everything of the process; `run` returns when the server says so or is gone."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._parent = options.parent_pid
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._link = zmq.Context.instance().socket(zmq.PAIR)
        self._link.setsockopt(zmq.LINGER, 1_000)  # last words
        self._link.connect(options.link)
        self._running = True
        bus = FrameBus(options.bus, options.slots)
        self._loop = ChunkLoop(bus, self._deliver, self._thread_failed)
        folders = from_arguments(options)
        gpus = parse(options.gpus)
        ranks = RankStart(
            gpus, bus, folders, options.model_module, _log, self._thread_failed
        )  # fmt: skip
        self._jobs = JobThread(
            folders, self.send, self._thread_failed, ranks if gpus.total > 1 else None
        )
        self._do = {
            wm.OpenModel: self._jobs.put,
            wm.LoadJob: self._jobs.put,
            wm.InspectJob: self._jobs.put,
            wm.DoctorJob: self._jobs.put,
            wm.ListModelsJob: self._jobs.put,
            wm.LoadModelJob: self._jobs.put,
            wm.BenchModelJob: self._jobs.put,
            wm.WarmJob: self._jobs.put,
            wm.CancelJob: lambda m: self._jobs.cancel(m.job),
            wm.UseCharacter: self._use_character,
            wm.ApplySettings: lambda m: self._loop.set_settings(m.settings),
            wm.DropRun: lambda m: self._loop.drop_before(m.run, m.reset),
            wm.ChunkJob: self._chunk,
            wm.FreeSlots: lambda m: self._loop.pool.release(m.slots),
            wm.Shutdown: self._shutdown,
        }

    def send(self, message: Any) -> None:
        """From any thread: leaves on the link in order."""
        self._outbox.put(message)
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well as one byte more
            os.write(self._wake_write, b"1")

    def run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._link, zmq.POLLIN)
        poller.register(self._wake_read, zmq.POLLIN)
        self.send(wm.WorkerReady(os.getpid()))
        next_beat = 0.0
        while self._running or not self._outbox.empty():
            events = dict(poller.poll(HEARTBEAT_MS // 2))
            if self._link in events:
                self._receive()
            if self._wake_read in events:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            now = time.monotonic()
            if now >= next_beat:
                next_beat = now + HEARTBEAT_MS / 1000
                self.send(wm.Heartbeat({**self._loop.busy_s(now), "jobs": self._jobs.busy_s(now)}))
                if os.getppid() != self._parent:
                    break
            self._flush()
        self._jobs.close()
        self._link.close()
        zmq.Context.instance().term()  # waits LINGER at most for the last words to leave

    def _receive(self) -> None:
        with contextlib.suppress(zmq.Again):
            while True:
                message = wm.decode_to_worker(self._link.recv(zmq.NOBLOCK))
                self._do[type(message)](message)

    def _flush(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._link.send(wm.encode(self._outbox.get_nowait()))

    def _use_character(self, message: wm.UseCharacter) -> None:
        models = self._jobs.loaded.pop(message.job, None)
        if models is not None:
            self._loop.swap(models)

    def _chunk(self, message: wm.ChunkJob) -> None:
        pcm = np.frombuffer(message.pcm, np.float32)
        self._loop.put(
            message.run,
            Chunk(message.epoch, message.index, message.first_frame, message.frame_count, pcm),
        )

    def _shutdown(self, message: wm.Shutdown) -> None:
        self._running = False

    def _deliver(self, chunk: DecodedChunk) -> None:
        latents = chunk.latents
        for i, slot in enumerate(chunk.slots):
            frame = latents.first_frame + i
            self.send(wm.FrameDone(chunk.run, latents.chunk_index, frame, slot))
        self.send(
            wm.ChunkDone(
                chunk.run, latents.epoch, latents.chunk_index, latents.first_frame,
                latents.frame_count, chunk.stage_ms, latents.rank_times,
            )
        )  # fmt: skip

    def _thread_failed(self, error: BaseException) -> None:
        """A thread has ended by an error: say why; the server restarts the process."""
        if isinstance(error, EngineError):
            self.send(wm.WorkerFailed(error.code, error.message, error.hint))
        else:
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            at = f" at {where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
            print(f"{type(error).__name__}: {error}{at}", file=sys.stderr)  # noqa: T201
            self.send(wm.WorkerFailed("internal", f"{type(error).__name__}: {error}", ""))
        self._running = False


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - the server passes it on


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="engine.worker")
    parser.add_argument("--link", required=True)
    parser.add_argument("--bus", type=int, required=True, help="descriptor of the frame bus")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--parent-pid", type=int, required=True)
    add_arguments(parser)
    parser.add_argument("--gpus", default="1+0", help="N+M: ranks that denoise and decode")
    parser.add_argument("--model-module", default="", help="imported first; may add to MODELS")
    options = parser.parse_args(argv)
    with contextlib.suppress(ImportError):
        import cv2

        cv2.setNumThreads(1)  # one core's worth: cv2 would start a thread a core per call
    if options.gpus != "1+0":
        importlib.import_module("torch")  # seconds: while nobody waits for a heartbeat yet
    if options.model_module:
        importlib.import_module(options.model_module)
    Worker(options).run()
    return 0


if __name__ == "__main__":
    # Daemon threads may sit in native code: no waiting for them on the way out.
    status = main()
    sys.stderr.flush()
    os._exit(status)
