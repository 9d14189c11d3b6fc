"""The 478 landmarks of a frame: bases, then the head's turn, as the grid moves them.

Knows nothing of pixels' colours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.grid import to_cells, to_px
from engine.portrait.head import Head
from engine.portrait.mesh import VERTICES
from engine.portrait.sampling import read_rows

JAW = INDEX["jawOpen"]


@dataclass(frozen=True, slots=True)
class Pose:
    """One frame: its token, all landmarks [478, 2] px, and the anchors of skull and jaw: the
    landmarks without lip shapes (`skull`) and with the jaw alone (`jaw`)."""

    token: np.ndarray
    points: np.ndarray
    skull: np.ndarray
    jaw: np.ndarray


class Points:
    def __init__(
        self, landmarks: np.ndarray, tokens: list[int], bases: np.ndarray, head: Head
    ) -> None:
        self._rest = landmarks[:, :2].astype(np.float32)
        self._tokens = np.array(tokens)
        self._bases = np.ascontiguousarray(bases[:, :, :2].reshape(len(tokens), -1))
        self._jaw = bases[tokens.index(JAW), :, :2]
        cells = to_cells(self._rest).astype(np.float32)
        x, y = cells[None, :, 0], cells[None, :, 1]
        self._follow = read_rows(head.follow, x, y)[0]
        self._depth = read_rows(head.depth, x, y)[0]
        self._pivot = head.pivot

    def pose(self, token: np.ndarray, turn: np.ndarray | None) -> Pose:
        """`turn` as `head.head_matrix` gives it."""
        face, jaw = self._rest.copy(), self._rest.copy()
        face[:VERTICES] += (token[self._tokens] @ self._bases).reshape(VERTICES, 2)
        jaw[:VERTICES] += float(token[JAW]) * self._jaw
        turned = [self._turned(p, turn) for p in (face, self._rest, jaw)]
        return Pose(token, *turned)

    def _turned(self, px: np.ndarray, turn: np.ndarray | None) -> np.ndarray:
        if turn is None:
            return px
        cells = to_cells(px)
        at = np.column_stack([cells - self._pivot, self._depth, np.ones(len(px))])
        return to_px(cells + self._follow[:, None] * (at @ turn.T)).astype(np.float32)
