"""Process body of a rank other than 0: a denoise rank, or the one that decodes.

Threads: the first one carries out calls; another owns the link to rank 0, beats, and ends the
process at once when rank 0 is gone, whatever the first one waits for. Knows nothing of sessions.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from typing import Any

from engine import rank_messages as rm
from engine.errors import EngineError, named_line
from engine.folders import add_arguments, from_arguments
from engine.framebus import FrameBus
from engine.model_factory import ModelFactory
from engine.models.base import Latents
from engine.rank_handover import LatentsBuffer
from engine.rank_link import RankLink
from engine.rank_parts import DecodePart, DenoisePart, Part, use_device

BEAT_S = 0.5
PR_SET_PDEATHSIG = 1


class RankBody:
    """`run` carries out calls until `close` or until rank 0 is gone."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._link = RankLink(socket.socket(fileno=options.link))
        self._calls: queue.SimpleQueue[rm.Call] = queue.SimpleQueue()
        self._busy_since = 0.0
        self._next_number = 0
        self._device: str = options.device
        threading.Thread(target=self._read, name="link", daemon=True).start()

    def run(self, options: argparse.Namespace) -> None:
        use_device(options.device)  # also imports torch, before anybody waits for a call
        part = make_part(options)
        self._say(rm.RankReady(os.getpid(), self._device))
        while True:
            call = self._calls.get()
            if call.number != self._next_number:
                raise EngineError("internal", f"call {call.number} after {self._next_number - 1}")
            self._next_number += 1
            self._busy_since = time.monotonic()
            result = part.act(call.body, lambda f, w: self._say(rm.RankProgress(f, w)))
            self._busy_since = 0.0
            self._say(rm.RankDone(call.number, stages(result)))
            if isinstance(call.body, rm.Close):
                return

    def failed(self, error: BaseException) -> None:
        """Last words: the report on stderr, one line on the link."""
        if isinstance(error, EngineError):
            self._say(rm.RankFailed(error.code, error.message, error.hint))
            return
        traceback.print_exception(error)
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{named_line(error)} at {where.filename}:{where.lineno}"
        self._say(rm.RankFailed("internal", text, ""))

    def _say(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # rank 0 is gone: the link thread ends us
            self._link.send(rm.encode(message))

    def _read(self) -> None:
        """Top of the link thread."""
        next_beat = 0.0
        while (arrived := self._link.receive(BEAT_S / 2)) is not None:
            for data in arrived:
                self._calls.put(rm.decode_call(data))
            now = time.monotonic()
            if now >= next_beat:
                next_beat = now + BEAT_S
                since = self._busy_since
                self._say(rm.RankBeat(now - since if since else 0.0))
        os._exit(1)  # no waiting for a call that may never return


def stages(result: Any) -> dict[str, float]:
    """Milliseconds that a call measured of itself."""
    if isinstance(result, Latents):
        return result.stage_ms | {"comm": result.comm_ms}
    return result if isinstance(result, dict) else {}


def make_part(options: argparse.Namespace) -> Part:
    folders = from_arguments(options)
    models = ModelFactory(options.model, json.loads(options.options), folders)
    if options.role == "denoise":
        return DenoisePart(models.generator(), options.device, decodes_here=False)
    bus = FrameBus(options.bus, options.slots)
    return DecodePart(models.decoder(), options.device, bus, LatentsBuffer(options.latents))


def end_with_parent(parent_pid: int) -> None:
    """The kernel kills this process when the thread that started it ends. Linux; elsewhere the
    closed link does, unless native code holds the interpreter.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # rank 0 is the one to tell us
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)  # it was gone before we asked


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="engine.rank_body")
    parser.add_argument("--role", choices=["denoise", "decode"], required=True)
    parser.add_argument("--device", required=True, help="cuda:N or cpu")
    parser.add_argument("--link", type=int, required=True, help="descriptor of our socket")
    parser.add_argument("--bus", type=int, required=True, help="descriptor of the frame bus")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--latents", type=int, required=True, help="descriptor of the hand-over")
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--options", default="{}", help="of the model, JSON")
    add_arguments(parser)
    parser.add_argument("--model-module", default="", help="imported first; may add models")
    options = parser.parse_args(argv)
    end_with_parent(options.parent_pid)
    with contextlib.suppress(ImportError):
        import cv2

        cv2.setNumThreads(1)
    if options.model_module:
        importlib.import_module(options.model_module)
    body = RankBody(options)
    try:
        body.run(options)
    except Exception as error:  # the top of the process
        body.failed(error)
        return 1
    return 0


if __name__ == "__main__":
    # Another rank may keep a collective of ours waiting: no waiting for native threads.
    status = main()
    sys.stderr.flush()
    os._exit(status)
