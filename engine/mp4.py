"""Writes H.264 and AAC into one MP4 on a thread of its own; the file appears only when complete.

Knows nothing of models. Pictures are [1088, 704, 4] uint8 BGRA at 24 fps, sound is 48 kHz mono.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from av.error import FFmpegError

from engine.clock import FPS, HEIGHT, SAMPLE_RATE, SAMPLES_PER_FRAME, WIDTH
from engine.errors import EngineError

QUEUED = 8  # pictures and pieces of sound that wait for the encoder
# crf 18 is visually lossless for a face; veryfast encodes 704x1088 in 9 ms a frame on one core,
# medium in 30. No B-frames: the first pts is 0 and cutting is exact.
X264 = {"preset": "veryfast", "crf": "18", "bf": "0", "threads": "1"}
BT601, LIMITED, SRGB_PRIMARIES, SRGB_CURVE = 6, 1, 1, 13  # numbers of ISO/IEC 23091-2
AAC_BITS = 128_000


class Mp4Writer:
    """`video` and `sound` queue work (waiting when the encoder is behind); `finish` or `abort`."""

    def __init__(self, path: Path, comment: str = "") -> None:
        self.path, self._comment = path, comment
        self.encode_ms: list[float] = []
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._queue: queue.Queue[tuple[Any, Callable[[], None]] | None] = queue.Queue(QUEUED)
        self._error: BaseException | None = None
        self._aborted = False
        try:
            self._open()
        except (FFmpegError, OSError) as error:
            self._part.unlink(missing_ok=True)
            raise EngineError(
                "bad_input", f"{path} cannot be written ({error})", "choose another --out"
            ) from error
        self._thread = threading.Thread(target=self._body, name="mp4", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        # Not fragmented: the index at the front plays everywhere, and the rename below already
        # makes the file all or nothing.
        options = {"movflags": "+faststart"}
        self._container = av.open(str(self._part), "w", format="mp4", options=options)
        if self._comment:
            self._container.metadata["comment"] = self._comment
        self._video: Any = self._container.add_stream("libx264", rate=FPS, options=X264)
        self._video.width, self._video.height, self._video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        self._video.time_base = self._video.codec_context.time_base = Fraction(1, SAMPLE_RATE)
        self._video.codec_context.gop_size = 2 * FPS
        # Said aloud: players take untagged pictures of this height for BT.709 and shift the skin.
        self._video.codec_context.colorspace = BT601
        self._video.codec_context.color_range = LIMITED
        self._video.codec_context.color_primaries = SRGB_PRIMARIES
        self._video.codec_context.color_trc = SRGB_CURVE
        self._audio: Any = self._container.add_stream("aac", rate=SAMPLE_RATE, layout="mono")
        self._audio.bit_rate = AAC_BITS
        self._sample = 0

    def video(self, index: int, pixels: np.ndarray, done: Callable[[], None]) -> None:
        """Frame `index`; `done` is called as soon as `pixels` may be overwritten."""
        self._put((index, pixels), done)

    def sound(self, samples: np.ndarray) -> None:
        """The next samples [n] float32."""
        self._put(samples, _nothing)

    def finish(self) -> None:
        """Complete the file and give it its name. Raises EngineError("internal", ...)."""
        self._put(None, None)
        self._thread.join()
        self._raise()
        self._part.replace(self.path)

    def abort(self) -> None:
        """Stop and leave nothing behind."""
        self._aborted = True
        while self._thread.is_alive():
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=0.05)
            self._thread.join(0.05)
        self._part.unlink(missing_ok=True)

    def _put(self, item: Any, done: Callable[[], None] | None) -> None:
        entry = None if done is None else (item, done)
        while True:
            self._raise()
            with contextlib.suppress(queue.Full):
                self._queue.put(entry, timeout=0.1)
                return

    def _raise(self) -> None:
        if self._error is not None:
            raise EngineError(
                "internal", f"{self.path} could not be written ({self._error})",
                "is the disk full?",
            ) from self._error  # fmt: skip

    def _body(self) -> None:
        try:
            while (entry := self._queue.get()) is not None and not self._aborted:
                self._encode(*entry)
            if not self._aborted:
                for stream in (self._video, self._audio):
                    self._container.mux(stream.encode(None))
            self._container.close()
        except Exception as error:  # the top of the writer thread; told to the next caller
            self._error = error
            self._container.close()

    def _encode(self, item: Any, done: Callable[[], None]) -> None:
        if isinstance(item, np.ndarray):
            return self._encode_sound(item)
        begun = time.monotonic()
        index, pixels = item
        # 0.9 ms, where swscale takes 7.6 for the same BT.601 numbers.
        planes = cv2.cvtColor(pixels, cv2.COLOR_BGRA2YUV_I420)
        done()
        picture = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        picture.pts = SAMPLES_PER_FRAME * index
        picture.time_base = Fraction(1, SAMPLE_RATE)
        self._container.mux(self._video.encode(picture))
        self.encode_ms.append((time.monotonic() - begun) * 1000)
        return None

    def _encode_sound(self, samples: np.ndarray) -> None:
        planes = np.ascontiguousarray(samples, np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout="mono")
        frame.sample_rate = SAMPLE_RATE
        frame.pts = self._sample
        frame.time_base = Fraction(1, SAMPLE_RATE)
        self._sample += samples.size
        self._container.mux(self._audio.encode(frame))


def _nothing() -> None:
    pass
