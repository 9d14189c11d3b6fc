"""Who is connected to the control lane: greeted or not, when last heard, replies already given.

Knows nothing of sockets or sessions.
"""

from __future__ import annotations

from collections import OrderedDict

import engine.protocol as wire
from engine.errors import EngineError
from engine.protocol.messages import Hello

CLIENTS = 32  # known at once; a stranger beyond that replaces the longest silent one
REPLIES_KEPT = 64  # a client; a repeat of an older request is run again
GRACE_S = 5.0  # a client silent for DEAD_AFTER_MS may come back within this time
GONE_S = wire.DEAD_AFTER_MS / 1000 + GRACE_S


class Client:
    """One peer of the control lane, by its routing id."""

    def __init__(self, identity: bytes, now: float) -> None:
        self.identity = identity
        self.greeted = False
        self.last_heard = now
        self.running: set[int] = set()  # request ids without an answer yet
        self._replies: OrderedDict[int, bytes] = OrderedDict()

    def reply_to(self, request: int) -> bytes | None:
        return self._replies.get(request)

    def greet(self) -> None:
        """A hello begins anew: the client may count its requests from the start again."""
        self.greeted = True
        self._replies.clear()

    def remember(self, request: int, reply: bytes) -> None:
        self.running.discard(request)
        self._replies[request] = reply
        while len(self._replies) > REPLIES_KEPT:
            self._replies.popitem(last=False)


class Clients:
    def __init__(self) -> None:
        self._by_identity: dict[bytes, Client] = {}

    def heard(self, identity: bytes, now: float) -> Client:
        client = self._by_identity.get(identity)
        if client is None:
            self._make_room()
            client = self._by_identity[identity] = Client(identity, now)
        client.last_heard = now
        return client

    def find(self, identity: bytes) -> Client | None:
        return self._by_identity.get(identity)

    def forget_silent(self, now: float) -> None:
        """Clients that were silent for GONE_S are forgotten, with their replies."""
        for identity, client in list(self._by_identity.items()):
            if now - client.last_heard > GONE_S:
                del self._by_identity[identity]

    def _make_room(self) -> None:
        if len(self._by_identity) >= CLIENTS:
            # Strangers first: whoever said hello keeps its place while it can.
            oldest = min(self._by_identity.values(), key=lambda c: (c.greeted, c.last_heard))
            del self._by_identity[oldest.identity]


def negotiate(hello: Hello, token: str) -> tuple[int, int]:
    """The version both speak. Raises EngineError("protocol_version") or ("bad_message")."""
    if hello.major != wire.MAJOR:
        newer = "engine" if hello.major > wire.MAJOR else "studio"
        raise EngineError(
            "protocol_version",
            f"the studio speaks protocol {hello.major}.{hello.minor}, "
            f"the engine {wire.MAJOR}.{wire.MINOR}",
            f"update the {newer}",
        )
    if token and hello.token != token:
        raise EngineError(
            "bad_message", "the token of this engine run is missing or wrong",
            "take it from the engine's ready line or its runtime folder",
        )  # fmt: skip
    return wire.MAJOR, min(hello.minor, wire.MINOR)
