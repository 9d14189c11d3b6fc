"""EngineLink: the studio's end of the wire. One thread owns the sockets; one signal a message.

Requests have an id, a deadline and up to three tries; answers and telemetry come as signals in the
GUI thread through one bounded inbox and one coalesced wake-up. Frames never pass through signals:
they go to the pace. Knows nothing of characters or voices.
"""

from __future__ import annotations

import itertools
import socket
import threading
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal

from engine import protocol
from engine.errors import EngineError
from engine.protocol import messages
from engine.protocol.audio_block import AudioBlock
from studio.engine_keys import EngineKeys
from studio.wire_loop import FrameSink, LinkEvent, WireLoop, encode_block

DEADLINE_S = 2.0  # one try of a request that the engine answers at once
INBOX = 1_000  # telemetry messages while the GUI is blocked: 30 s of them; the oldest go
JOIN_S = 2.0

OnReply = Callable[[messages.Reply], None]
OnFailure = Callable[[EngineError], None]


class EngineLink(QObject):
    """`open(endpoint)`, `request(...)`, `send_block(...)`, `close()`; GUI thread, never blocks."""

    connected = Signal(object)  # Welcome
    lost = Signal(str)  # why; the link goes on trying with back-off
    refused = Signal(object)  # EngineError: the engine is there and will not have us
    telemetry = Signal(object)  # messages.Telemetry
    _woken = Signal()

    def __init__(
        self, pace: FrameSink, app_version: str = "", parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._pace = pace
        self._app_version = app_version
        self._numbers = itertools.count(1)
        self._callbacks: dict[int, tuple[OnReply | None, OnFailure | None]] = {}
        self._answers: deque[LinkEvent] = deque()
        self._news: deque[LinkEvent] = deque(maxlen=INBOX)
        self._pending = threading.Event()
        self._loop: WireLoop | None = None
        self._thread: threading.Thread | None = None
        self._wake: socket.socket | None = None
        self._woken.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def open(self, endpoint: str, token: str = "", keys: EngineKeys | None = None) -> None:
        """Connect to `endpoint` and go on trying until `close`; a link that is open moves there."""
        self.close()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        hello = messages.Hello(
            major=protocol.MAJOR, minor=protocol.MINOR, app_version=self._app_version,
            token=token,
        )  # fmt: skip
        loop = WireLoop(endpoint, hello, self._pace, self._post, theirs.fileno(), keys)
        self._wake, self._loop = ours, loop
        self._thread = threading.Thread(
            target=_run, args=(loop, theirs, self._post), name="engine-link", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Say goodbye, stop the thread, forget what is under way. Idempotent."""
        if self._thread is None or self._loop is None or self._wake is None:
            return
        self._loop.stopping = True
        self._nudge()
        self._thread.join(JOIN_S)
        self._wake.close()
        self._thread = self._loop = self._wake = None
        self._callbacks.clear()
        self._answers.clear()
        self._news.clear()

    def request(
        self, body: messages.Request, on_reply: OnReply | None = None,
        on_failure: OnFailure | None = None, deadline_s: float = DEADLINE_S,
    ) -> int:  # fmt: skip
        """Send `body`; exactly one of the two is called in the GUI thread. Returns its id."""
        number = next(self._numbers)
        self._callbacks[number] = (on_reply, on_failure)
        if self._loop is None:
            error = EngineError("not_ready", "there is no engine", "start it from the Engine menu")
            self._post(LinkEvent("failed", number, error))
        else:
            self._loop.outgoing.append((number, body, deadline_s))
            self._nudge()
        return number

    def send_block(self, block: AudioBlock) -> None:
        """From any thread. A link that is lost drops it; the engine counts the gap."""
        loop = self._loop
        if loop is not None:
            loop.blocks.append(encode_block(block))
            self._nudge()

    def follow_session(self, session: int) -> None:
        """Take frames of this session only."""
        if self._loop is not None:
            self._loop.session = session
            self._nudge()

    def counts(self) -> dict[str, int]:
        """What this end had to throw away, by reason."""
        loop = self._loop
        if loop is None:
            return {}
        return {
            "block_unsent": loop.blocks_dropped,
            "frame_malformed": loop.frames_malformed,
            "message_malformed": loop.messages_malformed,
        }

    # --- link thread -> GUI thread ------------------------------------------------------------
    def _post(self, event: LinkEvent) -> None:
        (self._news if event.kind == "telemetry" else self._answers).append(event)
        if not self._pending.is_set():
            self._pending.set()
            self._woken.emit()

    def _deliver(self) -> None:
        self._pending.clear()
        while self._answers:
            self._deliver_answer(self._answers.popleft())
        for _ in range(len(self._news)):
            self.telemetry.emit(self._news.popleft().value)

    def _deliver_answer(self, event: LinkEvent) -> None:
        if event.kind == "state":
            state, value = event.value
            signal = {"ready": self.connected, "lost": self.lost, "failed": self.refused}[state]
            signal.emit(value)
            return
        on_reply, on_failure = self._callbacks.pop(event.number, (None, None))
        answer = on_reply if event.kind == "reply" else on_failure
        if answer is not None:
            answer(event.value)

    def _nudge(self) -> None:
        if self._wake is not None:
            try:
                self._wake.send(b"\0")
            except (BlockingIOError, OSError):
                return  # a full pipe wakes it as well; a closed one has nobody to wake


def _run(loop: WireLoop, theirs: socket.socket, post: Callable[[LinkEvent], None]) -> None:
    """Thread body: the one place that catches everything, reports it and stops."""

    def drain() -> None:
        try:
            while theirs.recv(4096):
                pass
        except BlockingIOError:
            return

    try:
        loop.run(drain)
    except EngineError as error:
        post(LinkEvent("state", 0, ("failed", error)))
    except Exception as error:  # top of the thread
        why = EngineError("internal", f"the link to the engine broke: {error!r}", "restart it")
        post(LinkEvent("state", 0, ("failed", why)))
    finally:
        theirs.close()
