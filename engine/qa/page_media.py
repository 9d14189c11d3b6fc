"""Pictures and preview videos of the report, small enough to lie inside one page as data URIs.

Knows nothing of scores: it takes a video file and a moment.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

import av
import cv2
import numpy as np
from av.error import FFmpegError

from engine.errors import EngineError
from engine.portrait.face_detector import MOUTH, detect

STRIP_FRAMES = 12  # half a second at 24 fps, every frame: a strip of every second frame hides a lag
STRIP_HEIGHT = 150
PREVIEW_WIDTH = 240  # a preview is 60 to 200 KB


DETECTING = Lock()  # one interpreter serves all threads
NOT_KEPT = "The video was not kept."
BUDGET = 24_000_000  # characters of films and strips in one page
POSTER_WIDTH = 170  # as wide as it is shown: 5 KB


@dataclass(frozen=True, slots=True)
class Shown:
    """Addresses of a clip's media, empty where there is none; `lost`: why there is no film."""

    strip: str = ""
    poster: str = ""
    film: str = ""
    lost: str = ""

    @property
    def size(self) -> int:
        return len(self.strip) + len(self.film)


class Media:
    """Films and strips lie inside the page while they fit `budget`, in the order asked for; later
    clips have a poster, and their film is linked to where it lies below `beside`, the page's
    folder. 1,113 clips (53 x 7 x 3 seeds) would else make a page of 170 MB."""

    def __init__(self, beside: Path | None = None, budget: int = BUDGET, threads: int = 1) -> None:
        self._beside = beside
        self._left = budget
        self._threads = threads

    def of_all(
        self,
        clips: Sequence[tuple[Path | None, float | None]],
        made: Callable[[int], None] = lambda more: None,
    ) -> list[Shown]:
        """Of (video, start of the worst second) each; FFmpeg works outside Python's lock. `made`
        is told how many more are ready."""
        shown: list[Shown] = []
        with ThreadPoolExecutor(self._threads) as pool:
            while len(shown) < len(clips):
                batch = clips[len(shown) : len(shown) + 2 * self._threads]
                if self._left <= 0:
                    shown += pool.map(self._linked, batch)
                    made(len(batch))
                    continue
                for clip, one in zip(batch, pool.map(self._whole, batch), strict=True):
                    # What does not fit is made in vain, at most a batch: the page is then the
                    # same whatever the number of threads.
                    shown.append(one if self._left > 0 else self._linked(clip))
                    self._left -= one.size
                made(len(batch))
        return shown

    def _whole(self, clip: tuple[Path | None, float | None]) -> Shown:
        video, worst_s = clip
        if video is None:
            return Shown(lost=NOT_KEPT)
        film = preview(video)
        return Shown(*stills(video, worst_s), film, "" if film else "The video cannot be played.")

    def _linked(self, clip: tuple[Path | None, float | None]) -> Shown:
        video, worst_s = clip
        if video is None:
            return Shown(lost=NOT_KEPT)
        poster = stills(video, worst_s, strip=False)[1]
        if self._beside is not None and video.resolve().is_relative_to(self._beside.resolve()):
            inside = video.resolve().relative_to(self._beside.resolve())
            return Shown(poster=poster, film=quote(inside.as_posix()))
        return Shown(poster=poster, lost=f"To keep the page small, {video.name} is not in it.")


def stills(video: Path, worst_s: float | None, strip: bool = True) -> tuple[str, str]:
    """(film strip, poster) as JPEG data URIs: the half second in the middle of the worst second,
    and its first picture whole. No strip without `worst_s` or `strip`; empty if unreadable."""
    begin = 0.0 if worst_s is None else worst_s + 0.25
    pictures: list[np.ndarray] = []
    where: tuple[slice, slice] | None = None
    poster = ""
    for at, picture in _frames(video):
        if at < begin - 1e-3:
            continue
        poster = poster or _jpeg(_narrow(picture, POSTER_WIDTH), 70)
        if worst_s is None or not strip:
            break
        where = where or lower_face(picture)
        part = picture[where]
        width = max(1, round(part.shape[1] * STRIP_HEIGHT / part.shape[0]))
        pictures.append(cv2.resize(part, (width, STRIP_HEIGHT), interpolation=cv2.INTER_AREA))
        if len(pictures) == STRIP_FRAMES:
            break
    return _jpeg(np.hstack(pictures), 74) if pictures else "", poster


