"""PortraitRenderer: motion tokens -> frames of one picture. The order in which a face is drawn.

Everything that depends on the picture alone is worked out once and may be cached. A frame depends
on its token alone. Knows nothing of time, sound or files' meaning.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from engine.models.base import Progress
from engine.portrait.canvas import Canvas
from engine.portrait.coefficients import COUNT, INDEX, clip
from engine.portrait.colours import measure_colours
from engine.portrait.eyes import Eyes
from engine.portrait.fields import dense_fields, with_breath
from engine.portrait.fields_file import read_fields, write_fields
from engine.portrait.grid import HEIGHT, WIDTH
from engine.portrait.head import breath_field, head_matrix, make_head
from engine.portrait.headframe import head_frame
from engine.portrait.mouth import Mouth
from engine.portrait.points import Points, Pose
from engine.portrait.rig_face import vertex_bases
from engine.portrait.shade import Shade
from engine.portrait.warp import LEAST, Warp

STAGES = ("warp", "gaze", "remap", "shade", "lids", "mouth")


class PortraitRenderer:
    """One picture, ready to move. `stage_ms` names what the last frame cost, in CPU ms."""

    def __init__(self, canvas: Canvas, cache_file: Path | None, progress: Progress) -> None:
        """0.6 s on one core, 0.4 s with the fields out of `cache_file` (a suffix is added)."""
        assert canvas.pixels.shape == (HEIGHT, WIDTH, 4), canvas.pixels.shape
        assert canvas.landmarks.shape == (478, 3), canvas.landmarks.shape
        progress(0.0, "measuring the face")
        frame = head_frame(canvas.landmarks)
        tokens, bases = vertex_bases(frame)
        progress(0.2, "preparing the motion")
        fields = read_fields(cache_file, canvas.landmarks)
        if fields is None:
            fields = dense_fields(frame, canvas.landmarks, tokens, bases)
            write_fields(cache_file, canvas.landmarks, fields)
        progress(0.8, "painting lids and teeth")
        self._pixels = np.ascontiguousarray(canvas.pixels)
        self._head = make_head(frame, canvas.landmarks, fields.depth)
        breath = breath_field(frame, canvas.landmarks)
        fields = with_breath(fields, INDEX["breath"], breath)
        self._warp = Warp(self._pixels, canvas.landmarks, fields, self._head)
        self._points = Points(canvas.landmarks, tokens, bases, self._head)
        colours = measure_colours(self._pixels, canvas.landmarks)
        self._shade = Shade(frame, canvas.landmarks, colours.skin)
        self._eyes = Eyes(self._pixels, canvas.landmarks, colours.skin)
        self._mouth = Mouth(canvas, frame, colours)
        self.stage_ms: dict[str, float] = {}
        progress(1.0, "face ready")

    def pose(self, token: np.ndarray) -> Pose:
        """Where `token` [COUNT] puts the landmarks."""
        return self._points.pose(_applied(token), head_matrix(self._head, token))

    def render(self, token: np.ndarray, out: np.ndarray) -> None:
        """Draw `token` [COUNT] float32 into `out` [1088, 704, 4] uint8 BGRA."""
        assert out.shape == self._pixels.shape and out.dtype == np.uint8, out.shape
        token = _applied(token)
        clock = [time.thread_time()]
        if not np.abs(token).max() > LEAST:  # neutral is the picture itself
            out[:] = self._pixels
            self.stage_ms = {"copy": 1e3 * (time.thread_time() - clock[0])}
            return
        warp, turn = self._warp, head_matrix(self._head, token)
        pose = self._points.pose(token, turn)
        warp.solve(token, turn, pose.points)
        clock.append(time.thread_time())
        lids = self._eyes.edit(warp.map, warp.rows.start, warp.cols.start, token, pose.points)
        clock.append(time.thread_time())
        warp.draw(out)
        clock.append(time.thread_time())
        self._shade.draw(out, token, warp)
        clock.append(time.thread_time())
        self._eyes.draw(out, lids)
        clock.append(time.thread_time())
        self._mouth.draw(out, pose)
        clock.append(time.thread_time())
        self.stage_ms = dict(zip(STAGES, (1e3 * np.diff(clock)).tolist(), strict=True))


def _applied(token: np.ndarray) -> np.ndarray:
    """The token within its ranges; mouthClose, a share of the jaw's gap by contract, as the amount
    of its basis, which cancels the gap of jawOpen 1."""
    assert token.shape == (COUNT,), token.shape
    token = clip(np.nan_to_num(token.astype(np.float32)))
    token[INDEX["mouthClose"]] *= token[INDEX["jawOpen"]]
    return token
