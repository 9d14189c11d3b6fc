"""A picture as the video models take it: any picture, no face needed, cut to 704x1088.

Signature of `engine.character.load_character`. Knows nothing of latents.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.character import Character, content_key, never, no_progress
from engine.clock import HEIGHT, WIDTH
from engine.models.base import Progress
from engine.portrait.canvas import Canvas
from engine.portrait.framing import cut_window
from engine.portrait.pictures import read_picture
from engine.protocol.character import CharacterSpec, Framing
from engine.protocol.framing import Window
from engine.protocol.messages import FaceFound

NO_LANDMARKS = np.zeros((478, 3), np.float32)


def load_character(
    picture: bytes,
    spec: CharacterSpec,
    cache_dir: Path | None = None,
    progress: Progress = no_progress,
    cancelled: Callable[[], bool] = never,
    models: Path | None = None,
) -> Character:
    """The middle of the picture (or the spec's framing) at the size that covers the canvas.

    Raises EngineError("bad_picture").
    """
    begun = time.perf_counter()
    read = read_picture(picture)
    framing = spec.framing or Framing()
    width, height = read.width, read.height
    scale = max(WIDTH / width, HEIGHT / height) * framing.zoom
    across, down = WIDTH / scale, HEIGHT / scale
    left, top = framing.center_x * width - across / 2, framing.center_y * height - down / 2
    pixels = cut_window(read, Window(left, top, across, down, scale))
    face = FaceFound(left, top, across, down, 0.0, 0.0)  # the whole frame: none was looked for
    progress(1.0, "picture read")
    taken = 1000 * (time.perf_counter() - begun)
    canvas = Canvas(pixels, NO_LANDMARKS, scale)
    key = content_key(picture, spec)
    return Character(spec, canvas, key, face, Framing(), read.warnings, taken, False)
