"""Bases of jaw and lips, in units of S. Numbers found by eye on two dozen pictures.

Knows nothing of pixels or of how coefficients are driven.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.portrait.mesh import (
    CHIN,
    CORNERS,
    CORNERS_LEFT,
    CORNERS_RIGHT,
    LOWER_INNER,
    LOWER_LIP,
    LOWER_RINGS,
    NOSE,
    OVAL,
    UPPER_INNER,
    UPPER_LIP,
    UPPER_RINGS,
)
from engine.portrait.rig import PINNED, Goals, Mesh, MouthShape

JAW_DEG = 24.0  # about the ear axis at jawOpen = 1
# How much of the jaw's turn the skin beside and below the mouth follows: (vertices, share).
JAW_SHARES = (
    ((149, 378), 0.95), ((150, 379), 0.85), ((136, 365), 0.70), ((172, 397), 0.50),
    ((58, 288), 0.28), ((132, 361), 0.12), ((57, 287), 0.36), ((186, 410), 0.24),
    ((92, 322), 0.14), ((216, 436), 0.24), ((207, 427), 0.18), ((212, 432), 0.42),
    ((214, 434), 0.30), ((43, 273), 0.52), ((202, 422), 0.62), ((206, 426), 0.08),
    ((205, 425), 0.08), ((192, 416), 0.18), ((187, 411), 0.08),
)  # fmt: skip
NOSE_BASE = (1, 4, 5, 195, 197)
INSIDE = range(1, 10)  # ring positions between the corners
# Outer ring to lip line: share of a lip's thickening, of its fold inwards, of the seal.
THICKEN = (1.0, 0.7, 0.35, 0.0)
FOLD = (0.42, 0.42, 0.40, 0.0)
SEAL_FOLLOWS = (0.35, 0.6, 0.85, 1.0)

LipMove = Callable[[float, int], tuple[float, float, float]]  # (t, ring) -> displacement


def arc(t: float, power: float = 1.0) -> float:
    """1 in the middle of the lips, 0 at the corners."""
    return max(0.0, 1 - t * t) ** power


def lip_bases(mesh: Mesh) -> dict[str, np.ndarray]:
    """Name -> [468, 3] displacement at coefficient 1."""
    mouth = MouthShape(mesh.v)
    jaw = jaw_open(mesh, mouth)
    bases = {"jawOpen": jaw, "mouthClose": close(mesh, jaw), "seal": seal(mesh, mouth)}
    bases |= rounding(mesh, mouth)
    for side, suffix in ((1, "L"), (-1, "R")):
        bases |= {name + suffix: b for name, b in spreading(mesh, mouth, side).items()}
    bases |= separate_lips(mesh, mouth)
    bases["mouthRollUpper"] = roll(mesh, UPPER_RINGS, UPPER_INNER)
    bases["mouthRollLower"] = roll(mesh, LOWER_RINGS, LOWER_INNER)
    bases["mouthShrug"] = shrug(mesh)
    return bases


def jaw_weight(mesh: Mesh, mouth: MouthShape) -> np.ndarray:
    """[468] share of the jaw's turn: lower lip 1 in the middle, 0.4 at the corners."""
    share: dict[int, float] = dict.fromkeys(LOWER_LIP, 1.0) | dict.fromkeys(CHIN, 1.0)
    for ring in LOWER_RINGS:
        for i in ring[1:-1]:
            share[i] = 0.40 + 0.60 * max(0.0, 1 - abs(mouth.t(i)) ** 2.6) ** 0.6
    for i in UPPER_LIP:
        share[i] = 0.36 * (1 - max(0.0, 1 - abs(mouth.t(i)) ** 2.6) ** 0.6) ** 1.5
    share |= dict.fromkeys(CORNERS, 0.40)
    for vertices, amount in JAW_SHARES:
        share |= dict.fromkeys(vertices, amount)
    goals = {i: np.array([w, 0.0, 0.0]) for i, w in share.items()}
    return mesh.solve(goals, PINNED + NOSE)[:, 0].clip(0, 1)