def _narrow(picture: np.ndarray, width: int) -> np.ndarray:
    size = (width, max(1, round(picture.shape[0] * width / picture.shape[1])))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)


def _jpeg(picture: np.ndarray, quality: int) -> str:
    good, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return _uri("image/jpeg", data.tobytes()) if good else ""


def lower_face(picture: np.ndarray) -> tuple[slice, slice]:
    """Rows and columns around the mouth of the clearest face [h, w, 3]; else the whole picture."""
    height, width = picture.shape[:2]
    side = max(height, width)
    square = cv2.copyMakeBorder(
        picture, 0, side - height, 0, side - width, cv2.BORDER_CONSTANT, value=(0, 0, 0)
    )
    try:
        with DETECTING:
            found = detect(square, 0.3)
    except EngineError:  # no face model on this machine: the strip still shows the frames
        found = []
    if not found:
        return slice(0, height), slice(0, width)
    (x, y), half = found[0].points[MOUTH], 0.36 * float(found[0].size[0])
    rows = slice(max(0, int(y - half)), min(height, int(y + half)))
    return rows, slice(max(0, int(x - half)), min(width, int(x + half)))


def preview(video: Path) -> str:
    """The whole clip with its sound, 240 pixels wide, as an MP4 data URI; empty if unreadable."""
    target = io.BytesIO()
    try:
        with av.open(str(video)) as source, av.open(target, "w", format="mp4") as out:
            _transcode(source, out)
    except (FFmpegError, OSError, ValueError, StopIteration):
        return ""
    return _uri("video/mp4", target.getvalue())


def _transcode(source: Any, out: Any) -> None:
    picture = source.streams.video[0]
    sound = next(iter(source.streams.audio), None)
    height = (
        round(PREVIEW_WIDTH * picture.codec_context.height / picture.codec_context.width / 2) * 2
    )
    options = {"crf": "30", "preset": "veryfast", "threads": "1"}
    video = out.add_stream("libx264", rate=picture.average_rate, options=options)
    video.width, video.height, video.pix_fmt = PREVIEW_WIDTH, height, "yuv420p"
    audio = out.add_stream("aac", rate=24_000, layout="mono") if sound is not None else None
    if audio is not None:
        audio.bit_rate = 32_000
    resampler = av.AudioResampler("fltp", "mono", 24_000)
    streams = [s for s in (picture, sound) if s is not None]
    for frame in source.decode(*streams):
        if isinstance(frame, av.VideoFrame):
            small = frame.reformat(PREVIEW_WIDTH, height, "yuv420p", interpolation="AREA")
            small.pict_type = 0
            out.mux(video.encode(small))
        elif audio is not None:
            for piece in resampler.resample(frame):
                out.mux(audio.encode(piece))
    out.mux(video.encode(None))
    if audio is not None:
        for piece in resampler.resample(None):
            out.mux(audio.encode(piece))
        out.mux(audio.encode(None))


def _frames(video: Path) -> Iterator[tuple[float, np.ndarray]]:
    """(seconds, BGR picture) of every frame; ends where the file does."""
    try:
        with av.open(str(video)) as source:
            for i, frame in enumerate(source.decode(video=0)):
                at = frame.time if frame.time is not None else i / 24
                yield at, frame.to_ndarray(format="bgr24")
    except (FFmpegError, OSError, ValueError, IndexError):
        return


def _uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
