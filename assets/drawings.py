"""Our own characters, drawn by program: people and mascots on one face, each with its own look.

Light comes from the upper left. All measures in u (`airbrush.py`), symmetric about x = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import airbrush as ab
import numpy as np
from airbrush import Colour, Points, Sheet, ellipse, flipped, mirrored, shape, soft, stroke

WHITE: Colour = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Look:
    """Colours and proportions of one character; the hair and the ears are drawn by functions."""

    skin: Colour
    skin_shade: Colour
    blush: Colour
    lips: Colour
    hair: Colour
    hair_shade: Colour
    hair_light: Colour
    iris: Colour
    iris_dark: Colour
    cloth: Colour
    cloth_shade: Colour
    collar: Colour
    brows: Colour
    back: tuple[Colour, Colour, Colour]  # top, bottom, glow
    jaw: float = 1.0  # width of the jaw
    eye: float = 1.0  # size of the eyes
    brow_width: float = 0.17
    neck: float = 0.86
    shoulders: float = 1.0
    lashes: float = 0.05
    back_hair: Callable[[Sheet, Look], None] | None = None
    front_hair: Callable[[Sheet, Look], None] | None = None
    ears: Callable[[Sheet, Look], None] | None = None
    nose: Callable[[Sheet, Look], None] | None = None


def dark(colour: Colour, share: float) -> Colour:
    return tuple(int(c * share) for c in colour)  # type: ignore[return-value]


def body(sheet: Sheet, look: Look) -> None:
    """Cloth with a round neckline; lies over the neck."""
    w, n = look.shoulders, look.neck
    torso = shape(mirrored([(0, 4.57), (0.62, 4.41), (n * 1.22, 3.85), (n * 1.36, 3.53),
                            (1.75 * w, 3.83), (2.6 * w, 4.21), (3.3 * w, 4.90), (3.7 * w, 6.15),
                            (3.85 * w, 8.6), (0, 8.9)]))  # fmt: skip
    sheet.paint(soft(ab.moved(torso, 0.0, -0.1), 0.12) * neck_shape(look), look.skin_shade, 0.7)
    sheet.paint(torso, look.cloth)
    sheet.shade(torso, look.cloth_shade, -0.3, -0.2, 0.5, 0.85)
    sheet.shade(torso, WHITE, 0.3, 0.3, 0.4, 0.18)
    for side in (1, -1):
        sleeve = [(side * 2.62 * w, 5.45), (side * 2.5 * w, 6.35), (side * 2.55 * w, 8.6)]
        sheet.paint(soft(stroke(sleeve, 0.5, 0.1), 0.14) * torso, look.cloth_shade, 0.55)
        sheet.paint(soft(stroke(sleeve, 0.07, 0.2), 0.02) * torso, look.cloth_shade, 0.8)
        fold = [(side * 2.4 * w, 5.65), (side * 1.7 * w, 6.15), (side * 0.9, 6.30)]
        sheet.paint(soft(stroke(fold, 0.2), 0.1) * torso, look.cloth_shade, 0.4)
    band = stroke(_neckline(n), 0.26, 0.9)
    sheet.paint(soft(ab.moved(band, 0.02, 0.08), 0.06) * torso, look.cloth_shade, 0.8)
    sheet.paint(band, look.collar)
    sheet.shade(band, dark(look.collar, 0.6), 0, -0.05, 0.06, 0.5)


def _neckline(n: float) -> Points:
    half = [(n * 1.4, 3.57), (n * 1.24, 3.91), (0.64, 4.47)]
    return [*flipped(half), (0, 4.63), *reversed(half)]


def neck_shape(look: Look) -> np.ndarray:
    n = look.neck
    return shape(mirrored([(0, 1.8), (n, 1.9), (n * 0.96, 2.8), (n * 1.02, 3.35), (n * 1.2, 3.85),
                           (n * 1.2, 4.55), (0, 5.05)]))  # fmt: skip


def neck(sheet: Sheet, look: Look) -> None:
    skin = neck_shape(look)
    sheet.paint(skin, look.skin)
    sheet.shade(skin, look.skin_shade, -0.12, -0.05, 0.2, 0.8)
    chin_shadow = shape(mirrored([(0, 2.0), (1.5, 2.0), (1.25, 3.0), (0.62, 3.42), (0, 3.5)]))
    sheet.paint(soft(ab.moved(chin_shadow, 0.1, 0.1), 0.13) * skin, look.skin_shade, 0.85)
    for side in (1, -1):
        bone = [(side * 0.2, 4.17), (side * 0.7, 3.91), (side * 1.2, 3.89)]
        sheet.paint(soft(stroke(bone, 0.1), 0.05) * skin, look.skin_shade, 0.45)


def human_ears(sheet: Sheet, look: Look) -> None:
    for side in (1, -1):
        outer = shape([(side * 1.75, -0.25), (side * 2.12, -0.36), (side * 2.3, 0.05),
                       (side * 2.14, 0.62), (side * 1.9, 0.98), (side * 1.7, 0.7)])  # fmt: skip
        sheet.paint(outer, look.skin)
        sheet.shade(outer, look.skin_shade, 0.0, -0.05, 0.12, 0.7)
        inner = shape([(side * 1.86, 0.0), (side * 2.08, -0.1), (side * 2.12, 0.2),
                       (side * 1.98, 0.62), (side * 1.86, 0.55)])  # fmt: skip
        sheet.paint(soft(inner, 0.05) * outer, look.skin_shade, 0.8)


def head_outline(look: Look) -> Points:
    j = look.jaw
    return mirrored([(0, -2.45), (0.95, -2.3), (1.68, -1.55), (1.9, -0.55), (1.88, 0.4),
                     (1.72 * (0.6 + 0.4 * j), 1.25), (1.32 * j, 2.05), (0.72 * j, 2.6),
                     (0, 2.8)])  # fmt: skip


def head(sheet: Sheet, look: Look) -> np.ndarray:
    skin = shape(head_outline(look))
    sheet.paint(skin, look.skin)
    sheet.shade(skin, look.skin_shade, -0.28, -0.22, 0.42, 0.72)
    sheet.shade(skin, WHITE, 0.35, 0.3, 0.5, 0.2)
    for side, strength in ((1, 0.5), (-1, 0.42)):
        sheet.paint(soft(ellipse(side * 1.18, 1.12, 0.42, 0.3), 0.22) * skin, look.blush, strength)
    sheet.paint(soft(ellipse(-0.25, -1.2, 0.8, 0.4), 0.4) * skin, WHITE, 0.22)
    sheet.paint(soft(ellipse(0, 2.36, 0.35, 0.18), 0.14) * skin, WHITE, 0.16)
    return skin


def nose(sheet: Sheet, look: Look) -> None:
    side = [(0.2, -0.15), (0.26, 0.45), (0.36, 0.85)]
    sheet.paint(soft(stroke(side, 0.24, 0.3), 0.09), look.skin_shade, 0.5)
    sheet.paint(soft(stroke(flipped(side), 0.18, 0.3), 0.09), look.skin_shade, 0.22)
    ball = shape(mirrored([(0, 0.62), (0.24, 0.72), (0.42, 0.98), (0.33, 1.14), (0.15, 1.16),
                           (0, 1.22)]))  # fmt: skip
    sheet.paint(soft(ab.moved(ball, 0.04, 0.1), 0.1), look.skin_shade, 0.55)
    sheet.paint(soft(ball, 0.05), look.skin, 0.9)
    sheet.paint(soft(ball, 0.08), look.blush, 0.25)
    sheet.shade(ball, look.skin_shade, -0.04, -0.08, 0.1, 0.55)
    for s in (1, -1):
        sheet.paint(soft(ellipse(s * 0.17, 1.11, 0.085, 0.04, s * -14), 0.02),
                    dark(look.skin_shade, 0.55), 0.8)  # fmt: skip
    sheet.paint(soft(stroke([(-0.04, -0.1), (-0.05, 0.3), (-0.05, 0.7)], 0.14), 0.06), WHITE, 0.25)
    sheet.paint(soft(ellipse(-0.08, 0.86, 0.1, 0.07), 0.04), WHITE, 0.6)


def mouth(sheet: Sheet, look: Look) -> None:
    upper = shape(mirrored([(0, 1.64), (0.16, 1.575), (0.42, 1.66), (0.7, 1.765), (0.36, 1.785),
                            (0, 1.8)]))  # fmt: skip
    lower = shape(mirrored([(0, 1.79), (0.36, 1.775), (0.68, 1.765), (0.46, 1.955), (0.2, 2.04),
                            (0, 2.055)]))  # fmt: skip
    sheet.paint(soft(ellipse(0, 2.15, 0.38, 0.07), 0.07), look.skin_shade, 0.6)
    sheet.paint(soft(stroke([(0, 1.26), (0, 1.4), (0, 1.54)], 0.16, 0.5), 0.06),
                look.skin_shade, 0.3)  # fmt: skip
    sheet.paint(upper, dark(look.lips, 0.84))
    sheet.paint(lower, look.lips)
    sheet.shade(lower, dark(look.lips, 0.72), 0, -0.05, 0.06, 0.5)
    sheet.paint(soft(ellipse(-0.1, 1.9, 0.22, 0.045), 0.035), WHITE, 0.5)
    line = [(-0.74, 1.745), (-0.4, 1.79), (0, 1.8), (0.4, 1.79), (0.74, 1.745)]
    sheet.paint(stroke(line, 0.055, 0.3), dark(look.lips, 0.42))
    for s in (1, -1):
        sheet.paint(soft(ellipse(s * 0.78, 1.76, 0.07, 0.09), 0.05), look.skin_shade, 0.7)


def eye_outline(side: int, size: float) -> Points:
    """From the inner corner over the upper lid; `side` 1 is the picture's right."""
    shape_u = [(-0.47, 0.08), (-0.3, -0.2), (0.0, -0.33), (0.3, -0.24), (0.5, 0.0),
               (0.28, 0.2), (0.0, 0.26), (-0.28, 0.2)]  # fmt: skip
    return [(side * (0.93 + x * size), 0.02 + y * size) for x, y in shape_u]


