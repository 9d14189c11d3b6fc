"""Character: a spec and picture bytes made ready for the models; cached by content.

Knows nothing of how a face is found or drawn, only in which order things are asked for.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from engine import ingest_cache
from engine.errors import EngineError
from engine.models.base import Progress
from engine.portrait.canvas import Canvas
from engine.portrait.face_check import check, face_found
from engine.portrait.faces import Face, face_of_points, find_faces
from engine.portrait.framing import box_of, to_canvas
from engine.portrait.pictures import Picture, read_picture
from engine.protocol.character import CharacterSpec, Framing
from engine.protocol.framing import automatic_framing
from engine.protocol.messages import FaceFound

INGEST = 2  # raise when the same bytes give another canvas: old cache entries are then not used


@dataclass(frozen=True, slots=True)
class Character:
    """What a model needs (`spec`, `canvas`) and what the studio is told about it."""

    spec: CharacterSpec
    canvas: Canvas
    key: str  # hex SHA-256 of the picture and of all that shapes the canvas
    face: FaceFound
    automatic: Framing
    warnings: tuple[str, ...]
    ingest_ms: float
    cached: bool


def no_progress(fraction: float, what: str) -> None:
    """For callers who do not show any."""


def never() -> bool:
    return False


def content_key(picture: bytes, spec: CharacterSpec) -> str:
    """Hex SHA-256 of what decides the canvas; name, settings and licence do not."""
    shape = msgspec.json.encode([INGEST, spec.framing, spec.face, spec.landmarks])
    return hashlib.sha256(hashlib.sha256(picture).digest() + shape).hexdigest()


def load_character(
    picture: bytes,
    spec: CharacterSpec,
    cache_dir: Path | None = None,
    progress: Progress = no_progress,
    cancelled: Callable[[], bool] = never,
    models: Path | None = None,
) -> Character:
    """Decode, find the face, check it, frame it. 0.1-0.4 s, or 10 ms out of `cache_dir`.

    Raises EngineError: bad_picture, no_face, face_unusable, bad_character, missing_asset,
    cancelled.
    """
    started = time.perf_counter()
    key = content_key(picture, spec)
    prepared = ingest_cache.read(cache_dir, key)
    cached = prepared is not None
    if prepared is None:
        prepared = _prepare(picture, spec, progress, cancelled, models)
        ingest_cache.write(cache_dir, key, prepared)
    progress(1.0, "ready")
    ingest_ms = (time.perf_counter() - started) * 1e3
    return Character(
        spec, prepared.canvas, key, prepared.face, prepared.automatic, tuple(prepared.warnings),
        ingest_ms, cached,
    )  # fmt: skip


def _prepare(
    data: bytes,
    spec: CharacterSpec,
    progress: Progress,
    cancelled: Callable[[], bool],
    models: Path | None,
) -> ingest_cache.Prepared:
    def step(fraction: float, what: str) -> None:
        if cancelled():
            raise EngineError("cancelled", "loading the character was cancelled")
        progress(fraction, what)

    step(0.0, "reading the picture")
    picture = read_picture(data)
    step(0.4, "looking for the face")
    face, warnings = chosen_face(picture, spec, models)
    step(0.8, "fitting the picture")
    _check_framing(spec.framing)
    canvas = to_canvas(picture, face, spec.framing)
    automatic = automatic_framing(picture.width, picture.height, box_of(face))
    notes = [*picture.warnings, *warnings]
    return ingest_cache.Prepared(canvas, face_found(face), automatic, notes)


def _check_framing(framing: Framing | None) -> None:
    if framing and not all(map(math.isfinite, msgspec.structs.astuple(framing))):
        raise EngineError("bad_character", "the framing is not a number", "frame the picture again")


def chosen_face(
    picture: Picture, spec: CharacterSpec, models: Path | None
) -> tuple[Face, list[str]]:
    """The face that the spec names or carries, and warnings about it; EngineError if unusable."""
    if spec.landmarks is not None:
        placed = placed_face(picture, spec.landmarks)
        return placed, check(picture, [placed], 0)
    faces = find_faces(picture, models)
    warnings = check(picture, faces, spec.face, models)
    return faces[spec.face], warnings


def placed_face(picture: Picture, landmarks: list[tuple[float, float, float]]) -> Face:
    """Landmarks that a person placed; refused when they cannot be a face of this picture."""
    points = np.array(landmarks, np.float32)
    fix = "place the points again"
    if points.shape != (478, 3) or not np.isfinite(points).all():
        raise EngineError(
            "bad_character", f"{len(landmarks)} landmarks given, 478 finite ones are needed", fix
        )
    face = face_of_points(points)
    inside = (face.high > 0).all() and (face.low < [picture.width, picture.height]).all()
    if not inside or face.height < 8 or face.width < 8:
        raise EngineError("bad_character", "the placed landmarks lie outside the picture", fix)
    return face
