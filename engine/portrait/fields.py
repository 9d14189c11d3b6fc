"""Dense displacement fields of all bases on the quarter-resolution grid, worked out once a picture.

The lips are the only tear of a face: field U is fitted to all vertices but the lower lip's, L to
all but the upper lip's. Kept are U and L - U, each basis cut to the cells it moves. Knows nothing
of frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.portrait.grid import (
    ALL,
    CELL,
    COLS,
    PAD,
    ROWS,
    Box,
    box_of_px,
    box_where,
    centers_px,
    smooth,
)
from engine.portrait.headframe import HeadFrame
from engine.portrait.mesh import (
    EARS,
    LOWER_LIP,
    LOWER_OUTER,
    OVAL,
    UPPER_LIP,
    UPPER_OUTER,
    VERTICES,
)
from engine.portrait.spline import evaluate, weights

RINGS = (1.5, 2.0)  # the face oval enlarged: nothing moves there
RING_DEPTH = (0.18, 0.20)  # S behind the ears' vertices: the back of the head
EDGE_RING, EDGE_DEPTH = 1.22, 0.12  # half way between the oval's depth and the ears'
FADE = (1.40, 1.60)  # of the oval: fields go to zero, and are not evaluated beyond
LIP_STIFFNESS, DEPTH_STIFFNESS = 0.5e-3, 3e-3  # in S^2: irons out the landmarks' jitter
CORNER_FADE = (0.97, 1.30)  # mouth half-widths: L becomes U, or the corner's crease curls
STILL = 0.02  # cells at coefficient 1 below which a basis is cut off (0.08 px)


@dataclass(frozen=True, slots=True)
class Basis:
    """`values` [h, w, 2] float32 in cells over `box`, moved by the coefficient at `token`."""

    token: int
    box: Box
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class Fields:
    upper: list[Basis]
    lower: list[Basis]  # L - U
    mouth: Box  # all of `lower` lies inside
    depth: np.ndarray  # [ROWS, COLS] float32 px, away from the viewer


def oval_radius(frame: HeadFrame, landmarks: np.ndarray, points: np.ndarray) -> np.ndarray:
    """1 on the ellipse of the face's outline, 0 in its middle; for points [..., 2] px."""
    oval = landmarks[list(OVAL), :2].astype(np.float64)
    center = oval.mean(0)
    total = np.zeros(points.shape[:-1])
    for axis in (frame.right, frame.down):
        half = max(np.ptp((oval - center) @ axis) / 2, 0.25 * frame.s)
        total += ((points - center) @ axis / half) ** 2
    return np.sqrt(total)


def _rings(landmarks: np.ndarray, factors: tuple[float, ...]) -> np.ndarray:
    oval = landmarks[list(OVAL), :2].astype(np.float64)
    center = oval.mean(0)
    return np.concatenate([center + (oval - center) * k for k in factors])