def jaw_open(mesh: Mesh, mouth: MouthShape) -> np.ndarray:
    """The jaw's turn about the ear axis; the corners also come in by 4.5 % of S."""
    v = mesh.v
    hinge = np.array([0.0, (v[234, 1] + v[454, 1]) / 2 + 0.05, (v[234, 2] + v[454, 2]) / 2])
    arm = v - hinge
    sin, cos = np.sin(np.deg2rad(JAW_DEG)), np.cos(np.deg2rad(JAW_DEG))
    turn = np.zeros_like(v)
    turn[:, 1] = -sin * arm[:, 2] - (1 - cos) * arm[:, 1]
    turn[:, 2] = sin * arm[:, 1] - (1 - cos) * arm[:, 2]
    lips = {i for ring in UPPER_RINGS + LOWER_RINGS for i in ring}
    inward = {i: np.array([-0.045 * mouth.t(i) * abs(mouth.t(i)), 0.0, 0.0]) for i in lips}
    pinned = PINNED + NOSE + OVAL + CHIN
    return turn * jaw_weight(mesh, mouth)[:, None] + mesh.solve(inward, pinned)


def close(mesh: Mesh, jaw: np.ndarray) -> np.ndarray:
    """Cancels exactly the gap that `jaw` opens: 30 % from above, 70 % from below."""
    gap = jaw[list(LOWER_INNER)] - jaw[list(UPPER_INNER)]
    goals = {i: np.zeros(3) for i in CORNERS}
    for upper, lower in zip(UPPER_RINGS, LOWER_RINGS, strict=True):
        for k in INSIDE:
            goals[upper[k]], goals[lower[k]] = gap[k] * 0.30, -gap[k] * 0.70
    return mesh.solve(goals, (*PINNED, *NOSE, *OVAL, 152, 175, 199, 148, 377))


def seal(mesh: Mesh, mouth: MouthShape) -> np.ndarray:
    """Closes the gap that the picture itself has: 40 % from above, 60 % from below."""
    goals = {i: np.zeros(3) for i in CORNERS}
    for upper, lower, follows in zip(UPPER_RINGS, LOWER_RINGS, SEAL_FOLLOWS, strict=True):
        for k in INSIDE:
            goals[upper[k]] = mouth.gap[k] * 0.40 * follows
            goals[lower[k]] = -mouth.gap[k] * 0.60 * follows
    return mesh.solve(goals, PINNED + NOSE + OVAL)


def move_lips(
    mesh: Mesh,
    mouth: MouthShape,
    upper: LipMove,
    lower: LipMove,
    corner: Callable[[int], tuple[float, float, float]],
    pinned: tuple[int, ...],
    also: Goals | None = None,
) -> np.ndarray:
    """Both lips by functions of (t, ring), corners by side -1 or 1, scaled to this mouth."""
    goals: Goals = {}
    for ring in range(4):
        for k in INSIDE:
            u, w = UPPER_RINGS[ring][k], LOWER_RINGS[ring][k]
            goals[u] = np.array(upper(mouth.t(u), ring)) * mouth.scale
            goals[w] = np.array(lower(mouth.t(w), ring)) * mouth.scale
    for side, vertices in ((-1, CORNERS_RIGHT), (1, CORNERS_LEFT)):
        goals |= {i: np.array(corner(side)) * mouth.scale for i in vertices}
    return mesh.solve(goals | (also or {}), pinned + PINNED + NOSE_BASE)


def rounding(mesh: Mesh, mouth: MouthShape) -> dict[str, np.ndarray]:
    """Pucker brings the lips together and forward; funnel does so around an opening."""
    v, flat = mesh.v, mouth.flatten
    up = 0.12 * (v[UPPER_RINGS[0][5], 1] - v[UPPER_INNER[5], 1])  # lips thicken by 12 %
    low = 0.12 * (v[LOWER_RINGS[0][5], 1] - v[LOWER_INNER[5], 1])
    pucker = move_lips(
        mesh,
        mouth,
        lambda t, r: (-0.125 * t, flat(t) + up * arc(t) * THICKEN[r], -0.07),
        lambda t, r: (-0.125 * t, flat(t) + low * arc(t) * THICKEN[r], -0.07),
        lambda side: (-0.125 * side, flat(side), -0.04),
        OVAL,
    )
    funnel = move_lips(
        mesh,
        mouth,
        lambda t, r: (
            -0.085 * t,
            0.6 * flat(t) - 0.036 * arc(t, 0.6) + 0.5 * up * arc(t) * THICKEN[r],
            -0.06,
        ),
        lambda t, r: (
            -0.085 * t,
            0.6 * flat(t) + 0.045 * arc(t, 0.6) + 0.5 * low * arc(t) * THICKEN[r],
            -0.06,
        ),
        lambda side: (-0.085 * side, 0.6 * flat(side) + 0.008, -0.03),
        OVAL,
    )
    return {"mouthPucker": pucker, "mouthFunnel": funnel}


