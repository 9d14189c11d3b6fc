"""An engine's four lanes in a thread: speaks the real protocol, misbehaves on request."""

from __future__ import annotations

import threading
import time

import numpy as np
import zmq

from engine import protocol
from engine.protocol import audio_block, frame, messages


class FakeEngine:
    """`answers` maps a request type to a function body -> reply (None: stays silent)."""

    def __init__(self, endpoint="tcp://127.0.0.1:*", major=protocol.MAJOR):
        self.major = major
        self.context = zmq.Context()
        self.sockets = {
            lane: self.context.socket(kind)
            for lane, kind in zip(
                protocol.LANES, (zmq.ROUTER, zmq.PULL, zmq.PUB, zmq.PUB), strict=True
            )
        }
        for lane, socket in self.sockets.items():
            socket.linger = 0
            socket.bind(endpoint if lane == "control" else "tcp://127.0.0.1:*")
        self.endpoints = {
            name: socket.getsockopt_string(zmq.LAST_ENDPOINT)
            for name, socket in self.sockets.items()
        }
        self.requests, self.blocks, self.answers = [], [], {}
        self.mute = False
        self.outbox = []
        self.stopping = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping:
            while self.outbox:
                lane, data = self.outbox.pop(0)
                self.sockets[lane].send(data)
            if self.sockets["control"].poll(2) and not self.mute:
                identity, data = self.sockets["control"].recv_multipart()
                self.answer(identity, messages.decode_request(data))
            while self.sockets["audio"].poll(0):
                self.blocks.append(audio_block.decode(self.sockets["audio"].recv()))

    def answer(self, identity, envelope):
        self.requests.append(envelope)
        reply = self.answers.get(type(envelope.body), self.usual)(envelope.body)
        if reply is not None:
            data = messages.encode(messages.ReplyEnvelope(envelope.id, reply))
            self.sockets["control"].send_multipart([identity, data])

    def usual(self, body):
        if isinstance(body, messages.Hello):
            return messages.Welcome(
                major=self.major, minor=0, engine_version="fake", features=[], models=["fake"],
                audio=self.endpoints["audio"], frames=self.endpoints["frames"],
                telemetry=self.endpoints["telemetry"], monotonic_ns=time.monotonic_ns(), pid=1,
            )  # fmt: skip
        return messages.Done()

    def publish(self, session, index, epoch=1, size=8):
        pixels = np.full((size, size, 4), index % 256, np.uint8)
        picture = frame.Frame(session, epoch, index, 2000 * index, 0, time.monotonic_ns(), pixels)
        self.outbox.append(("frames", bytes(frame.encode(picture))))

    def tell(self, message):
        self.outbox.append(("telemetry", messages.encode(message)))

    def close(self):
        self.stopping = True
        self.thread.join(2)
        for socket in self.sockets.values():
            socket.close(0)
        self.context.term()
