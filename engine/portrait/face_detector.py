"""BlazeFace on LiteRT: a square picture -> boxes of faces with their eyes.

The short-range model (128x128, faces of a tenth of the picture and up). Knows nothing of scales
or windows: `faces.py` searches with it. Anchor layout as published for the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from engine.portrait.face_model import DETECTOR, network

SIDE = 128
# (px of the input a cell covers, anchors a cell): two feature maps, 512 + 384 anchors
LAYERS = ((8, 2), (16, 6))
RIGHT_EYE, LEFT_EYE, NOSE, MOUTH = 0, 1, 2, 3  # of the 6 key points; the person's own sides
OVERLAP = 0.3  # boxes that share more than this are the same face


@dataclass(frozen=True, slots=True)
class Detection:
    """In px of the picture it was found in: centre, side lengths, key points [6, 2], score 0..1."""

    center: np.ndarray
    size: np.ndarray
    points: np.ndarray
    score: float


@lru_cache(maxsize=1)
def anchors() -> np.ndarray:
    """Centres [896, 2] in fractions of the input; every anchor of a cell has the same centre."""
    grids = []
    for stride, count in LAYERS:
        cells = SIDE // stride
        y, x = np.mgrid[0:cells, 0:cells]
        centers = (np.stack([x.ravel(), y.ravel()], 1) + 0.5) / cells
        grids.append(np.repeat(centers, count, axis=0))
    return np.concatenate(grids).astype(np.float32)


def detect(bgr: np.ndarray, least_score: float, models: Path | None = None) -> list[Detection]:
    """Faces of a square uint8 BGR or BGRA picture, best first, overlapping ones merged."""
    small = cv2.resize(bgr, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    values = small[None, :, :, 2::-1].astype(np.float32) / 127.5 - 1.0
    regressed, logits = network(DETECTOR, models)(values)
    scores = 1.0 / (1.0 + np.exp(-np.clip(logits[0, :, 0], -80, 80)))
    keep = np.flatnonzero(scores >= least_score)
    # 16 numbers an anchor: centre, size, 6 points; all in px of the input from the anchor.
    values16 = regressed[0, keep].reshape(-1, 8, 2) / SIDE
    values16[:, 0] += anchors()[keep]
    values16[:, 2:] += anchors()[keep][:, None]
    values16 *= bgr.shape[0]
    found = [
        Detection(v[0], v[1], v[2:], float(s)) for v, s in zip(values16, scores[keep], strict=True)
    ]
    return merge(found)


def merge(found: list[Detection]) -> list[Detection]:
    """One detection a face: the score-weighted mean of those that overlap, with the best score."""
    rest = sorted(found, key=lambda d: -d.score)
    merged = []
    while rest:
        same = [d for d in rest if overlap(rest[0], d) > OVERLAP] or rest[:1]
        rest = [d for d in rest if not any(d is s for s in same)]
        weights = np.array([d.score for d in same])
        weights /= weights.sum()
        merged.append(
            Detection(
                np.tensordot(weights, np.stack([d.center for d in same]), 1),
                np.tensordot(weights, np.stack([d.size for d in same]), 1),
                np.tensordot(weights, np.stack([d.points for d in same]), 1),
                same[0].score,
            )
        )
    return merged


def overlap(a: Detection, b: Detection) -> float:
    """Shared area over joint area."""
    low = np.maximum(a.center - a.size / 2, b.center - b.size / 2)
    high = np.minimum(a.center + a.size / 2, b.center + b.size / 2)
    shared = float(np.prod(np.maximum(high - low, 0)))
    joint = float(np.prod(np.maximum(a.size, 0)) + np.prod(np.maximum(b.size, 0))) - shared
    return shared / joint if joint > 0 else 0.0