def eye(sheet: Sheet, look: Look, side: int) -> None:
    size = look.eye
    outline = eye_outline(side, size)
    white = shape(outline)
    sheet.paint(soft(ellipse(side * 0.93, -0.02, 0.66 * size, 0.46 * size), 0.14),
                look.skin_shade, 0.42)  # fmt: skip
    sheet.paint(white, (250, 248, 245))
    x, y, r = side * 0.92, -0.02, 0.27 * size
    iris = ellipse(x, y, r, r) * white
    sheet.paint(iris, look.iris_dark)
    sheet.paint(soft(ellipse(x, y, r * 0.82, r * 0.82), 0.02) * white, look.iris, 0.9)
    sheet.paint(soft(ellipse(x + 0.02, y + r * 0.45, r * 0.6, r * 0.4), 0.04) * iris, WHITE, 0.35)
    sheet.paint(ellipse(x, y, r * 0.45, r * 0.45) * white, (16, 13, 18))
    sheet.paint(white * (1 - soft(ab.moved(white, 0.0, 0.12), 0.06)), (60, 50, 70), 0.6)
    sheet.paint(soft(ellipse(x - 0.1, y - 0.1, 0.07 * size, 0.07 * size), 0.008), WHITE)
    sheet.paint(soft(ellipse(x + 0.1, y + 0.1, 0.035 * size, 0.035 * size), 0.01), WHITE, 0.7)
    upper, lower = outline[:5], [outline[4], *outline[5:], outline[0]]
    lash = dark(look.hair_shade, 0.35)
    sheet.paint(stroke(upper, 0.055 + look.lashes, 0.35), lash)
    sheet.paint(soft(stroke(lower, 0.035, 0.3), 0.01), dark(look.skin_shade, 0.62), 0.8)
    crease = [(px, py - 0.14 * size) for px, py in outline[:5]]
    sheet.paint(soft(stroke(crease, 0.045), 0.02), dark(look.skin_shade, 0.7), 0.6)
    if look.lashes > 0.03:
        tip = [outline[3], outline[4], (outline[4][0] + side * 0.13, outline[4][1] - 0.12)]
        sheet.paint(stroke(tip, 0.09, 0.15), lash)


def brow(sheet: Sheet, look: Look, side: int) -> None:
    line = [(side * 0.42, -0.62), (side * 0.85, -0.76), (side * 1.25, -0.72), (side * 1.52, -0.55)]
    sheet.paint(soft(stroke(line, look.brow_width, 0.3), 0.018), look.brows, 0.95)


def draw(look: Look) -> np.ndarray:
    """One character, [1360, 880, 3] uint8 BGR."""
    sheet = Sheet(*look.back)
    if look.back_hair:
        look.back_hair(sheet, look)
    neck(sheet, look)
    body(sheet, look)
    (look.ears or human_ears)(sheet, look)
    head(sheet, look)
    for side in (1, -1):
        eye(sheet, look, side)
        brow(sheet, look, side)
    (look.nose or nose)(sheet, look)
    mouth(sheet, look)
    if look.front_hair:
        look.front_hair(sheet, look)
    return sheet.bgr()
