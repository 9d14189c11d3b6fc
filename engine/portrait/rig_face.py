"""Bases of brows and cheeks, in units of S, and all bases of a face in one array.

Knows nothing of pixels or of how coefficients are driven.
"""

from __future__ import annotations

import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.headframe import HeadFrame
from engine.portrait.mesh import (
    EYES,
    LEFT_BROW,
    LEFT_EYE_LOWER,
    LEFT_EYE_UPPER,
    LOWER_RINGS,
    OVAL,
    RIGHT_BROW,
    RIGHT_EYE_LOWER,
    RIGHT_EYE_UPPER,
    UPPER_RINGS,
    VERTICES,
)
from engine.portrait.rig import Mesh
from engine.portrait.rig_lips import lip_bases

FOREHEAD_STILL = (10, 338, 109)


def brow_bases(mesh: Mesh, brow: tuple[int, ...], inner: int, outer: int, side: int) -> dict:
    """Name without its side -> [468, 3]. `side` 1 is the person's left."""
    v = mesh.v
    width = v[inner, 0] - v[outer, 0]
    t = {i: float(np.clip((v[i, 0] - v[outer, 0]) / width, 0, 1)) for i in brow}  # 1 at the nose
    still = (*np.flatnonzero(v[:, 1] > 0.22).tolist(), *EYES, *FOREHEAD_STILL)

    def lifted(move: dict[int, tuple[float, float]]) -> np.ndarray:
        return mesh.solve({i: np.array([x, y, 0.0]) for i, (x, y) in move.items()}, still)

    return {
        "browInner": lifted({i: (0.0, -0.085 * t[i] ** 1.2) for i in brow}),
        "browOuter": lifted({i: (0.0, -0.075 * (1 - t[i]) ** 0.8) for i in brow}),
        "browDown": lifted({i: (-side * 0.03 * t[i], 0.025 + 0.025 * t[i]) for i in brow}),
    }


def cheek_squint(mesh: Mesh, lower_lid: tuple[int, ...], cheek: tuple[int, ...]) -> np.ndarray:
    """The lower lid rises in its middle, the cheek below it follows."""
    goals = {
        i: np.array([0.0, -0.018 * (1 - (2 * k / 8 - 1) ** 2), 0.0])
        for k, i in enumerate(lower_lid)
    }
    goals |= {i: np.array([0.0, -0.03, 0.0]) for i in cheek}
    lips = {i for ring in UPPER_RINGS + LOWER_RINGS for i in ring}
    above = np.flatnonzero(mesh.v[:, 1] < -0.12).tolist()
    uppers = RIGHT_EYE_UPPER + LEFT_EYE_UPPER
    return mesh.solve(goals, (*above, *uppers, *lips, *OVAL, 1, 4, 5, 6))


def vertex_bases(frame: HeadFrame) -> tuple[list[int], np.ndarray]:
    """Token indices [K] and bases [K, 468, 3] in canvas px per unit of the coefficient."""
    mesh = Mesh(frame)
    bases = lip_bases(mesh)
    for suffix, side, brow, inner, outer, lid, cheek in (
        ("R", -1, RIGHT_BROW, 107, 70, RIGHT_EYE_LOWER, (50, 101, 118, 117)),
        ("L", 1, LEFT_BROW, 336, 300, LEFT_EYE_LOWER, (280, 330, 347, 346)),
    ):
        brows = brow_bases(mesh, brow, inner, outer, side)
        bases |= {name + suffix: basis for name, basis in brows.items()}
        bases["cheekSquint" + suffix] = cheek_squint(mesh, lid, cheek)
    stack = np.stack(list(bases.values())) @ frame.axes.T * frame.s
    assert stack.shape == (len(bases), VERTICES, 3)
    return [INDEX[name] for name in bases], stack.astype(np.float32)
