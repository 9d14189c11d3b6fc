"""The ranks of one session, from rank 0: started together, called together, gone together.

A call goes to every rank of a team (those that denoise, or the one that decodes) and returns when
all have done it, or raises what ended the group. One thread watches. Knows nothing of what is
denoised, nor of who is told when the group dies.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from engine import rank_messages as rm
from engine.errors import CODES, EngineError, named_line
from engine.framebus import FrameBus
from engine.models.base import Progress
from engine.rank_handover import LatentsBuffer
from engine.rank_local import LocalRank
from engine.rank_parts import DenoisePart
from engine.rank_process import RankPlan, RankProcess, Seat, seats

WATCH_S = 0.1
# A rank that is killed makes others fail over a lost peer; so long is waited for the first cause.
GRACE_S = 0.4
MEET_S = 60.0
TURN_S = 1.5  # how long leaving waits for the call under way
LEAVE_S = 1.5  # ... and then for the ranks to go by themselves


class RankGroup:
    """`start`, `meet`, then `denoise` and `decode` calls, `close`.

    `failed(error)` is called on the watching thread when the group dies while nobody waits for a
    call; who waits is told by an exception.
    """

    def __init__(
        self, plan: RankPlan, bus: FrameBus, generator: Any, log: Callable[[str], None],
        failed: Callable[[EngineError], None],
    ) -> None:  # fmt: skip
        self.plan = plan
        self.seats = seats(plan)
        self.latents = LatentsBuffer.create()
        self.error: EngineError | None = None
        self.bus = bus
        self.own: Any = generator  # rank 0's, until `close`
        self.on_stage: dict[str, Any] = {"denoise": None, "decode": None}  # whose character it is
        self._log, self._failed = log, failed
        self._meeting = os.memfd_create("avatar-meeting")
        self._changed = threading.Condition()
        self._answers: dict[tuple[int, int], dict[str, float]] = {}  # (rank, call) -> ms
        self._local_result: list[Any] = []
        self._signs: list[tuple[Seat, EngineError]] = []  # of death, in the order they came
        self._signs_since = 0.0
        self._waiting = 0
        self._turns = {"denoise": threading.Lock(), "decode": threading.Lock()}
        self._progress: Progress = lambda fraction, what: None
        self._met = False
        self._closed = threading.Event()
        self._processes: list[RankProcess] = []
        part = DenoisePart(generator, plan.devices[0], decodes_here=not plan.gpus.decode)
        self._local = LocalRank(
            part, self._local_done, self._local_failed, lambda f, w: self._progress(f, w)
        )
        self._watcher = threading.Thread(target=self._watch, name="rank watch", daemon=True)

    # --- life -----------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the processes; does not wait for them."""
        for seat in self.seats[1:]:
            process = RankProcess(
                self.plan, seat, self.bus, self.latents, [self._meeting], time.monotonic()
            )
            self._processes.append(process)
        self._watcher.start()

    def meet(self) -> None:
        """Wait until every rank is there and joined. Raises EngineError."""
        if self.error is not None:
            raise self.error
        if self._met:
            return
        with self._turns["decode"]:
            self._wait(lambda: all(p.liveness.ready for p in self._processes))
        path, ranks = f"/proc/self/fd/{self._meeting}", self.plan.gpus.denoise
        self._denoise(lambda rank: rm.Join(rank, ranks, path, MEET_S))
        self._met = True

    def close(self) -> None:
        """Let the call under way end, ask every rank to leave, kill what stays. Idempotent."""
        if self._closed.is_set():
            return
        self.own = None  # graphs that captured collectives go before the group does
        if self.error is None and self._turns["denoise"].acquire(timeout=TURN_S):
            for process in self._processes:
                process.send(rm.Close())
            self._local.send(rm.Close())
        self._closed.set()
        deadline = time.monotonic() + (LEAVE_S if self.error is None else 0.0)
        for process in self._processes:
            process.closing = True
            process.close(max(0.0, deadline - time.monotonic()))
        self._local.join(max(0.1, deadline - time.monotonic()))
        if self._watcher.ident is not None and self._watcher is not threading.current_thread():
            self._watcher.join(2)
        os.close(self._meeting)
        self.latents.close()

    # --- calls ----------------------------------------------------------------------------------
    def denoise(
        self, body: rm.Body, progress: Progress | None = None
    ) -> tuple[Any, dict[Seat, dict[str, float]]]:
        """Rank 0's own result and what every other denoise rank measured."""
        self._progress = progress or self._progress
        return self._denoise(lambda rank: body)

    def _denoise(
        self, body_of: Callable[[int], rm.Body]
    ) -> tuple[Any, dict[Seat, dict[str, float]]]:
        with self._turns["denoise"]:  # one call at a time: the same order on every rank
            self._local_result.clear()
            calls = self._send("denoise", body_of)
            self._local.send(body_of(0))
            self._wait(lambda: bool(self._local_result) and calls.keys() <= self._answers.keys())
            return self._local_result[0], self._collect(calls)

    def decode(self, body: rm.Body, progress: Progress | None = None) -> dict[str, float]:
        """What the decode rank measured."""
        self._progress = progress or self._progress
        with self._turns["decode"]:
            calls = self._send("decode", lambda rank: body)
            self._wait(lambda: calls.keys() <= self._answers.keys())
            (measured,) = self._collect(calls).values()
            return measured

    def _send(
        self, role: str, body_of: Callable[[int], rm.Body]
    ) -> dict[tuple[int, int], RankProcess]:
        team = [p for p in self._processes if p.seat.role == role]
        sent = [(p, p.send(body_of(p.seat.number))) for p in team]
        return {(p.seat.number, number): p for p, number in sent}

    def _collect(
        self, calls: Mapping[tuple[int, int], RankProcess]
    ) -> dict[Seat, dict[str, float]]:
        with self._changed:
            return {process.seat: self._answers.pop(key) for key, process in calls.items()}

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Until `ready`. Raises what ended the group."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: self.error is not None or ready())
            self._waiting -= 1
        if self.error is not None:
            raise self.error

    # --- rank 0's own thread --------------------------------------------------------------------
    def _local_done(self, body: rm.Body, result: Any) -> None:
        with self._changed:
            self._local_result.append(result)
            self._changed.notify_all()

    def _local_failed(self, error: BaseException) -> None:
        if not isinstance(error, EngineError):
            for line in "".join(traceback.format_exception(error)).splitlines():
                self._log(f"{self.seats[0]}: {line}")
            error = EngineError("internal", f"{self.seats[0]}: {named_line(error)}")
        self._sign(self.seats[0], error)

    # --- the watching thread --------------------------------------------------------------------
    def _watch(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                for process in self._processes:
                    selector.register(process.link, selectors.EVENT_READ)
                    selector.register(process.stderr, selectors.EVENT_READ)
                while not self._closed.is_set():
                    selector.select(WATCH_S)
                    for process in self._processes:
                        self._look_at(process, selector)
                    if self._signs and time.monotonic() - self._signs_since > GRACE_S:
                        return self._end()
        except Exception as error:  # the top of the thread
            self._local_failed(error)
            self._end()

    def _look_at(self, process: RankProcess, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for message in process.heard(now):
            match message:
                case rm.RankDone(number=number, ms=ms):
                    self._answers[process.seat.number, number] = ms
                case rm.RankProgress(fraction=fraction, what=what):
                    if process.seat.role == "decode":  # of the others rank 0 speaks
                        self._progress(fraction, what)
            with self._changed:
                self._changed.notify_all()
        for line in process.read_stderr():
            self._log(f"{process.seat}: {line}")
        if process.is_gone:
            for file in (process.link, process.stderr):
                with contextlib.suppress(KeyError, ValueError):
                    selector.unregister(file)
        reason = "" if process.closing else process.fate(now)
        if reason and not any(seat is process.seat for seat, _ in self._signs):
            self._sign(process.seat, _as_error(process, reason))

    def _sign(self, seat: Seat, error: EngineError) -> None:
        self._signs_since = self._signs_since or time.monotonic()
        self._signs.append((seat, error))

    def _end(self) -> None:
        """One rank is gone: so are all. Say why, once, to whoever waits or else to `failed`."""
        if self._closed.is_set():
            return
        killed = {p.seat for p in self._processes if p.was_killed}
        firsts = [error for seat, error in self._signs if seat in killed] or [self._signs[0][1]]
        with self._changed:
            self.error = firsts[0]
            told = self._waiting > 0
            self._changed.notify_all()
        for process in self._processes:
            process.closing = True
            process.close(0.0)
        if not told:
            self._failed(firsts[0])


def _as_error(process: RankProcess, reason: str) -> EngineError:
    failure = process.failure
    if failure is None:
        hint = "what it wrote last is in the log; run `avatar-engine doctor` if it happens again"
        return EngineError("worker_died", f"{process.seat} {reason}", hint)
    known = failure.code in CODES and failure.code != "internal"
    code = failure.code if known else "worker_died"
    return EngineError(code, f"{process.seat}: {reason}", failure.hint)