def _stacked(knots: int, systems: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """One weight matrix over all knots from systems that each use some: (used ids, weights)."""
    columns = []
    for used, w in systems:
        full = np.zeros((knots + 3, w.shape[1]))
        full[np.append(used, [knots, knots + 1, knots + 2])] = w
        columns.append(full)
    return np.concatenate(columns, 1)


@dataclass(frozen=True, slots=True)
class Fit:
    """Knots [n, 2] in S about the face, and weights of U, L [2K columns each] and depth [1]."""

    knots: np.ndarray
    weight: np.ndarray

    def at(self, frame: HeadFrame, px: np.ndarray) -> np.ndarray:
        return evaluate((px - frame.center[:2]) / frame.s, self.knots, self.weight)


def fit(frame: HeadFrame, landmarks: np.ndarray, bases: np.ndarray) -> Fit:
    """Thin-plate splines through `bases` [K, 468, 3] px and the landmarks' depth."""
    rings = _rings(landmarks, (*RINGS, EDGE_RING))
    points = np.concatenate([landmarks[:VERTICES, :2], rings])
    knots = (points - frame.center[:2]) / frame.s
    still = VERTICES + len(RINGS) * len(OVAL)  # the third ring is for depth alone
    moves = np.zeros((len(points), 2 * len(bases)))
    moves[:VERTICES] = bases[:, :, :2].transpose(1, 0, 2).reshape(VERTICES, -1)
    systems = []
    for without in (LOWER_LIP, UPPER_LIP):
        used = np.setdiff1d(np.arange(still), without)
        systems.append((used, weights(knots[used], moves[used], LIP_STIFFNESS)))
    depth = _depth_values(frame, landmarks)[:, None]
    systems.append((np.arange(len(points)), weights(knots, depth, DEPTH_STIFFNESS)))
    return Fit(knots, _stacked(len(points), systems))


def ear_depth(landmarks: np.ndarray) -> float:
    """px, away from the viewer."""
    return float(landmarks[list(EARS), 2].mean())


def _depth_values(frame: HeadFrame, landmarks: np.ndarray) -> np.ndarray:
    ears, oval = ear_depth(landmarks), landmarks[list(OVAL), 2]
    rings = [np.full(len(OVAL), ears + k * frame.s) for k in RING_DEPTH]
    edge = (oval + ears) / 2 + EDGE_DEPTH * frame.s
    return np.concatenate([landmarks[:VERTICES, 2], *rings, edge]).astype(np.float64)


def dense_fields(
    frame: HeadFrame, landmarks: np.ndarray, tokens: list[int], bases: np.ndarray
) -> Fields:
    """Evaluate where the face can move: 0.3 s on one core (31 M kernel values at most)."""
    centers = centers_px()
    radius = oval_radius(frame, landmarks, centers)
    near = radius < FADE[1]
    face = box_where(near) or box_of_px(frame.center[:2], frame.center[:2])
    ys, xs = np.nonzero(near[face.cells])
    values = fit(frame, landmarks, bases).at(frame, centers[face.cells][ys, xs])
    fade = 1 - smooth(radius, *FADE)
    k = len(tokens)
    dense = np.zeros((*face.shape, 4 * k + 1), np.float32)
    dense[ys, xs] = values
    moves = dense[..., : 4 * k] * (fade[face.cells][..., None] / CELL).astype(np.float32)
    moves = np.ascontiguousarray(moves.reshape(*face.shape, 2, k, 2).transpose(2, 3, 0, 1, 4))
    behind = ear_depth(landmarks) + RING_DEPTH[-1] * frame.s
    depth = np.full((ROWS, COLS), behind)
    depth[face.cells] += (dense[..., -1] - behind) * fade[face.cells]
    mouth = mouth_box(frame, landmarks)
    window = (_mouth_window(mouth) * _corner_fade(landmarks, centers[mouth.cells])).astype(
        np.float32
    )
    within = mouth.meet(face)
    upper, lower = [], []
    # In the order of the file: sums of floats in another one differ in the last digit, and with it
    # videos made with and without a cache.
    for token, i in sorted(zip(tokens, range(k), strict=True)):
        upper.append(_cut(token, face, moves[0, i]))
        difference = np.zeros((*mouth.shape, 2), np.float32)
        cells = within.inside(face)
        difference[within.inside(mouth)] = moves[1, i][cells] - moves[0, i][cells]
        lower.append(_cut(token, mouth, difference * window[..., None]))
    return Fields([b for b in upper if b], [b for b in lower if b], mouth, depth.astype(np.float32))


def _cut(token: int, box: Box, values: np.ndarray) -> Basis | None:
    """The part of a basis that moves, or None."""
    moving = np.zeros((ROWS, COLS), bool)
    moving[box.cells] = np.abs(values).max(-1) > STILL
    part = box_where(moving)
    if part is None:
        return None
    return Basis(token, part, np.ascontiguousarray(values[part.inside(box)]))


def mouth_box(frame: HeadFrame, landmarks: np.ndarray) -> Box:
    """Cells around the mouth in which the two fields may differ: 0.95 mouth widths to the sides,
    0.75 up, 1.35 down."""
    lips = landmarks[list(UPPER_OUTER + LOWER_OUTER), :2]
    center, width = lips.mean(0), max(float(np.ptp(lips[:, 0])), 0.2 * frame.s)
    low = center - np.array([0.95, 0.75]) * width - PAD
    return box_of_px(low, center + np.array([0.95, 1.35]) * width)


def _mouth_window(box: Box) -> np.ndarray:
    """[h, w]: 1 inside, 0 at the sides and below. Above the lip line L is never used."""
    h, w = box.shape
    x, y = np.arange(w) + 0.5, np.arange(h) + 0.5
    side = smooth(np.minimum(x, w - x) / w, 0.0, 0.15)
    return side[None] * smooth((h - y) / h, 0.0, 0.2)[:, None]


def _corner_fade(landmarks: np.ndarray, points: np.ndarray) -> np.ndarray:
    right, left = landmarks[61, :2].astype(float), landmarks[291, :2].astype(float)
    half = max(float(np.linalg.norm(left - right)) / 2, 1.0)
    along = np.abs((points - (left + right) / 2) @ (left - right)) / (2 * half * half)
    return 1 - smooth(along, *CORNER_FADE)


def with_breath(fields: Fields, token: int, moves: np.ndarray) -> Fields:
    """Add a basis given over the whole grid [ROWS, COLS, 2] in cells."""
    basis = _cut(token, ALL, moves)
    return replace(fields, upper=[*fields.upper, basis]) if basis else fields
