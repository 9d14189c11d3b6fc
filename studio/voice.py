"""Voice: one object for microphone and file. Blocks go out, sound is heard, positions are known.

A thread of its own, 200 turns a second; every public method only leaves a command for it. Knows
nothing of Qt, sockets or pictures: they are callables.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import EngineError
from engine.protocol.audio_block import AudioBlock
from studio.device_watch import DeviceWatch
from studio.file_audio import FileAudio
from studio.file_play import FilePlay
from studio.microphone_source import MicrophoneSource
from studio.monitor import Monitor
from studio.pace import Following
from studio.sound_out import SoundOut
from studio.voice_level import FLOOR_DB, Level, NoiseGate, measure

TURN_S = 0.005
REPORT_NS = 50_000_000  # level and position, 20 a second
JUMP_SAMPLES = 24_000  # an engine that names a clock this far ahead has begun anew

# what happened: "level" Level, "position" file sample, "microphone" (lost, why), "speaker" (lost,
# name), "finished" None, "devices" None
OnEvent = Callable[[str, Any], None]


@dataclass(slots=True)
class Live:
    """Where the blocks of the running epoch go."""

    session: int
    epoch: int
    first: int  # session sample of the first block
    shift: int | None = None  # session sample = microphone position + shift


class Voice:
    """`start` the thread, choose a source, `go`; `on_follow` hears what the picture follows."""

    def __init__(
        self, on_block: Callable[[AudioBlock], None], on_event: OnEvent,
        on_follow: Callable[[Following], None] = lambda following: None,
        picture_head: Callable[[], int] = lambda: -1,
        picture_delay: Callable[[], int | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._on_block = on_block
        self._on_event = on_event
        self._on_follow = on_follow
        self._picture_head = picture_head
        self._picture_delay = picture_delay
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self.watch = DeviceWatch(lambda: on_event("devices", None))
        self._thread = threading.Thread(target=self._run, name="voice", daemon=True)
        self._live: Live | None = None
        self._microphone: MicrophoneSource | None = None
        self._file: FileAudio | None = None
        self._file_at = 0
        self._play: FilePlay | None = None
        self._out: SoundOut | None = None
        self._speaker_name = ""
        self._monitor = Monitor()
        self._monitoring = False
        self._muted = False
        self._gate = NoiseGate()
        self._level = Level(FLOOR_DB, FLOOR_DB, False)
        self._reported_ns = 0
        self._said: dict[str, Any] = {}

    # --- commands, from any thread ------------------------------------------------------------
    def start(self) -> None:
        self.watch.start()
        self._thread.start()

    def close(self) -> None:
        """Stop and close every device; returns when they are closed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self.watch.close()

    def use_microphone(self, name: str) -> None:
        self._commands.put(lambda: self._use_microphone(name))

    def use_file(self, file: FileAudio) -> None:
        self._commands.put(lambda: self._use_file(file))

    def use_speaker(self, name: str) -> None:
        self._commands.put(lambda: self._use_speaker(name))

    def monitor(self, on: bool) -> None:
        self._commands.put(lambda: self._set_monitor(on))

    def mute(self, muted: bool) -> None:
        self._commands.put(lambda: setattr(self, "_muted", muted))

    def gate(self, threshold_db: float) -> None:
        self._commands.put(lambda: setattr(self._gate, "threshold_db", threshold_db))

    def go(self, session: int, epoch: int, first_sample: int) -> None:
        """Send blocks of `epoch` from session sample `first_sample` on."""
        self._commands.put(lambda: self._go(Live(session, epoch, first_sample)))

    def new_epoch(self, epoch: int, first_sample: int) -> None:
        """The engine was interrupted: a microphone goes on, a file begins again where it was."""
        self._commands.put(lambda: self._new_epoch(epoch, first_sample))

    def skip(self, epoch: int, first_sample: int) -> None:
        """The engine leaves out what it was late with: the sound goes on undisturbed."""
        self._commands.put(lambda: self._skip(epoch, first_sample))

    def halt(self) -> None:
        """Send nothing any more; the speaker falls silent at once."""
        self._commands.put(self._halt)

    def seek(self, file_sample: int) -> None:
        """Where the next `go` or `new_epoch` begins in the file."""
        self._commands.put(lambda: self._seek(file_sample))

    # --- voice thread -------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while not self._stop.wait(TURN_S):
                self._turn(time.monotonic_ns())
        except Exception as error:  # top of the thread
            self._on_event("broken", EngineError("internal", f"the voice stopped: {error!r}"))
        finally:
            for device in (self._microphone, self._out):
                if device is not None:
                    device.close()

    def _turn(self, now_ns: int) -> None:
        while not self._commands.empty():
            self._commands.get()()
            self._tell_following()
        self._check_sink(now_ns)
        if self._microphone is not None:
            self._run_microphone(self._microphone, now_ns)
        if self._play is not None and self._out is not None:
            self._run_file(self._play, self._out, now_ns)
        if now_ns - self._reported_ns > REPORT_NS:
            self._reported_ns = now_ns
            self._report(now_ns)

    def _run_microphone(self, source: MicrophoneSource, now_ns: int) -> None:
        for block in source.read(now_ns):
            samples = np.zeros_like(block.samples) if self._muted else block.samples
            gated = self._gate.process(samples)
            self._level = measure(block.samples)  # what the device hears, muted or not
            if self._live is None:
                continue
            if self._live.shift is None:
                self._live.shift = self._live.first - block.first
            first = block.first + self._live.shift
            if first >= self._live.first:
                self._send(first, gated, False, block.captured_ns)
            if self._monitoring and self._out is not None:
                here = (source.captured(now_ns) or block.first) + self._live.shift
                delay = self._picture_delay()
                self._monitor.write(gated, first, here, delay, now_ns, self._out.sink)

    def _run_file(self, play: FilePlay, out: SoundOut, now_ns: int) -> None:
        if out.is_opening:
            return  # the sound must not begin on the stand-in while the speaker opens
        play.step(now_ns, out.sink, self._picture_head(), self._send_file)
        self._file_at = max(play.file_position(now_ns, out.sink), 0)
        if play.is_finished:
            self._play, self._file_at = None, 0
            self._live = None
            self._tell_following()
            self._on_event("finished", None)

    def _send_file(self, first: int, samples: np.ndarray, last: bool) -> None:
        self._level = measure(samples)
        self._send(first, np.zeros_like(samples) if self._muted else samples, last, 0)

    def _send(self, first: int, samples: np.ndarray, last: bool, captured_ns: int) -> None:
        live = self._live
        if live is not None:
            self._on_block(AudioBlock(live.session, live.epoch, first, captured_ns, samples, last))

    def _check_sink(self, now_ns: int) -> None:
        needed = self._file is not None or (self._microphone is not None and self._monitoring)
        if needed and self._out is None:
            self._out = SoundOut(self._speaker_name, self._speaker_gone, self._no_microphone)
        if not needed and self._out is not None:
            self._out.close()
            self._out = None
        if self._out is not None and self._out.check(now_ns):
            if self._play is not None:
                self._play.move_to(self._out.previous, now_ns)
            self._monitor.restart(self._out.sink)

    def _report(self, now_ns: int) -> None:
        self._on_event("level", (self._level, self._gate.is_open))
        if self._file is not None:
            self._on_event("position", self._file_at)
        source, out = self._microphone, self._out
        lost = source.why if source is not None and source.is_lost else ""
        self._say("microphone", lost)
        self._say("speaker", self._speaker_name or "default" if out and out.is_lost else "")

    def _say(self, what: str, value: Any) -> None:
        if self._said.get(what) != value:
            self._said[what] = value
            self._on_event(what, value)

    # --- commands, on the voice thread ---------------------------------------------------------
    def _use_microphone(self, name: str) -> None:
        self._drop_source()
        self._microphone = MicrophoneSource(name, self._microphone_gone, lambda: self._out is None)

    def _use_file(self, file: FileAudio) -> None:
        self._drop_source()
        self._file = file

    def _drop_source(self) -> None:
        self._halt()
        if self._microphone is not None:
            self._microphone.close()
        self._microphone, self._file, self._file_at = None, None, 0

    def _use_speaker(self, name: str) -> None:
        self._speaker_name = name
        if self._out is not None:
            now_ns = time.monotonic_ns()
            old, self._out = self._out, SoundOut(name, self._speaker_gone, self._no_microphone)
            if self._play is not None:
                self._play.move_to(old.sink, now_ns)
            old.close()

    def _set_monitor(self, on: bool) -> None:
        self._monitoring = on
        self._monitor = Monitor()

    def _go(self, live: Live) -> None:
        self._live = live
        if self._out is not None:
            self._out.sink.flush()
            self._monitor.restart(self._out.sink)
        if self._file is not None:
            start = self._file_at if self._file_at < len(self._file) else 0
            self._play = FilePlay(self._file, start, live.first, time.monotonic_ns())

    def _new_epoch(self, epoch: int, first_sample: int) -> None:
        live = self._live
        if live is None:
            return
        if self._file is not None:
            self._go(Live(live.session, epoch, first_sample))
            return
        # The microphone's clock goes on; only an engine that has begun anew names another one.
        here = self._captured(time.monotonic_ns())
        far = here is None or abs(first_sample - here) > JUMP_SAMPLES
        self._live = Live(live.session, epoch, first_sample, None if far else live.shift)

    def _skip(self, epoch: int, first_sample: int) -> None:
        live = self._live
        if live is not None:
            self._live = Live(live.session, epoch, first_sample, live.shift)
        if self._play is not None:
            self._play.send_again_from(first_sample)

    def _halt(self) -> None:
        self._live = self._play = None
        if self._out is not None:
            self._out.sink.flush()

    def _seek(self, file_sample: int) -> None:
        if self._file is not None:
            self._file_at = min(max(file_sample, 0), max(len(self._file) - 1, 0))
            self._play = None  # silent until the engine has named the new epoch
            if self._out is not None:
                self._out.sink.flush()

    # --- positions (link thread) ----------------------------------------------------------------
    def _tell_following(self) -> None:
        """After every change of source, epoch or monitor."""
        if self._live is None:
            self._on_follow(Following())
            return
        kind = "heard" if self.is_heard else "captured"
        self._on_follow(Following(kind, self.position, self._captured))

    @property
    def is_heard(self) -> bool:
        """The sound leaves a speaker (or its stand-in), which is then the clock."""
        return self._file is not None or self._monitoring

    def position(self, now_ns: int) -> int | None:
        """Session sample being heard, or at the microphone when nothing is; None if not live."""
        play, out, live = self._play, self._out, self._live
        if live is None:
            return None
        if play is not None and out is not None:
            return play.position(now_ns, out.sink)
        if self._file is not None:
            return live.first - 1
        if self._monitoring and out is not None:
            return out.sink.position(now_ns)
        return self._captured(now_ns)

    def _captured(self, now_ns: int) -> int | None:
        source, live = self._microphone, self._live
        if source is None or live is None or live.shift is None:
            return None
        here = source.captured(now_ns)
        return None if here is None else here + live.shift

    def _microphone_gone(self, name: str) -> bool:
        return self.watch.is_gone("input", name)

    def _speaker_gone(self, name: str) -> bool:
        return self.watch.is_gone("output", name)

    def _no_microphone(self) -> bool:
        return self._microphone is None