def spreading(mesh: Mesh, mouth: MouthShape, side: int) -> dict[str, np.ndarray]:
    """Smile, stretch and frown of one half; `side` 1 is the person's left."""

    def near(t: float) -> float:  # 0 on the other half, 1 at this corner
        x = float(np.clip((side * t + 0.35) / 1.35, 0, 1))
        return x * x * (3 - 2 * x)

    def at_corner(x: float, y: float, z: float) -> Callable[[int], tuple[float, float, float]]:
        return lambda s: (side * x, y, z) if s == side else (0.0, 0.0, 0.0)

    low_cheek, mid_cheek, fold = (425, 411, 427) if side > 0 else (205, 187, 207)
    cheeks = {
        low_cheek: np.array([side * 0.02, -0.035, -0.015]),
        mid_cheek: np.array([side * 0.05, -0.04, 0.0]),
        fold: np.array([side * 0.035, -0.04, -0.01]),
    }

    def smile(t: float, lift: float, middle: float) -> tuple[float, float, float]:
        return (side * 0.055 * near(t), -lift * near(t) ** 1.5 - middle * arc(t), 0.015 * near(t))

    return {
        "mouthSmile": move_lips(
            mesh,
            mouth,
            lambda t, r: smile(t, 0.055, 0.004 * (r == 0)),
            lambda t, r: smile(t, 0.050, 0.004 * (r != 0)),
            at_corner(0.075, -0.075, 0.03),
            (152, 148, 377, 175, 199),
            cheeks,
        ),
        "mouthStretch": move_lips(
            mesh,
            mouth,
            lambda t, r: (side * 0.05 * near(t), 0.006 * near(t), 0.01),
            lambda t, r: (side * 0.05 * near(t), 0.012 * near(t), 0.01),
            at_corner(0.07, 0.012, 0.02),
            (152,),
        ),
        "mouthFrown": move_lips(
            mesh,
            mouth,
            lambda t, r: (0.0, 0.035 * near(t) ** 1.5, 0.0),
            lambda t, r: (0.0, 0.035 * near(t) ** 1.5, 0.0),
            at_corner(0.0, 0.055, 0.0),
            (152,),
        ),
    }


def separate_lips(mesh: Mesh, mouth: MouthShape) -> dict[str, np.ndarray]:
    def still(t: float, ring: int) -> tuple[float, float, float]:
        return (0.0, 0.0, 0.0)

    return {
        "upperLipUp": move_lips(
            mesh,
            mouth,
            lambda t, r: (0.0, -0.045 * arc(t, 0.7), -0.01),
            still,
            lambda side: (0.0, -0.006, 0.0),
            (*OVAL, 152, 199),
        ),
        "lowerLipDown": move_lips(
            mesh,
            mouth,
            still,
            lambda t, r: (0.0, 0.05 * arc(t, 0.7), -0.005),
            lambda side: (0.0, 0.006, 0.0),
            OVAL + NOSE,
        ),
    }


def roll(mesh: Mesh, rings: tuple[tuple[int, ...], ...], line: tuple[int, ...]) -> np.ndarray:
    """The red of one lip folds in toward the lip line."""
    goals = {i: np.zeros(3) for i in CORNERS + UPPER_INNER + LOWER_INNER}
    for ring, share in zip(rings, FOLD, strict=True):
        for k in INSIDE:
            goals[ring[k]] = (mesh.v[line[k]] - mesh.v[ring[k]]) * share * [1, 1, 0]
    return mesh.solve(goals, PINNED + NOSE + OVAL)


def shrug(mesh: Mesh) -> np.ndarray:
    """The chin's muscle lifts both lips."""
    hard_chin = (152, 148, 377, 176, 400)
    lift = dict.fromkeys(set(CHIN) - set(hard_chin), (-0.05, 0.0)) | {152: (-0.02, 0.0)}
    lift |= dict.fromkeys(LOWER_LIP, (-0.045, -0.01)) | dict.fromkeys(UPPER_LIP, (-0.022, 0.0))
    lift |= dict.fromkeys(CORNERS, (-0.008, 0.0))
    return mesh.solve({i: np.array([0.0, y, z]) for i, (y, z) in lift.items()}, PINNED + NOSE)
