"""One rank's process as rank 0 sees it: started, called, heard, and why it is gone.

Knows nothing of what its calls mean. Times are arguments; only `close` waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import rank_messages as rm
from engine.folders import Folders, as_arguments
from engine.framebus import FrameBus
from engine.gpus import Gpus
from engine.rank_handover import LatentsBuffer
from engine.rank_link import RankLink
from engine.supervision import SILENT_S, Liveness

ROOT = Path(__file__).resolve().parents[1]  # where `python -m engine.rank_body` finds the package
# Before torch is imported: a thread a core for every rank takes 40 times as long (measured, gloo).
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
READY_S = 90.0  # imports: eight ranks read torch and CUDA's libraries from a cold disk at once
SILENT_JOB_S = 60.0  # compilers and loaders may keep the interpreter to themselves for long
ENDING_S = 0.3  # from the end of its link to its exit status
STDERR_KEPT = 8_192  # bytes: a report of some sixty lines


@dataclass(frozen=True, slots=True)
class RankPlan:
    """What all ranks of a session have in common."""

    gpus: Gpus
    model: str
    options: dict[str, float]
    folders: Folders
    model_module: str = ""
    devices: list[str] = field(default_factory=list)  # of every rank, "cuda:0" or "cpu"


@dataclass(frozen=True, slots=True)
class Seat:
    """One rank's place in the group."""

    number: int
    role: str  # "denoise" or "decode"
    device: str

    def __str__(self) -> str:
        return f"{self.role} rank {self.number} ({self.device})"


def seats(plan: RankPlan) -> list[Seat]:
    """Every rank; rank 0 is the process that starts the others."""
    roles = ["denoise"] * plan.gpus.denoise + ["decode"] * plan.gpus.decode
    return [Seat(i, role, plan.devices[i]) for i, role in enumerate(roles)]


class RankProcess:
    """`send` calls, `heard` messages, `fate`: empty, or why it is gone or has to go."""

    def __init__(
        self, plan: RankPlan, seat: Seat, bus: FrameBus, latents: LatentsBuffer,
        inherited: list[int], now: float,
    ) -> None:  # fmt: skip
        """`inherited`: further descriptors, such as the one that denoise ranks meet at."""
        self.seat = seat
        self.liveness = Liveness(now, ready_timeout_s=READY_S)
        self.failure: rm.RankFailed | None = None
        self.is_gone = False  # its end of the link is closed
        self._gone_at = 0.0
        self.closing = False  # it was asked to leave: that it goes is no failure
        self._next_number = 0
        self._in_job = True  # until its first chunk: building takes its time
        self._stderr: deque[bytes] = deque()
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), bus.descriptor, latents.descriptor]
        command = [
            sys.executable, "-m", "engine.rank_body", "--role", seat.role,
            "--device", seat.device, "--link", str(theirs.fileno()),
            "--bus", str(bus.descriptor), "--slots", str(bus.slots),
            "--latents", str(latents.descriptor), "--parent-pid", str(os.getpid()),
            "--model", plan.model, "--options", json.dumps(plan.options),
            "--model-module", plan.model_module, *as_arguments(plan.folders),
        ]  # fmt: skip
        with theirs:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, pass_fds=[*descriptors, *inherited],
                env={**os.environ, **ONE_THREAD},
            )  # fmt: skip
        self.link = RankLink(ours)
        assert self.process.stderr is not None
        self.stderr = self.process.stderr
        os.set_blocking(self.stderr.fileno(), False)

    def send(self, body: rm.Body) -> int:
        """The number of the call. A process that is gone is told by `fate`, not here."""
        number, self._next_number = self._next_number, self._next_number + 1
        self.closing = self.closing or isinstance(body, rm.Close)
        self._in_job = isinstance(body, rm.Join | rm.Prepare)
        with contextlib.suppress(OSError):
            self.link.send(rm.encode(rm.Call(number, body)))
        return number

    def heard(self, now: float) -> list[Any]:
        """What has arrived, its signs of life taken note of."""
        arrived = None if self.is_gone else self.link.receive(0)
        if arrived is None:
            self._gone_at = self._gone_at or now
            self.is_gone = True
            return []
        messages = [rm.decode_from_rank(data) for data in arrived]
        for message in messages:
            match message:
                case rm.RankReady():
                    self.liveness.was_ready(now)
                case rm.RankBeat(busy_s=busy_s):
                    self.liveness.heard(now, {"jobs" if self._in_job else "step": busy_s})
                case rm.RankDone() if not self._in_job:
                    self.liveness.finished_chunk()
                case rm.RankFailed():
                    self.failure = message
        return messages

    def read_stderr(self) -> list[str]:
        """New lines that it wrote; the newest are kept for `fate`."""
        data = self.stderr.read() if not self.stderr.closed else None
        if not data:
            return []
        self._stderr.append(data)
        while sum(map(len, self._stderr)) > STDERR_KEPT and len(self._stderr) > 1:
            self._stderr.popleft()
        return data.decode(errors="replace").splitlines()

    @property
    def was_killed(self) -> bool:
        """It ended without a word of its own: the first cause, where others only lost a peer."""
        return self.failure is None and self.process.poll() is not None

    def fate(self, now: float) -> str:
        if self.failure is not None:
            return self.failure.message
        status = self.process.poll()
        if status is None:
            return self._silence(now)
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        tail = b"".join(self._stderr).decode(errors="replace").strip().splitlines()
        return f"ended with status {status}" + (f" ({tail[-1]})" if tail else "")

    def _silence(self, now: float) -> str:
        if self.is_gone:  # its end is known in a moment, and says more
            return "closed its link" if now - self._gone_at > ENDING_S else ""
        return self.liveness.verdict(now, SILENT_JOB_S if self._in_job else SILENT_S)

    def close(self, timeout_s: float) -> None:
        """Wait so long for it to end by itself, then kill it. Nothing is left of it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        self.process.kill()
        self.process.wait()
        self.link.close()
        self.stderr.close()
