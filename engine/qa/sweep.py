"""A scripted opening and closing of one face, whose true lip gaps are known: what calibrates it.

Drawn by the portrait renderer, also for faces that another model will animate: shut lips and wide
open ones of the same picture. Knows nothing of speech.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np

from engine.clock import FPS, HEIGHT, WIDTH
from engine.portrait.canvas import Canvas
from engine.portrait.coefficients import vector
from engine.portrait.renderer import PortraitRenderer
from engine.qa.gauge import Gauge, fit_gauge
from engine.qa.measured import EYES, INNER_LIPS, Measured, Measurer

OPENINGS = np.linspace(0.0, 0.5, 13)  # of jawOpen
CRF = 23  # x264's own default
FULL_JAW = 0.4  # jawOpen that counts as wide open: what the open vowels reach
SHAPES: tuple[dict[str, float], ...] = (
    {},
    {"mouthPucker": 0.55, "mouthFunnel": 0.3},
    {"mouthStretchL": 0.4, "mouthStretchR": 0.4, "upperLipUp": 0.15, "lowerLipDown": 0.2},
)
TURNS: tuple[dict[str, float], ...] = (
    {"headYaw": 7.0, "headRoll": 2.0},
    {"headYaw": -7.0, "headPitch": 4.0},
    {"headPitch": -4.0, "headX": 0.05},
)


def sweep_tokens() -> np.ndarray:
    """[n, COUNT]: every shape over all openings, then a few openings of turned heads."""
    tokens = [vector(jawOpen=j, seal=1.0, **shape) for shape in SHAPES for j in OPENINGS]
    tokens += [vector(jawOpen=j, seal=1.0, **turn) for turn in TURNS for j in OPENINGS[::3]]
    tokens += [vector(jawOpen=j, seal=1.0, mouthClose=1.0) for j in (0.05, 0.15, 0.25)]
    return np.stack(tokens)


def true_gap(renderer: PortraitRenderer, token: np.ndarray) -> float:
    """Mean distance of the inner lips in S, as the renderer places them; 0 where they cross."""
    points = renderer.pose(token).points.astype(np.float64)
    across = points[EYES[1]] - points[EYES[0]]
    s = float(np.linalg.norm(across))
    down = np.array([-across[1], across[0]]) / s
    gaps = [max(0.0, float((points[low] - points[up]) @ down)) for up, low in INNER_LIPS]
    return float(np.mean(gaps)) / s


def drawn(renderer: PortraitRenderer, tokens: np.ndarray) -> Iterator[np.ndarray]:
    """BGR frames [h, w, 3] of tokens [n, COUNT]; each is the caller's own."""
    frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    for token in tokens:
        renderer.render(token, frame)
        yield np.ascontiguousarray(frame[:, :, :3])


def coded(frames: Iterable[np.ndarray], crf: int = CRF) -> Iterator[np.ndarray]:
    """The same frames as they come back from H.264: colours lose half their resolution."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        options = {"preset": "veryfast", "crf": str(crf), "bf": "0", "threads": "1"}
        stream: Any = container.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for bgr in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(bgr, format="bgr24")))
        container.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer, "r") as back:
        for frame in back.decode(video=0):
            yield frame.to_ndarray(format="bgr24")


def measure_frames(frames: Iterable[np.ndarray], models: Path | None = None) -> Measured:
    """Frames of 24 fps, without any file between."""
    measurer = Measurer(models)
    for i, bgr in enumerate(frames):
        measurer.push(bgr, (i + 0.5) / FPS)
    return measurer.measured()


def gauge_of(canvas: Canvas, models: Path | None = None) -> Gauge:
    """The gauge of a face: about 4 s of one core."""
    renderer = PortraitRenderer(canvas, None, lambda fraction, what: None)
    return gauge_of_renderer(renderer, models)


def gauge_of_renderer(renderer: PortraitRenderer, models: Path | None = None) -> Gauge:
    """Fitted on drawn and on coded frames alike, so that a codec does not shift it."""
    tokens = sweep_tokens()
    frames = list(drawn(renderer, tokens))
    measured = measure_frames([*frames, *coded(frames)], models)
    gaps = np.array([true_gap(renderer, token) for token in tokens])
    full = true_gap(renderer, vector(jawOpen=FULL_JAW, seal=1.0))
    gauge = fit_gauge(measured, np.concatenate([gaps, gaps]), full)
    return replace(gauge, rest=true_gap(renderer, vector()) / gauge.full)
