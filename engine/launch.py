"""Starts a worker process and holds its end of the link; tells when and why it died.

Knows nothing of sessions or clients.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from engine import worker_messages as wm
from engine.folders import Folders, as_arguments
from engine.framebus import FrameBus
from engine.supervision import Liveness

ROOT = Path(__file__).resolve().parents[1]  # where `python -m engine.worker` finds the package
PR_SET_CHILD_SUBREAPER = 36
STDERR_KEPT = 4_096  # bytes of a worker's last words


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What every worker of a server has in common."""

    runtime_dir: Path  # 0700; holds the links
    folders: Folders
    model_module: str = ""
    gpus: str = "1+0"  # of each session, see engine.gpus


class WorkerProcess:
    """One worker: `messages` in, `send` out, `fate` says whether it still lives."""

    def __init__(self, plan: LaunchPlan, number: int, now: float) -> None:
        self.liveness = Liveness(now)
        self.bus = FrameBus.create()
        self.last_words = ""  # of a WorkerFailed
        self.link = zmq.Context.instance().socket(zmq.PAIR)
        self.link.setsockopt(zmq.LINGER, 0)
        self._path = plan.runtime_dir / f"w{number}"
        self.link.bind(f"ipc://{self._path}")
        self._unsent: deque[bytes] = deque()
        self._stderr = b""
        self.process = self._spawn(plan)
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)

    def _spawn(self, plan: LaunchPlan) -> subprocess.Popen[bytes]:
        command = [
            sys.executable, "-m", "engine.worker", "--link", f"ipc://{self._path}",
            "--bus", str(self.bus.descriptor), "--slots", str(self.bus.slots),
            "--parent-pid", str(os.getpid()), *as_arguments(plan.folders),
            "--model-module", plan.model_module, "--gpus", plan.gpus,
        ]  # fmt: skip
        return subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, pass_fds=[self.bus.descriptor],
            start_new_session=True,  # Ctrl-C in the terminal is the server's to handle
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, message: Any) -> None:
        """Never waits; before the worker has connected, messages queue up here."""
        self._unsent.append(wm.encode(message))
        self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(zmq.Again):
            while self._unsent:
                self.link.send(self._unsent[0], zmq.NOBLOCK)
                self._unsent.popleft()

    def messages(self) -> list[Any]:
        """What has arrived since the last call."""
        self._flush()
        received: list[Any] = []
        with contextlib.suppress(zmq.Again):
            while True:
                received.append(wm.decode_from_worker(self.link.recv(zmq.NOBLOCK)))
        return received

    def read_stderr(self, log: Callable[[str], None]) -> None:
        """Pass on what the worker wrote, line by line; the tail is kept for `fate`."""
        assert self.process.stderr is not None
        data = self.process.stderr.read() if not self.process.stderr.closed else None
        if data:
            self._stderr = (self._stderr + data)[-STDERR_KEPT:]
            for line in data.decode(errors="replace").splitlines():
                log(line)

    def fate(self, now: float) -> str:
        """Empty while it lives; else why it is gone or has to go, in one line."""
        status = self.process.poll()
        if status is None:
            return self.liveness.verdict(now)
        with contextlib.suppress(OSError, ValueError):
            self.read_stderr(lambda line: None)
        how = (
            f"was killed by {signal.Signals(-status).name}"
            if status < 0
            else f"ended with status {status}"
        )
        tail = self._stderr.decode(errors="replace").strip().splitlines()
        why = self.last_words or (tail[-1] if tail else "")
        return f"the worker {how}" + (f" ({why})" if why else "")

    def close(self) -> None:
        """Kill it (it holds nothing that needs saving) with all that it started; take back all."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)  # it leads a session of its own
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        reap_orphans(self.process.pid)
        if self.process.stderr is not None:
            self.process.stderr.close()
        self.link.close()
        self._path.unlink(missing_ok=True)
        self.bus.close()


def adopt_orphans() -> None:
    """Ranks of a worker that was killed become children of this process, which `reap_orphans`
    buries: no zombie is left where process 1 does not care. Linux; elsewhere it does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def reap_orphans(group: int, timeout_s: float = 1.0) -> None:
    """Wait for every child of ours in that process group, all of which were killed."""
    deadline = time.monotonic() + timeout_s
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-group, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
