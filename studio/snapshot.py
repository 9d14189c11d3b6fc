"""Snapshot: one Frame as a PNG of exactly its own pixels, whatever the window shows."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from engine.clock import HEIGHT, WIDTH
from engine.errors import EngineError
from engine.protocol.frame import Frame


def save_snapshot(frame: Frame, path: Path) -> None:
    """Write `frame` (704x1088) to `path`. EngineError("bad_input") if it cannot be written."""
    height, width = frame.pixels.shape[:2]
    assert (width, height) == (WIDTH, HEIGHT), f"frame is {width}x{height}, not {WIDTH}x{HEIGHT}"
    picture = Image.fromarray(frame.pixels[:, :, 2::-1].copy())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path, format="PNG")
    except OSError as error:
        hint = "choose another folder for snapshots"
        what = f"{path} cannot be written ({error.strerror})"
        raise EngineError("bad_input", what, hint) from error
