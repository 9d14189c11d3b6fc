"""The engine's end of the four lanes: sockets, their options and where they are bound.

Knows nothing of messages.
"""

from __future__ import annotations

from pathlib import Path

import zmq

import engine.protocol as wire
from engine.errors import EngineError
from engine.security import CurveKeys

KINDS = {"control": zmq.ROUTER, "audio": zmq.PULL, "frames": zmq.PUB, "telemetry": zmq.PUB}
LIMITS = {
    "control": wire.MAX_CONTROL_BYTES,
    "audio": wire.MAX_AUDIO_BYTES,
    "frames": wire.MAX_AUDIO_BYTES,  # what a subscriber may send us: subscriptions
    "telemetry": wire.MAX_AUDIO_BYTES,
}
HWM = {
    "control": 100,
    "audio": wire.AUDIO_HWM,
    "frames": wire.FRAMES_HWM,
    "telemetry": wire.TELEMETRY_HWM,
}


class Lanes:
    """`control`, `audio`, `frames`, `telemetry`: bound sockets and `endpoints` by lane."""

    def __init__(self, folder: Path | None, host: str, port: int, keys: CurveKeys | None) -> None:
        """ipc sockets in `folder`, or tcp on `host` (ports from `port` on; 0: free ones)."""
        self.sockets: dict[str, zmq.Socket[bytes]] = {}
        self.endpoints: dict[str, str] = {}
        try:
            for i, lane in enumerate(wire.LANES):
                socket = _socket(lane, keys)
                self.sockets[lane] = socket
                place = f"ipc://{folder / lane}" if folder else _tcp(host, port and port + i)
                socket.setsockopt(zmq.IPV6, int(folder is None and ":" in host))
                socket.bind(place)
                self.endpoints[lane] = socket.getsockopt_string(zmq.LAST_ENDPOINT)
        except zmq.ZMQError as error:
            self.close()
            raise EngineError(
                "bad_config", f"cannot bind {place} ({error.strerror})",
                "choose another --bind or --port",
            ) from error  # fmt: skip

    def __getattr__(self, lane: str) -> zmq.Socket[bytes]:
        return self.sockets[lane]

    def close(self) -> None:
        for socket in self.sockets.values():
            socket.close(linger=0)


def _tcp(host: str, port: int) -> str:
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"tcp://{bracketed}:{port or '*'}"


def _socket(lane: str, keys: CurveKeys | None) -> zmq.Socket[bytes]:
    socket = zmq.Context.instance().socket(KINDS[lane])
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.MAXMSGSIZE, LIMITS[lane])
    # WORKAROUND https://github.com/zeromq/libzmq/issues/4364: no ZMTP heartbeats. Their timer
    # aborts the whole process when a peer vanishes while its queue is full (reproduced with 4.3.5
    # in seconds by peers that flood and leave). Ping and engine_state tell of liveness instead.
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, wire.DEAD_AFTER_MS // 1000)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, 3)
    socket.setsockopt(zmq.HANDSHAKE_IVL, 5_000)
    socket.setsockopt(zmq.SNDHWM, HWM[lane])
    socket.setsockopt(zmq.RCVHWM, HWM[lane])
    if lane == "control":
        # A studio that reconnects under its name takes over from its own dead connection.
        socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
    if keys is not None:
        keys.apply(socket)
    return socket
