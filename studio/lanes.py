"""The four sockets of the studio's end of the wire, opened and closed together.

Knows the socket options and endpoints; nothing of messages, threads or sessions. One thread only.
"""

from __future__ import annotations

import struct
import uuid

import zmq

from engine import protocol
from engine.errors import EngineError
from engine.protocol import frame
from engine.protocol.messages import Welcome
from studio.engine_keys import EngineKeys

WILDCARDS = ("*", "0.0.0.0", "[::]")


class Lanes:
    """Control at once; audio, frames and telemetry when WELCOME has named them."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], keys: EngineKeys | None = None
    ) -> None:
        self._context = context
        self._keys = keys
        self._name = uuid.uuid4().bytes  # the same after a reconnect: the engine knows us by it
        self.control: zmq.Socket[bytes] | None = None
        self.audio: zmq.Socket[bytes] | None = None
        self.frames: zmq.Socket[bytes] | None = None
        self.telemetry: zmq.Socket[bytes] | None = None
        self._filters: list[bytes] = []

    def open_control(self, endpoint: str) -> None:
        self.close()
        self.control = self._open(zmq.DEALER, endpoint, protocol.MAX_CONTROL_BYTES, 100)

    def open_others(self, welcome: Welcome, control_endpoint: str) -> None:
        audio = reachable(welcome.audio, control_endpoint)
        frames = reachable(welcome.frames, control_endpoint)
        telemetry = reachable(welcome.telemetry, control_endpoint)
        for old in (self.audio, self.frames, self.telemetry):
            _close(old)
        self.audio = self._open(zmq.PUSH, audio, protocol.MAX_AUDIO_BYTES, protocol.AUDIO_HWM)
        self.frames = self._open(zmq.SUB, frames, protocol.MAX_FRAME_BYTES, protocol.FRAMES_HWM)
        self.telemetry = self._open(
            zmq.SUB, telemetry, protocol.MAX_TELEMETRY_BYTES, protocol.TELEMETRY_HWM
        )
        self.telemetry.subscribe(b"")
        self._filters = []

    def follow_session(self, session: int) -> None:
        """Frames of this session only: the filter is a prefix of the frame's header."""
        if self.frames is None:
            return
        for old in self._filters:
            self.frames.unsubscribe(old)
        self._filters = [frame.MAGIC + struct.pack("<I", session)]
        self.frames.subscribe(self._filters[0])

    def close(self) -> None:
        for socket in (self.control, self.audio, self.frames, self.telemetry):
            _close(socket)
        self.control = self.audio = self.frames = self.telemetry = None

    def _open(self, kind: int, endpoint: str, limit: int, hwm: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.set_hwm(hwm)
        socket.setsockopt(zmq.MAXMSGSIZE, limit)
        # WORKAROUND https://github.com/zeromq/libzmq/issues/4364: no ZMTP heartbeats, their timer
        # aborts the process when the engine vanishes while a queue is full. Ping tells instead.
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 5_000)
        if kind == zmq.PUSH:
            socket.setsockopt(zmq.IMMEDIATE, 1)  # no stale sound for an engine that comes later
        if kind == zmq.DEALER:
            socket.setsockopt(zmq.ROUTING_ID, self._name)
        if self._keys is not None:
            socket.curve_publickey, socket.curve_secretkey = self._keys.public, self._keys.secret
            socket.curve_serverkey = self._keys.server
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:  # a host name with spaces, a path that is too long
            socket.close(linger=0)
            raise EngineError(
                "bad_input", f"{endpoint} is no address of an engine ({error.strerror})",
                "use tcp://host:port or ipc://path",
            ) from error  # fmt: skip
        return socket


def reachable(endpoint: str, control_endpoint: str) -> str:
    """A lane's endpoint as seen from here: an engine bound to a wildcard is at control's host."""
    scheme, _, rest = endpoint.partition("://")
    host, colon, port = rest.rpartition(":")
    if scheme != "tcp" or host not in WILDCARDS:
        return endpoint
    control_host = control_endpoint.partition("://")[2].rpartition(":")[0]
    return f"tcp://{control_host}{colon}{port}"


def _close(socket: zmq.Socket[bytes] | None) -> None:
    if socket is not None:
        socket.close(linger=0)
