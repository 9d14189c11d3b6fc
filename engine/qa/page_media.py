"""Pictures and preview videos of the report, small enough to lie inside one page as data URIs.

Knows nothing of scores: it takes a video file and a moment.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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


BUDGET = 28_000_000  # characters of films in one page; what is over is linked to


@dataclass(frozen=True, slots=True)
class Shown:
    """Addresses of a clip's media, empty where there is none; `lost`: why there is no film."""

    strip: str = ""
    poster: str = ""
    film: str = ""
    lost: str = ""


class Media:
    """`of(video, worst_s)`: films lie inside the page while they fit `budget`, in the order asked
    for; later ones are linked to where they lie below `beside`, the page's folder. 53 clips of 7
    configurations would else make a page of 70 MB."""

    def __init__(self, beside: Path | None = None, budget: int = BUDGET) -> None:
        self._beside = beside
        self._left = budget

    def of(self, video: Path | None, worst_s: float | None) -> Shown:
        if video is None:
            return Shown(lost="The video was not kept.")
        strip, poster = stills(video, worst_s)
        film, lost = self._film(video)
        return Shown(strip, poster, film, lost)

    def _film(self, video: Path) -> tuple[str, str]:
        film = preview(video) if self._left > 0 else ""
        self._left -= len(film)
        if film:
            return film, ""
        if self._left > 0:
            return "", "The video cannot be played."
        if self._beside is not None and video.resolve().is_relative_to(self._beside.resolve()):
            inside = video.resolve().relative_to(self._beside.resolve())
            return quote(inside.as_posix()), ""
        return "", f"To keep the page small, {video.name} is not in it."


def film_strip(video: Path, worst_s: float) -> str:
    """A JPEG data URI of the half second in the middle of the worst second; empty if unreadable."""
    return stills(video, worst_s)[0]


def stills(video: Path, worst_s: float | None) -> tuple[str, str]:
    """(film strip, poster) as JPEG data URIs: the half second in the middle of the worst second,
    and its first picture whole. Without `worst_s` no strip; empty if unreadable."""
    begin = 0.0 if worst_s is None else worst_s + 0.25
    pictures: list[np.ndarray] = []
    where: tuple[slice, slice] | None = None
    poster = ""
    for at, picture in _frames(video):
        if at < begin - 1e-3:
            continue
        poster = poster or _jpeg(_narrow(picture, PREVIEW_WIDTH), 70)
        if worst_s is None:
            break
        where = where or lower_face(picture)
        part = picture[where]
        width = max(1, round(part.shape[1] * STRIP_HEIGHT / part.shape[0]))
        pictures.append(cv2.resize(part, (width, STRIP_HEIGHT), interpolation=cv2.INTER_AREA))
        if len(pictures) == STRIP_FRAMES:
            break
    return _jpeg(np.hstack(pictures), 78) if pictures else "", poster


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
