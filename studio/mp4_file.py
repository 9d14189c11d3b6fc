"""Mp4File: H.264 and AAC in fragments of a second, so that a crash loses at most the last two.

Constant 24 fps from frame 0, sound from sample 0. Knows nothing of sessions, epochs or threads.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import av.error
import numpy as np

from engine.clock import FPS, HEIGHT, SAMPLE_RATE, WIDTH
from engine.errors import EngineError

AAC_FRAME = 1_024
FRAGMENT_FRAMES = FPS  # a key frame a second, and a fragment with it
# delay_moov writes the AAC priming as an edit list, so that sound and picture both begin at 0.
CONTAINER = {"movflags": "frag_keyframe+delay_moov+default_base_moof", "flush_packets": "1"}
# zerolatency: a frame is in the file when its fragment is; superfast: 5 ms a frame on one core.
VIDEO = {"preset": "superfast", "tune": "zerolatency", "crf": "19", "threads": "1"}


class Mp4File:
    """`write(pixels, samples)` a frame and its 2,000 samples at a time; `close` ends the file."""

    def __init__(self, path: Path) -> None:
        """Raises EngineError("bad_input") if the file cannot be written."""
        try:
            self._container = av.open(str(path), "w", format="mp4", options=CONTAINER)
        except (OSError, av.error.FFmpegError) as error:
            raise EngineError(
                "bad_input", f"{path} cannot be written ({error.strerror})",
                "choose another folder for recordings",
            ) from error  # fmt: skip
        self._video = self._container.add_stream("libx264", rate=FPS, options=VIDEO)
        assert isinstance(self._video, av.VideoStream)
        self._video.width, self._video.height, self._video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        self._video.time_base = Fraction(1, FPS)
        self._video.codec_context.time_base = Fraction(1, FPS)
        self._video.codec_context.gop_size = FRAGMENT_FRAMES
        self._audio = self._container.add_stream("aac", rate=SAMPLE_RATE, layout="mono")
        assert isinstance(self._audio, av.AudioStream)
        self._audio.bit_rate = 160_000
        self._rest = np.zeros(0, np.float32)
        self._samples_in = 0
        self._last: tuple[np.ndarray, av.VideoFrame] | None = None
        self.frames = 0

    def write(self, pixels: np.ndarray, samples: np.ndarray) -> None:
        """`pixels` [1088, 704, 4] uint8 BGRA, `samples` [2000] float32."""
        picture = self._converted(pixels)
        picture.pts, picture.time_base = self.frames, Fraction(1, FPS)
        self._container.mux(self._video.encode(picture))
        self.frames += 1
        self._rest = np.concatenate((self._rest, samples))
        while len(self._rest) >= AAC_FRAME:
            self._encode_audio(self._rest[:AAC_FRAME])
            self._rest = self._rest[AAC_FRAME:]

    def _converted(self, pixels: np.ndarray) -> av.VideoFrame:
        """YUV of `pixels`; a repeated picture is not converted again: an overloaded recorder
        has to get cheaper, or it repeats for ever because it repeats (seen at load 14)."""
        if self._last is None or self._last[0] is not pixels:
            bgra = av.VideoFrame.from_ndarray(pixels, format="bgra")
            self._last = (pixels, bgra.reformat(format="yuv420p"))
        return self._last[1]

    def close(self) -> None:
        if len(self._rest):
            self._encode_audio(self._rest)
        self._container.mux(self._video.encode(None))
        self._container.mux(self._audio.encode(None))
        self._container.close()

    def _encode_audio(self, samples: np.ndarray) -> None:
        clipped = np.clip(samples, -1.0, 1.0).reshape(1, -1)
        sound = av.AudioFrame.from_ndarray(clipped, format="fltp", layout="mono")
        sound.sample_rate = SAMPLE_RATE
        sound.pts, sound.time_base = self._samples_in, Fraction(1, SAMPLE_RATE)
        self._samples_in += len(samples)
        self._container.mux(self._audio.encode(sound))
