"""Sessions through the real server: sound in over the wire at real time, pictures out.

`python -m engine.bench_session --model avatar-5b --synthetic --gpus 1+1 --picture FILE`: starts an
engine, talks to it as a studio does, and says how many pictures a second came, which were late,
how long the first took, how fast an interruption is. `--sessions 50` one after another; `--kill`
ends each of the engine's processes once and times its return. Knows nothing of what models do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import zmq

from engine.clock import FPS, SAMPLE_RATE, SAMPLES_PER_BLOCK
from engine.errors import EngineError
from engine.machine import describe, say
from engine.protocol import audio_block, frame
from engine.protocol import messages as pm
from engine.protocol.audio_block import AudioBlock

BLOCK_S = SAMPLES_PER_BLOCK / SAMPLE_RATE
PATIENCE_S = 300.0  # a model of 57 GB is made in this time
SLOW_FPS = 23.5  # the published share is of sessions above it
LATE_S = 1 / FPS  # after the frame's turn, as counted from the first frame
MIB = 1 << 20


class Engine:
    """`avatar-engine serve` as a child; `ready` is the line it prints."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        command = [
            sys.executable, "-m", "engine", "serve", "--runtime-dir", str(folder),
            "--cache-dir", str(folder / "cache"), "--parent-pid", str(os.getpid()), *arguments,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise EngineError("worker_died", "the engine did not start", "its reason is above")
        self.ready: dict[str, Any] = json.loads(line)

    def parts(self) -> list[psutil.Process]:
        """Its processes, ranks included, the server not."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


class Talker:
    """A client with one session; sound is sent by the clock, pictures are taken as they come."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self._context = zmq.Context()
        self._control = self._socket(zmq.DEALER, ready["endpoints"]["control"])
        self._next = 1
        welcome = self.ask(pm.Hello(major=1, minor=1, token=ready["token"]))
        self._audio = self._socket(zmq.PUSH, welcome.audio)
        self._frames = self._socket(zmq.SUB, welcome.frames)
        self._telemetry = self._socket(zmq.SUB, welcome.telemetry)
        self._pinged = 0.0
        self.session = self.epoch = self.first = self.sent = 0
        self.arrived: list[tuple[float, int, int]] = []  # (time, epoch, frame) of every picture
        self.states: list[tuple[float, pm.SessionState]] = []
        self.timings: list[pm.ChunkTimings] = []

    def _socket(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        if kind == zmq.SUB:
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(endpoint)
        return socket

    def ask(self, body: Any) -> Any:
        """The answer; pings meanwhile. Raises the engine's refusal as EngineError."""
        number, self._next = self._next, self._next + 1
        self._control.send(pm.encode(pm.RequestEnvelope(number, body)))
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            if self._control.poll(500):
                envelope = pm.decode_reply(self._control.recv())
                if envelope.id != number:
                    continue
                if isinstance(envelope.body, pm.Failure):
                    failure = envelope.body
                    raise EngineError(failure.code, failure.message, failure.hint)
                return envelope.body
            self._ping()
        raise EngineError("timeout", f"no answer in {PATIENCE_S:g} s", "see the engine's log")

    def _ping(self) -> None:
        self._control.send(pm.encode(pm.RequestEnvelope(self._next, pm.Ping())))
        self._next += 1
        self._pinged = time.monotonic()

    def open(self, model: str, options: dict[str, float], picture: bytes) -> None:
        opened = self.ask(pm.OpenSession(model=model, options=options))
        self.session = opened.session
        spec = pm.CharacterSpec(name="bench")
        self.ask(pm.LoadCharacter(session=self.session, spec=spec, picture=picture))

    def start(self) -> None:
        done = self.ask(pm.Start(session=self.session))
        self.epoch, self.first, self.sent = done.epoch, done.first_sample, 0

    def interrupt(self) -> None:
        done = self.ask(pm.Interrupt(session=self.session))
        self.epoch, self.first, self.sent = done.epoch, done.first_sample, 0

    def talk(
        self, pcm: np.ndarray, seconds: float, until: Callable[[], bool] | None = None
    ) -> None:
        """Send `pcm` [n] float32, repeated, at real time for `seconds`, or until `until`."""
        begun = time.monotonic()
        blocks = 0
        while (now := time.monotonic() - begun) < seconds and not (until and until()):
            while blocks * BLOCK_S <= now:
                at = self.sent % max(1, len(pcm) - SAMPLES_PER_BLOCK)
                self._send(pcm[at : at + SAMPLES_PER_BLOCK])
                blocks += 1
            self.take(0.005)

    def _send(self, samples: np.ndarray) -> None:
        captured = time.monotonic_ns() - int(BLOCK_S * 1e9)
        first = self.first + self.sent
        block = AudioBlock(self.session, self.epoch, first, captured, samples)
        self._audio.send(audio_block.encode(block))
        self.sent += len(samples)

    def take(self, wait_s: float) -> None:
        """What has come within `wait_s`."""
        if time.monotonic() - self._pinged > 1:
            self._ping()
        for socket in zmq.select([self._frames, self._telemetry, self._control], [], [], wait_s)[0]:
            data = socket.recv()
            if socket is self._frames:
                got = frame.decode(data)
                if not got.idle:
                    self.arrived.append((time.monotonic(), got.epoch, got.frame_index))
            elif socket is self._telemetry:
                self._heard(pm.decode_telemetry(data))

    def _heard(self, message: Any) -> None:
        if isinstance(message, pm.SessionState):
            self.states.append((time.monotonic(), message))
        elif isinstance(message, pm.ChunkTimings):
            self.timings.append(message)

    def close(self) -> None:
        self.ask(pm.CloseSession(session=self.session))
        self._context.destroy(linger=0)


def talked(talker: Talker, pcm: np.ndarray, seconds: float) -> dict[str, Any]:
    """One stretch of speech: pictures a second, late ones, the first, stages."""
    talker.arrived.clear()
    talker.timings.clear()
    begun = time.monotonic()
    talker.start()
    talker.talk(pcm, seconds)
    mine = [(at, n) for at, epoch, n in talker.arrived if epoch == talker.epoch]
    if len(mine) < 2:
        raise EngineError("worker_died", "no pictures came", "see the engine's log")
    times = np.array([at for at, _ in mine])
    numbers = np.array([n for _, n in mine]) - mine[0][1]
    lateness = times - (times[0] + numbers / FPS)
    chunk_s = 4 / FPS
    stages: dict[str, list[float]] = {}
    for timing in talker.timings:
        for name, ms in timing.stage_ms.items():
            stages.setdefault(name, []).append(ms)
    return {
        "frames": len(mine), "seconds": seconds,
        # of those that came: counted by their numbers, a session that drops every second chunk to
        # stay live would be as fast as one that shows all
        "fps_with_decode": float((len(mine) - 1) / (times[-1] - times[0])),
        "first_picture_ms": 1000 * (times[0] - begun),
        "first_chunk_ms": 1000 * max(0.0, times[0] - begun - chunk_s),
        "late_frames": int((lateness > LATE_S).sum()),
        "missing_frames": int(numbers[-1] + 1 - len(mine)),
        "worst_late_ms": float(1000 * lateness.max()),
        "capture_to_publish_p50_ms": _p50([t.capture_to_publish_ms for t in talker.timings]),
        "stage_p50_ms": {name: _p50(values) for name, values in stages.items()},
        "ranks": _ranks(talker.timings),
    }  # fmt: skip


def _p50(values: list[float]) -> float:
    return round(float(median(values)), 2) if values else 0.0


def _ranks(timings: list[pm.ChunkTimings]) -> list[dict[str, Any]]:
    """Each rank's stage, device and median milliseconds."""
    found: dict[int, list[pm.RankTime]] = {}
    for timing in timings:
        for rank in timing.ranks:
            found.setdefault(rank.rank, []).append(rank)
    return [
        {
            "rank": number, "stage": times[0].stage, "device": times[0].device,
            "p50_ms": _p50([t.ms for t in times]), "comm_p50_ms": _p50([t.comm_ms for t in times]),
        }
        for number, times in sorted(found.items())
    ]  # fmt: skip


def interrupted(talker: Talker, pcm: np.ndarray) -> dict[str, float | None]:
    """Cut off in mid-speech: milliseconds to the answer, and to the new epoch's first picture."""
    begun = time.monotonic()
    talker.interrupt()
    answered = time.monotonic()
    talker.talk(pcm, 3.0, lambda: any(e == talker.epoch for _, e, _ in talker.arrived))
    first = next((at for at, e, _ in talker.arrived if e == talker.epoch), None)
    stale = [at for at, e, _ in talker.arrived if e < talker.epoch and at > answered]
    return {
        "answer_ms": 1000 * (answered - begun),
        "next_picture_ms": 1000 * (first - begun) if first else None,
        "old_pictures_after_answer": len(stale),
    }  # fmt: skip


def killed(engine: Engine, talker: Talker, pcm: np.ndarray) -> list[dict[str, Any]]:
    """kill -9 of each process that serves the session: seconds until said, until pictures again."""
    return [_killed(engine, talker, pcm, i) for i in range(len(_session_parts(engine)))]


def _killed(engine: Engine, talker: Talker, pcm: np.ndarray, which: int) -> dict[str, Any]:
    victim = _session_parts(engine)[which]
    name = " ".join(victim.cmdline()[1:5])
    talker.states.clear()
    victim.kill()
    begun = time.monotonic()
    talker.talk(pcm, 2.0)
    talker.arrived.clear()
    talker.talk(pcm, PATIENCE_S, lambda: len(talker.arrived) >= 8)
    again = len(talker.arrived) >= 8
    said = [(at, s.message) for at, s in talker.states if s.message]
    return {
        "process": name, "said": said[0][1] if said else "",
        "said_s": round(said[0][0] - begun, 2) if said else None,
        "pictures_again_s": round(time.monotonic() - begun, 2) if again else None,
    }  # fmt: skip


def _session_parts(engine: Engine) -> list[psutil.Process]:
    """Worker and ranks of the session, oldest first: what only waits has no model in memory."""
    parts = sorted(engine.parts(), key=lambda p: p.pid)
    return [p for p in parts if p.memory_info().rss > 200 * MIB]


def gpu_memory() -> list[int]:
    """MiB in use on each GPU, by the driver; empty without one."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return []
    return [int(line) for line in done.stdout.split() if line.isdigit()]


def speech(path: Path | None) -> np.ndarray:
    """PCM [n] float32 at 48 kHz of a file, or noise in syllables."""
    if path is None:
        from engine.bench_complete import speech_like

        return speech_like(0, 20 * SAMPLE_RATE)
    from engine.audio_file import read_whole

    return read_whole(path)


def bench(options: argparse.Namespace) -> dict[str, Any]:
    """The whole run. Raises EngineError."""
    pcm, picture = speech(options.audio), options.picture.read_bytes()
    wanted = {"synthetic": 1.0} if options.synthetic else {}
    before = gpu_memory()
    report: dict[str, Any] = {
        "model": options.model, "gpus": options.gpus, "sessions": [], "weights":
        "synthetic" if options.synthetic else "the model's",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--gpus", options.gpus] if options.gpus != "1+0" else []
        engine = Engine(Path(folder), arguments)
        try:
            for number in range(options.sessions):
                _session(engine, options, wanted, picture, pcm, number, report)
        finally:
            report["engine_exit"] = engine.close()
        report["left_over"] = sorted(p.name for p in Path(folder).iterdir() if p.name != "cache")
    time.sleep(2)
    after = gpu_memory()
    report["gpu_memory_left_mib"] = [b - a for a, b in zip(before, after, strict=True)]
    rates = [s["fps_with_decode"] for s in report["sessions"]]
    report["sessions_above_23.5_fps"] = sum(r > SLOW_FPS for r in rates) / max(1, len(rates))
    return report


def _session(
    engine: Engine, options: argparse.Namespace, wanted: dict[str, float], picture: bytes,
    pcm: np.ndarray, number: int, report: dict[str, Any],
) -> None:  # fmt: skip
    begun = time.monotonic()
    talker = Talker(engine.ready)
    talker.open(options.model, wanted, picture)
    ready_s = time.monotonic() - begun
    row = talked(talker, pcm, options.seconds) | {"ready_s": round(ready_s, 1)}
    row["interruption"] = interrupted(talker, pcm)
    report["sessions"].append(row)
    say(f"session {number + 1}: {row['fps_with_decode']:.2f} fps, {row['late_frames']} late")
    if options.kill and number == options.sessions - 1:
        report["kills"] = killed(engine, talker, pcm)
    talker.close()


def main(argv: list[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(prog="engine.bench_session", description=__doc__)
    parser.add_argument("--model", default="portrait")
    parser.add_argument("--gpus", default="1+0", help="N+M, as of `avatar-engine serve`")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--audio", type=Path, help="speech; default: noise in syllables")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each session")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--kill", action="store_true", help="kill each process of the last session")
    options = parser.parse_args(argv)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        report = describe(device) | bench(options)
    except EngineError as error:
        say(str(error))
        return error.exit_status
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if report["sessions_above_23.5_fps"] == 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
