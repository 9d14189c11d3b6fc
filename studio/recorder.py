"""Recorder: what was shown and heard -> MP4, on a thread of its own behind a bounded queue.

Frames come from the pace as they are shown, sound from the voice as it is sent; both carry samples
of the same clock. A queue that is full drops the frame, which the take then repeats and counts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.clock import FPS
from engine.errors import EngineError
from engine.protocol.audio_block import AudioBlock
from engine.protocol.frame import Frame
from studio.mp4_file import Mp4File
from studio.take import Sound, Take

QUEUE_FRAMES = 24  # a second, 74 MB: a slow disk does not cost a frame
REPORT_FRAMES = 6  # four reports a second


@dataclass(frozen=True, slots=True)
class RecordingReport:
    """Where the recording stands; `error` when it has ended by itself."""

    state: str  # "recording" | "paused" | "off"
    path: Path
    seconds: float
    repeated: int
    dropped: int
    error: EngineError | None = None


class Recorder:
    """`start`, `pause`, `stop`: GUI thread; `frame`: link thread; `block`: voice thread."""

    def __init__(self, on_report: Callable[[RecordingReport], None]) -> None:
        self._on_report = on_report
        self._queue: queue.Queue[Frame | str] = queue.Queue(QUEUE_FRAMES)
        self._blocks: queue.SimpleQueue[AudioBlock] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._path = Path()
        self._paused = False
        self._was_paused = False
        self._stopping = False
        self.dropped = 0

    @property
    def is_recording(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, path: Path) -> None:
        """Begin with the next frame shown. EngineError("bad_input") if `path` cannot be written."""
        if self.is_recording:
            self.stop()
        path.parent.mkdir(parents=True, exist_ok=True)
        file = Mp4File(path)
        self._path, self._paused, self._was_paused, self._stopping = path, False, False, False
        self._queue = queue.Queue(QUEUE_FRAMES)
        self._blocks = queue.SimpleQueue()
        self.dropped = 0
        self._thread = threading.Thread(
            target=self._run, args=(file,), name="recorder", daemon=True
        )
        self._thread.start()

    def pause(self, paused: bool) -> None:
        self._paused = paused

    def stop(self, timeout_s: float = 10.0) -> None:
        """Write what is queued, end the file; returns when it is complete."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopping = True
            thread.join(timeout_s)

    def frame(self, frame: Frame) -> None:
        """A frame was shown (or passed over). Never blocks."""
        if self._thread is None:
            return
        try:
            self._queue.put_nowait("pause" if self._paused else frame)
        except queue.Full:
            self.dropped += 1

    def block(self, block: AudioBlock) -> None:
        if self._thread is not None:
            self._blocks.put(block)

    # --- recorder's thread ----------------------------------------------------------------------
    def _run(self, file: Mp4File) -> None:
        sound = Sound()
        take = Take(sound)
        error: EngineError | None = None
        try:
            while (item := self._next()) is not None:
                self._write(item, file, sound, take)
        except Exception as failure:  # top of the thread: a full disk, a codec that fails
            error = EngineError("bad_input", f"recording ended: {failure}", "free some disk space")
        try:
            file.close()
        except Exception as failure:  # what was written in fragments is on the disk all the same
            error = error or EngineError("bad_input", f"recording not finished: {failure}")
        self._report("off", take, error)

    def _next(self) -> Frame | str | None:
        """The next frame; None when it is time to end and nothing is left."""
        while True:
            try:
                return self._queue.get(timeout=0.1)
            except queue.Empty:
                if self._stopping:
                    return None

    def _write(self, item: Frame | str, file: Mp4File, sound: Sound, take: Take) -> None:
        while not self._blocks.empty():
            sound.add(self._blocks.get())
        if not isinstance(item, Frame):
            take.cut()
            self._report("paused", take)
            return
        for pixels, samples in take.add(item):
            file.write(pixels, samples)
        if take.frames % REPORT_FRAMES == 0:
            self._report("recording", take)

    def _report(self, state: str, take: Take, error: EngineError | None = None) -> None:
        seconds = take.frames / FPS
        report = RecordingReport(state, self._path, seconds, take.repeated, self.dropped, error)
        self._on_report(report)
