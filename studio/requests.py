"""Requests under way: ids, deadlines and up to three tries, as a table without sockets.

A repeat carries the same id: the engine answers it from its reply cache and does not run it twice.
`now` is an argument in seconds. Knows nothing of threads; the link thread owns it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import EngineError
from engine.protocol.messages import Request, RequestEnvelope, encode

TRIES = 3


@dataclass(slots=True)
class Waiting:
    """One request: its bytes, when its try ends, and how many tries are left."""

    data: bytes
    name: str
    deadline_s: float  # seconds a try may take
    ends_at: float
    tries_left: int


class Requests:
    """`add` gives the bytes to send, `due` what to send again, `expired` what has failed."""

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}

    def add(self, number: int, body: Request, deadline_s: float, now: float) -> bytes:
        data = encode(RequestEnvelope(number, body))
        name = type(body).__name__
        self._waiting[number] = Waiting(data, name, deadline_s, now + deadline_s, TRIES - 1)
        return data

    def answered(self, number: int) -> bool:
        """True for the first answer to a request; a second answer to a repeat is ignored."""
        return self._waiting.pop(number, None) is not None

    def progressed(self, number: int, now: float) -> None:
        """The engine works on it: judge by liveness, not by total time."""
        waiting = self._waiting.get(number)
        if waiting:
            waiting.ends_at = now + waiting.deadline_s

    def due(self, now: float) -> tuple[list[bytes], list[tuple[int, EngineError]]]:
        """(what to send once more, what has failed for good)."""
        again: list[bytes] = []
        failed: list[tuple[int, EngineError]] = []
        for number, waiting in list(self._waiting.items()):
            if now < waiting.ends_at:
                continue
            if waiting.tries_left == 0:
                del self._waiting[number]
                failed.append((number, _timeout(waiting)))
                continue
            waiting.tries_left -= 1
            waiting.ends_at = now + waiting.deadline_s
            again.append(waiting.data)
        return again, failed

    def abandon(self, error: EngineError) -> list[tuple[int, EngineError]]:
        """The engine is gone: every request under way fails with `error`."""
        failed = [(number, error) for number in self._waiting]
        self._waiting.clear()
        return failed

    def __len__(self) -> int:
        return len(self._waiting)


def _timeout(waiting: Waiting) -> EngineError:
    total = waiting.deadline_s * TRIES
    return EngineError(
        "timeout", f"the engine did not answer {waiting.name} within {total:.0f} s",
        "wait for it to recover, or restart it from the Engine menu",
    )  # fmt: skip
