"""Landmarks of every frame of a video, each from its own pixels: no filter over time.

A smoothing tracker would lag 0.43 frame. Here a frame's landmarks depend on the frames before it
only through where the crop lies, and the crop follows eyes and nose alone, so that the mouth never
moves its own ruler. Knows nothing of sound or files.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from engine.portrait.face_mesh import Crop, crop_of_points, mesh_in_crop, refine
from engine.portrait.faces import find_faces
from engine.portrait.pictures import Picture

# Corners of eyes, bridge and base of the nose: what speech leaves where it is.
STABLE = (33, 133, 362, 263, 168, 6, 197, 195, 5, 4, 98, 327)
LEAST_PRESENCE = 0.5  # of the mesh: below it the face is searched for again
SEARCHES = 4  # in a row without a face; then only every SEARCH_EVERY-th frame is searched
SEARCH_EVERY = 24
HALVE_ABOVE_PX = 512  # crops larger than this are cut from a halved frame: 3 times cheaper


def similarity(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[2, 3]: the turn, scale and shift that lay points [n, 2] over others best (least squares)."""
    a, b = source - source.mean(0), target - target.mean(0)
    norm = max(float((a**2).sum()), 1e-9)
    cos = float((a * b).sum()) / norm
    sin = float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()) / norm
    turn = np.array([[cos, -sin], [sin, cos]])
    return np.column_stack([turn, target.mean(0) - turn @ source.mean(0)])


def moved(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Points [n, 2] through a [2, 3] matrix."""
    return points @ matrix[:, :2].T + matrix[:, 2]


class Tracker:
    """One face through one video. Deterministic: same frames, same numbers."""

    def __init__(self, models: Path | None = None) -> None:
        self._models = models
        self._home: tuple[Crop, np.ndarray] | None = None  # a crop and its stable points [12, 2]
        self._last: np.ndarray | None = None  # stable points of the frame before
        self._misses = 0

    def landmarks(self, bgr: np.ndarray) -> np.ndarray | None:
        """[478, 2] float32 px of one uint8 BGR frame, or None where no face is seen."""
        if self._home is not None and self._last is not None:
            points = self._in_crop(bgr, self._followed(*self._home, self._last))
            if points is not None:
                return self._kept(points)
        if self._misses >= SEARCHES and self._misses % SEARCH_EVERY:
            self._misses += 1
            return None
        return self._found(bgr)

    def _kept(self, points: np.ndarray) -> np.ndarray:
        self._last = points[list(STABLE)].astype(np.float64)
        self._misses = 0
        return points

    def _found(self, bgr: np.ndarray) -> np.ndarray | None:
        """The largest face of the frame becomes the one that is followed."""
        bgra = cv2.cvtColor(bgr, cv2.COLOR_BGR2BGRA)
        faces = find_faces(Picture(bgra, bgra.shape[1], bgra.shape[0]), self._models)
        self._home = self._last = None
        if not faces:
            self._misses += 1
            return None
        crop = crop_of_points(faces[0].landmarks)
        mesh = refine(bgr, crop, 2, self._models)
        stable = mesh.points[list(STABLE), :2].astype(np.float64)
        self._home = (crop_of_points(mesh.points), stable)
        points = self._in_crop(bgr, self._home[0])
        return None if points is None else self._kept(points)

    @staticmethod
    def _followed(crop: Crop, stable: np.ndarray, last: np.ndarray) -> Crop:
        matrix = similarity(stable, last)
        scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
        turn = float(np.arctan2(matrix[1, 0], matrix[0, 0]))
        return Crop(moved(crop.center[None], matrix)[0], crop.side * scale, crop.angle + turn)

    def _in_crop(self, bgr: np.ndarray, crop: Crop) -> np.ndarray | None:
        factor = 1.0
        if crop.side > HALVE_ABOVE_PX:
            bgr = cv2.resize(bgr, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
            factor = 2.0
            crop = Crop((crop.center - 0.5) / 2, crop.side / 2, crop.angle)
        mesh = mesh_in_crop(bgr, crop, self._models)
        if mesh.presence < LEAST_PRESENCE:
            return None
        xy = mesh.points[:, :2] * factor + (0.5 if factor == 2 else 0.0)
        return xy.astype(np.float32)
