"""The body of the link thread: polls the lanes, keeps the conversation alive, hands things on.

Owns every socket. Speaks to the rest through two callables (`on_event` for small things, `pace` for
frames) and bounded queues. Knows nothing of Qt, sessions or characters.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import zmq

from engine import protocol
from engine.errors import EngineError
from engine.protocol import audio_block, frame, messages
from engine.protocol.frame import Frame
from studio.engine_keys import EngineKeys
from studio.lanes import Lanes
from studio.requests import Requests

HELLO_S = 1.0  # a try; a busy laptop takes 0.3 s to start answering
PING_S = 1.0  # also while frames flow: the engine forgets who is silent on the control lane
DEAD_S = protocol.DEAD_AFTER_MS / 1000
BACK_OFF_S = (0.25, 0.5, 1.0, 2.0, 4.0, 5.0)
REFUSED_RETRY_S = 5.0  # a refusal is final until the engine at that address is another one
IDLE_POLL_MS = 50
FRAMES_A_TURN = 8  # then the other lanes have their turn
OWN_NUMBERS = 2**31  # ids of Hello, Ping and the farewell: above those that callers wait for
FAREWELL_MS = 200


class FrameSink(Protocol):
    """What takes frames and says when it wants to be called again (seconds)."""

    def arrived(self, frame: Frame, now_ns: int) -> None: ...
    def tick(self, now_ns: int) -> float: ...


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """Something for the GUI: kind "state" | "reply" | "failed" | "telemetry", its id and value."""

    kind: str
    number: int
    value: Any


class WireLoop:
    """`run` until `stopping`; every other method is for the link thread, the queues are for all."""

    def __init__(
        self, endpoint: str, hello: messages.Hello, pace: FrameSink,
        on_event: Callable[[LinkEvent], None], wake_fd: int, keys: EngineKeys | None = None,
    ) -> None:  # fmt: skip
        self._endpoint = endpoint
        self._hello = hello
        self._pace = pace
        self._on_event = on_event
        self._wake_fd = wake_fd
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self._lanes = Lanes(self._context, keys)
        self._requests = Requests()
        self._own_numbers = itertools.count(OWN_NUMBERS)
        self._hello_number = 0
        self._welcomed = False
        self._last_traffic = self._last_ping = self._retry_at = 0.0
        self._failures = 0
        self.outgoing: deque[tuple[int, messages.Request, float]] = deque()
        self.blocks: deque[bytes] = deque(maxlen=protocol.AUDIO_HWM)
        self.session = 0
        self._followed = 0
        self.stopping = False
        self.blocks_dropped = 0
        self.frames_malformed = 0
        self.messages_malformed = 0

    def run(self, drain_wake: Callable[[], None]) -> None:
        try:
            while not self.stopping:
                self._turn(drain_wake)
            self._send_farewell()
        finally:
            self._lanes.close()
            self._context.destroy(linger=0)

    # --- one turn -----------------------------------------------------------------------------
    def _turn(self, drain_wake: Callable[[], None]) -> None:
        now = time.monotonic()
        self._keep_alive(now)
        wait_s = self._pace.tick(time.monotonic_ns())
        timeout_ms = math.ceil(min(max(wait_s * 1000, 0), IDLE_POLL_MS))
        for socket in self._poll(timeout_ms):
            if socket == self._wake_fd:
                drain_wake()
            else:
                self._receive(socket)
        self._send_outgoing(time.monotonic())
        self._send_blocks()

    def _poll(self, timeout_ms: int) -> list[Any]:
        poller = zmq.Poller()
        poller.register(self._wake_fd, zmq.POLLIN)
        for socket in (self._lanes.control, self._lanes.frames, self._lanes.telemetry):
            if socket is not None:
                poller.register(socket, zmq.POLLIN)
        return [socket for socket, _ in poller.poll(timeout_ms)]

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        self._last_traffic = time.monotonic()
        if socket is self._lanes.frames:
            self._receive_frames(socket)
            return
        while (data := _receive(socket)) is not None:
            try:
                if socket is self._lanes.control:
                    self._take_reply(messages.decode_reply(data.buffer))
                else:
                    self._take_telemetry(messages.decode_telemetry(data.buffer))
            except EngineError:
                self.messages_malformed += 1
            if socket.closed:
                return

    def _receive_frames(self, socket: zmq.Socket[bytes]) -> None:
        for _ in range(FRAMES_A_TURN):
            data = _receive(socket)
            if data is None:
                return
            try:
                picture = frame.decode(data.buffer)
            except EngineError:
                self.frames_malformed += 1
                continue
            self._pace.arrived(picture, time.monotonic_ns())

    # --- life of the connection ---------------------------------------------------------------
    def _keep_alive(self, now: float) -> None:
        again, failed = self._requests.due(now)
        for data in again:
            self._send_control(data)
        for number, error in failed:
            if number == self._hello_number:
                self._lost(now, "the engine does not answer")
                break
            self._report(LinkEvent("failed", number, error))
        if self._lanes.control is None:
            if now >= self._retry_at:
                self._connect(now)
        elif self._welcomed:
            quiet_s = now - self._last_traffic
            if quiet_s > DEAD_S:
                self._lost(now, f"nothing heard from the engine for {DEAD_S:.0f} s")
            elif now - self._last_ping > PING_S:
                self._last_ping = now
                self._request(next(self._own_numbers), messages.Ping(), DEAD_S, now)

    def _connect(self, now: float) -> None:
        self._lanes.open_control(self._endpoint)
        self._last_traffic = now
        self._hello_number = next(self._own_numbers)
        self._request(self._hello_number, self._hello, HELLO_S, now)

    def _lost(self, now: float, why: str) -> None:
        self._lanes.close()
        self._welcomed = False
        self._followed = 0
        self.blocks.clear()
        self._retry_at = now + BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
        self._failures += 1
        for number, error in self._requests.abandon(EngineError("not_ready", why, "")):
            self._report(LinkEvent("failed", number, error))
        self._on_event(LinkEvent("state", 0, ("lost", why)))

    def _take_reply(self, reply: messages.ReplyEnvelope) -> None:
        if not self._requests.answered(reply.id):
            return
        if reply.id == self._hello_number:
            self._greeted(reply.body)
        elif isinstance(reply.body, messages.Failure):
            if reply.id >= OWN_NUMBERS:  # a Ping that is refused: another engine took this address
                self._lost(time.monotonic(), "the engine has been restarted")
                return
            self._report(LinkEvent("failed", reply.id, reply.body.error()))
        else:
            self._report(LinkEvent("reply", reply.id, reply.body))

    def _report(self, event: LinkEvent) -> None:
        """Tell the caller, unless the request was our own."""
        if event.number < OWN_NUMBERS:
            self._on_event(event)

    def _greeted(self, body: messages.Reply) -> None:
        """WELCOME opens the other lanes; a refusal or a foreign major version closes this one."""
        refusal = _refusal(body, self._hello)
        if refusal is not None:
            self._lanes.close()
            self._retry_at = time.monotonic() + REFUSED_RETRY_S
            self._on_event(LinkEvent("state", 0, ("failed", refusal)))
            return
        assert isinstance(body, messages.Welcome)
        self._lanes.open_others(body, self._endpoint)
        self._welcomed = True
        self._failures = 0
        self._on_event(LinkEvent("state", 0, ("ready", body)))

    def _take_telemetry(self, message: messages.Telemetry) -> None:
        if isinstance(message, messages.ProgressReport):
            self._requests.progressed(message.request, time.monotonic())
        self._on_event(LinkEvent("telemetry", 0, message))

    # --- sending ------------------------------------------------------------------------------
    def _send_outgoing(self, now: float) -> None:
        while self.outgoing:
            number, body, deadline_s = self.outgoing.popleft()
            if self._welcomed:
                self._request(number, body, deadline_s, now)
            else:
                error = EngineError("not_ready", "the engine is not connected", "wait for it")
                self._on_event(LinkEvent("failed", number, error))
        if self._welcomed and self.session != self._followed:
            self._followed = self.session
            self._lanes.follow_session(self.session)

    def _request(self, number: int, body: messages.Request, deadline_s: float, now: float) -> None:
        self._send_control(self._requests.add(number, body, deadline_s, now))

    def _send_control(self, data: bytes) -> None:
        if self._lanes.control is not None:
            # No peer yet (IMMEDIATE) or a full queue: the next try sends it again.
            _send(self._lanes.control, data)

    def _send_blocks(self) -> None:
        while self.blocks:
            data = self.blocks.popleft()
            if self._lanes.audio is None or not _send(self._lanes.audio, data):
                self.blocks_dropped += 1

    def _send_farewell(self) -> None:
        if self._welcomed and self.session and self._lanes.control is not None:
            farewell = messages.CloseSession(session=self.session)
            number = next(self._own_numbers)
            _send(self._lanes.control, messages.encode(messages.RequestEnvelope(number, farewell)))
            self._lanes.control.close(linger=FAREWELL_MS)
            self._lanes.control = None


def encode_block(block: audio_block.AudioBlock) -> bytes:
    return audio_block.encode(block)


def _refusal(body: messages.Reply, hello: messages.Hello) -> EngineError | None:
    if isinstance(body, messages.Failure):
        return body.error()
    if not isinstance(body, messages.Welcome):
        return EngineError("bad_message", f"{type(body).__name__} in answer to Hello", "")
    if body.major != hello.major:
        return EngineError(
            "protocol_version",
            f"the engine speaks protocol {body.major}.{body.minor}, this studio "
            f"{hello.major}.{hello.minor}",
            "install the same version of both",
        )
    return None


def _receive(socket: zmq.Socket[bytes]) -> zmq.Frame | None:
    """The next message of one part, or None; messages of several parts are skipped whole."""
    while True:
        try:
            parts = socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        if len(parts) == 1:
            return parts[0]


def _send(socket: zmq.Socket[bytes], data: bytes) -> bool:
    try:
        socket.send(data, zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True
