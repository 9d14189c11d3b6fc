"""Faces of a picture: search over scales, landmarks, angles, and whether it looks like a face.

Knows nothing of refusals or wording: `face_check.py` judges what is found here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from engine.portrait.face_detector import LEFT_EYE, RIGHT_EYE, Detection, detect, merge
from engine.portrait.face_mesh import (
    Mesh,
    crop_of_box,
    crop_of_points,
    mesh_both_ways,
    mesh_in_crop,
    refine,
)
from engine.portrait.face_shape import Angles, angles, is_face_like
from engine.portrait.pictures import Picture

# Side of the search windows as shares of the short side; the finest only when nothing was found.
WINDOWS = (1.0, 0.55)
FINE_WINDOW = 0.3
WINDOW_PX = 192  # a window of the scaled picture; the detector itself shrinks it to 128
LEAST_SCORE = 0.35  # of the detector: drawn faces score low, the mesh has the last word
LEAST_PRESENCE = 0.5  # of the mesh
HOPELESS = 0.05  # presence in the first crop: saves three rounds
MOST_APART = 0.065  # of the eye distance, between the mesh and the mirror image's mesh
MAX_CANDIDATES = 8
ROUNDS = 4  # of crop and mesh: the fifth moves points by less than 0.3 % of the eye distance


@dataclass(frozen=True, slots=True)
class Face:
    """In px of the upright picture. `low`, `high` [2] bound the landmarks [478, 3]; `score` is the
    detector's, `presence` the mesh's, both 0..1."""

    low: np.ndarray
    high: np.ndarray
    score: float
    presence: float
    landmarks: np.ndarray
    angles: Angles

    @property
    def width(self) -> float:
        return float(self.high[0] - self.low[0])

    @property
    def height(self) -> float:
        return float(self.high[1] - self.low[1])


def face_of_points(landmarks: np.ndarray, score: float = 1.0, presence: float = 1.0) -> Face:
    """A face from its landmarks [478, 3], wherever they come from."""
    points = np.ascontiguousarray(landmarks, np.float32)
    low, high = points[:468, :2].min(0), points[:468, :2].max(0)
    return Face(low, high, score, presence, points, angles(points))


def find_faces(picture: Picture, models: Path | None = None) -> list[Face]:
    """All faces, the largest x best first. Raises EngineError("missing_asset") without models."""
    faces: list[Face] = []
    candidates = sorted(_search(picture.pixels, models), key=lambda d: -d.size.max() * d.score)
    for candidate in candidates[:MAX_CANDIDATES]:
        mesh = _landmarks(picture.pixels, candidate, models)
        if mesh is None:
            continue
        points = mesh.points / np.float32(picture.scale)
        face = face_of_points(points, candidate.score, mesh.presence)
        if is_face_like(face.landmarks) and not any(_same(face, other) for other in faces):
            faces.append(face)
    return sorted(faces, key=lambda face: -face.height * face.score)


def lies_on_its_side(picture: Picture, models: Path | None = None) -> bool:
    """No face as it is, but one when turned: for a better word than "no face"."""
    for quarter_turns in (1, 3, 2):
        turned = np.ascontiguousarray(np.rot90(picture.pixels, quarter_turns))
        if find_faces(Picture(turned, turned.shape[1], turned.shape[0]), models):
            return True
    return False


def _search(pixels: np.ndarray, models: Path | None) -> list[Detection]:
    """Candidates in px of `pixels`, searched in a picture just large enough for the finest."""
    shrink = min(1.0, WINDOW_PX / FINE_WINDOW / min(pixels.shape[:2]))
    base = _resized(pixels, shrink)
    found = _in_windows(base, None, models)
    for share in WINDOWS:
        found += _in_windows(base, share, models)
    merged = merge(found or _in_windows(base, FINE_WINDOW, models))
    return [_moved(d, np.zeros(2, np.float32), base.shape[1] / pixels.shape[1]) for d in merged]


def _resized(pixels: np.ndarray, factor: float) -> np.ndarray:
    if factor == 1:
        return pixels
    size = (max(1, round(pixels.shape[1] * factor)), max(1, round(pixels.shape[0] * factor)))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)


def _in_windows(pixels: np.ndarray, share: float | None, models: Path | None) -> list[Detection]:
    """Detections in overlapping square windows of `share` of the short side; None: one window
    over the whole picture. In px of `pixels`."""
    height, width = pixels.shape[:2]
    side = max(height, width) if share is None else share * min(height, width)
    factor = WINDOW_PX / side
    small = _resized(pixels, factor)
    if share is None:
        pad_y, pad_x = WINDOW_PX - small.shape[0], WINDOW_PX - small.shape[1]
        small = cv2.copyMakeBorder(
            small, max(0, pad_y), 0, max(0, pad_x), 0, cv2.BORDER_CONSTANT, value=(96, 96, 96, 255)
        )
        offset = np.array([max(0, pad_x), max(0, pad_y)], np.float32)
    else:
        offset = np.zeros(2, np.float32)
    found = []
    for y in _starts(small.shape[0]):
        for x in _starts(small.shape[1]):
            window = small[y : y + WINDOW_PX, x : x + WINDOW_PX]
            shift = np.array([x, y], np.float32) - offset
            found += [_moved(d, shift, factor) for d in detect(window, LEAST_SCORE, models)]
    return found


def _starts(length: int) -> list[int]:
    """First px of windows that overlap by half or more and reach both ends."""
    free = max(0, length - WINDOW_PX)
    count = 1 + -(-free // (WINDOW_PX // 2))
    return [round(i * free / max(1, count - 1)) for i in range(count)]


def _moved(d: Detection, shift: np.ndarray, factor: float) -> Detection:
    return Detection(
        (d.center + shift) / factor, d.size / factor, (d.points + shift) / factor, d.score
    )


def _landmarks(pixels: np.ndarray, d: Detection, models: Path | None) -> Mesh | None:
    """None where the mesh sees no face or wanders off from what the detector saw."""
    crop = crop_of_box(
        d.center - d.size / 2, d.center + d.size / 2, d.points[RIGHT_EYE], d.points[LEFT_EYE]
    )
    if mesh_in_crop(pixels, crop, models).presence < HOPELESS:
        return None
    mesh = refine(pixels, crop, ROUNDS, models)
    if mesh.presence < LEAST_PRESENCE:
        return None
    middle = mesh.points[:468, :2].mean(0)
    if np.linalg.norm(middle - d.center) > 0.5 * d.size.max():
        return None
    mesh, apart = mesh_both_ways(pixels, crop_of_points(mesh.points), models)
    return mesh if mesh.presence >= LEAST_PRESENCE and apart <= MOST_APART else None


def _same(a: Face, b: Face) -> bool:
    """Middles closer than half a face."""
    distance = np.linalg.norm((a.low + a.high) / 2 - (b.low + b.high) / 2)
    return bool(distance < 0.5 * max(a.width, b.width))
