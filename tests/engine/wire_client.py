"""A small studio for tests: speaks the wire to a real engine process over real sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import zmq

from engine.protocol import audio_block, frame
from engine.protocol import messages as pm
from engine.protocol.audio_block import AudioBlock

ROOT = Path(__file__).resolve().parents[2]


class EngineUnderTest:
    """`avatar-engine serve` as a child process; `ready` is its ready line."""

    def __init__(self, tmp_path, *arguments, stdin=None):
        self.log = (tmp_path / "engine.log").open("w")
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "engine",
                "serve",
                "--runtime-dir",
                str(tmp_path),
                "--cache-dir",
                str(tmp_path / "cache"),
                "--parent-pid",
                str(os.getpid()),
                "--model-module",
                "tests.engine.meter_model",
                *arguments,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "AVATAR_LOG": "debug"},
        )
        line = self.process.stdout.readline()
        assert line, (tmp_path / "engine.log").read_text()
        self.ready = json.loads(line)

    def close(self):
        self.process.terminate()
        status = self.process.wait(10)
        self.process.stdout.close()
        self.log.close()
        return status


class WireClient:
    def __init__(self, ready, keys=None, hello=True, name=None):
        self.context = zmq.Context()
        self.ready, self.keys, self.name = ready, keys, name
        self.control = self._socket(zmq.DEALER, ready["endpoints"]["control"])
        self.control.setsockopt(zmq.RCVTIMEO, 15_000)
        self.next_id = 1
        self.telemetry_seen = []
        if hello:
            self.welcome = self.ask(pm.Hello(major=1, minor=0, token=ready["token"]))
            assert isinstance(self.welcome, pm.Welcome), self.welcome
            self.audio = self._socket(zmq.PUSH, self.welcome.audio)
            self.frames = self._socket(zmq.SUB, self.welcome.frames)
            self.telemetry = self._socket(zmq.SUB, self.welcome.telemetry)

    def _socket(self, kind, endpoint):
        socket = self.context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        if self.keys:
            server, public, secret = self.keys
            socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = (
                server,
                public,
                secret,
            )
        if kind == zmq.DEALER and self.name:
            socket.setsockopt(zmq.ROUTING_ID, self.name)
        if kind == zmq.SUB:
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(endpoint)
        return socket

    def send(self, body, request=None):
        if request is None:
            request, self.next_id = self.next_id, self.next_id + 1
        self.control.send(pm.encode(pm.RequestEnvelope(request, body)))
        return request

    def reply(self, request):
        while True:
            envelope = pm.decode_reply(self.control.recv())
            if envelope.id == request:
                return envelope.body

    def ask(self, body):
        return self.reply(self.send(body))

    def open(self, picture=b"meter", **options):
        """A READY session."""
        opened = self.ask(pm.OpenSession(model="meter", options=options))
        assert isinstance(opened, pm.SessionOpened), opened
        loaded = self.ask(
            pm.LoadCharacter(
                session=opened.session, spec=pm.CharacterSpec(name="Meter"), picture=picture
            )
        )
        assert isinstance(loaded, pm.CharacterLoaded), loaded
        return opened

    def speak(self, session, epoch, first, samples, live=False, last=False):
        """Send samples [n] as 20 ms blocks."""
        for at in range(0, len(samples), 960):
            part = np.asarray(samples[at : at + 960], np.float32)
            captured = time.monotonic_ns() if live else 0
            is_last = last and at + 960 >= len(samples)
            block = AudioBlock(session, epoch, first + at, captured, part, is_last)
            self.audio.send(audio_block.encode(block))

    def collect(self, until, timeout_s=30.0, drain=False):
        """Frames until `until(frames, telemetry)` holds."""
        frames, deadline = [], time.monotonic() + timeout_s
        seen = self.telemetry_seen
        ping_at = 0.0
        while not until(frames, seen):
            if time.monotonic() > ping_at:
                self.send(pm.Ping())
                ping_at = time.monotonic() + 1
            assert time.monotonic() < deadline, (len(frames), seen[-5:])
            for socket in zmq.select([self.frames, self.telemetry], [], [], 0.1)[0]:
                if socket is self.frames:
                    got = frame.decode(socket.recv())
                    frames.append((got, int(got.pixels[0, 0, 0])))
                else:
                    seen.append(pm.decode_telemetry(socket.recv()))
        while drain and self.frames.poll(200):  # there is no order between lanes
            got = frame.decode(self.frames.recv())
            frames.append((got, int(got.pixels[0, 0, 0])))
        return frames

    def close(self):
        self.context.destroy(linger=0)


def states(telemetry):
    return [m for m in telemetry if isinstance(m, pm.SessionState)]
