"""Landmarks of our own drawings: as detected, but with the eyes where they were really drawn.

The mesh's eyes come out smaller than drawn ones, and lids painted there do not cover the iris.
Knows the drawings' eyes; nothing of files.
"""

from __future__ import annotations

import numpy as np
from airbrush import curve, to_px
from drawings import Look, eye_outline
from scipy.interpolate import RBFInterpolator

from engine.portrait.faces import find_faces
from engine.portrait.pictures import read_picture

# Contours from the outer corner along the upper lid to the inner, back along the lower one; then
# the iris: centre, and its right, top, left and bottom in the picture. Person's right eye first.
CONTOURS = (
    (33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7),
    (263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249),
)
IRISES = ((468, 469, 470, 471, 472), (473, 476, 475, 474, 477))
SIDES = (-1, 1)  # x in the picture
NEAR_U = 0.95  # points this close to an eye's middle follow its contour
Landmarks = list[tuple[float, float, float]]


def contour(look: Look, side: int) -> np.ndarray:
    """[16, 2] px: the drawn outline at the 16 places that the mesh has."""
    outline = curve(eye_outline(side, look.eye))
    inner, outer = np.argmin(side * outline[:, 0]), np.argmax(side * outline[:, 0])
    turned = np.roll(outline, -inner, axis=0)
    cut = (outer - inner) % len(outline)
    upper, lower = turned[: cut + 1][::-1], np.vstack([turned[cut:], turned[:1]])[::-1]
    places = []
    for lid, count in ((upper, 9), (lower, 9)):
        at = np.linspace(0, len(lid) - 1, count)
        places.append(np.stack([np.interp(at, range(len(lid)), lid[:, i]) for i in (0, 1)], 1))
    return to_px(np.vstack([places[0], places[1][1:-1]]))


def iris(look: Look, side: int) -> np.ndarray:
    """[5, 2] px: centre, right, top, left, bottom."""
    r = 0.27 * look.eye
    around = np.array([[0, 0], [r, 0], [0, -r], [-r, 0], [0, r]])
    return to_px(np.array([side * 0.92, -0.02]) + around)


def landmarks(look: Look, picture: bytes) -> Landmarks:
    """478 points in px of the picture."""
    points = find_faces(read_picture(picture))[0].landmarks.astype(np.float64)
    for side, ring, iris_ring in zip(SIDES, CONTOURS, IRISES, strict=True):
        middle = to_px(np.array([side * 0.93, 0.0]))
        distance = np.linalg.norm(points[:468, :2] - middle, axis=1)
        still = np.flatnonzero(distance > NEAR_U * 110)
        moving = np.setdiff1d(np.arange(468), [*still, *ring])
        known = np.concatenate([points[list(ring), :2], points[still, :2]])
        moves = np.zeros_like(known)
        moves[: len(ring)] = contour(look, side) - known[: len(ring)]
        field = RBFInterpolator(known, moves, kernel="linear")
        points[moving, :2] += field(points[moving, :2])
        points[list(ring), :2] += moves[: len(ring)]
        points[list(iris_ring), :2] = iris(look, side)
    return [(round(float(x), 2), round(float(y), 2), round(float(z), 2)) for x, y, z in points]
