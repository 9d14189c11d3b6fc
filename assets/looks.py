"""The looks of our own drawings: hair, ears and colours of each character."""

from __future__ import annotations

import airbrush as ab
from airbrush import Points, Sheet, flipped, mirrored, shape, soft, stroke
from drawings import WHITE, Look, dark


def _hair(sheet: Sheet, look: Look, outline: Points, strands: list[Points]) -> None:
    """A mass of hair: filled, shaded, with strands of light and dark, shadow on what is below."""
    mass = shape(outline)
    sheet.paint(soft(ab.moved(mass, 0.06, 0.14), 0.1), dark(look.skin_shade, 0.75), 0.45)
    sheet.paint(mass, look.hair)
    sheet.shade(mass, look.hair_shade, -0.3, -0.3, 0.35, 0.85)
    for i, strand in enumerate(strands):
        light = i % 2 == 0
        colour, width = (look.hair_light, 0.2) if light else (look.hair_shade, 0.14)
        sheet.paint(soft(stroke(strand, width), 0.045) * mass, colour, 0.6 if light else 0.7)
    sheet.shade(mass, look.hair_light, 0.12, 0.14, 0.15, 0.4)


def bob_back(sheet: Sheet, look: Look) -> None:
    outline = mirrored([(0, -3.05), (1.3, -2.75), (2.25, -1.6), (2.55, 0.0), (2.6, 1.6),
                        (2.42, 2.75), (1.9, 3.05), (1.2, 2.6), (0, 2.4)])  # fmt: skip
    mass = shape(outline)
    sheet.paint(soft(ab.moved(mass, 0.15, 0.15), 0.25), dark(look.back[1], 0.5), 0.5)
    sheet.paint(mass, look.hair_shade)
    sheet.shade(mass, look.hair, 0.3, 0.3, 0.3, 0.8)


def bob_front(sheet: Sheet, look: Look) -> None:
    right = [(-0.55, -2.85), (0.6, -3.05), (1.75, -2.55), (2.42, -1.3), (2.62, 0.3), (2.6, 1.9),
             (2.3, 2.95), (1.95, 2.7), (2.02, 1.6), (1.88, 0.4), (1.72, -0.6), (1.2, -1.25),
             (0.3, -1.75), (-0.5, -2.1)]  # fmt: skip
    strands_r: list[Points] = [
        [(-0.2, -2.6), (0.9, -2.5), (1.8, -1.6), (2.2, -0.2)],
        [(-0.3, -2.35), (0.8, -2.0), (1.7, -1.1), (2.05, 0.2)],
        [(2.1, -0.8), (2.42, 0.6), (2.36, 2.2)],
        [(1.9, -0.3), (2.2, 1.0), (2.14, 2.5)],
    ]
    left = [(-0.35, -2.9), (-1.2, -2.85), (-2.05, -2.1), (-2.5, -0.8), (-2.6, 0.8), (-2.5, 2.3),
            (-2.2, 2.98), (-1.95, 2.6), (-2.02, 1.4), (-1.86, 0.2), (-1.72, -0.7), (-1.35, -1.5),
            (-0.75, -2.1)]  # fmt: skip
    strands_l: list[Points] = [
        [(-0.6, -2.65), (-1.5, -2.2), (-2.05, -1.1), (-2.2, 0.2)],
        [(-0.75, -2.35), (-1.5, -1.7), (-1.95, -0.6), (-2.1, 0.6)],
        [(-2.1, -0.6), (-2.38, 0.8), (-2.28, 2.3)],
        [(-2.3, -0.9), (-2.48, 0.4), (-2.42, 1.8)],
    ]
    _hair(sheet, look, left, strands_l)
    _hair(sheet, look, right, strands_r)


def short_back(sheet: Sheet, look: Look) -> None:
    mass = shape(mirrored([(0, -3.0), (1.3, -2.7), (2.05, -1.6), (2.1, -0.4), (1.9, 0.3),
                           (0, 0.5)]))  # fmt: skip
    sheet.paint(soft(ab.moved(mass, 0.12, 0.12), 0.2), dark(look.back[1], 0.5), 0.45)
    sheet.paint(mass, look.hair_shade)


def quiff(sheet: Sheet, look: Look) -> None:
    outline = [(-1.92, -0.35), (-2.12, -1.2), (-1.9, -2.2), (-1.1, -2.95), (0.0, -3.32),
               (1.2, -3.3), (1.9, -2.85), (2.2, -2.0), (2.1, -1.0), (1.92, -0.35),
               (1.76, -0.95), (1.62, -1.5), (1.1, -1.78), (0.3, -1.7), (-0.6, -1.9),
               (-1.25, -1.75), (-1.65, -1.25), (-1.78, -0.8)]  # fmt: skip
    strands: list[Points] = [
        [(-1.5, -1.9), (-0.5, -2.75), (0.8, -2.95), (1.7, -2.5)],
        [(-1.2, -1.85), (-0.2, -2.35), (0.9, -2.5), (1.75, -2.1)],
        [(-1.75, -1.2), (-1.5, -2.15), (-0.7, -2.8)],
        [(-0.6, -2.0), (0.4, -2.1), (1.2, -2.2), (1.75, -1.7)],
        [(-0.9, -2.75), (0.2, -3.15), (1.3, -3.1)],
        [(1.85, -0.9), (1.98, -1.6), (1.7, -2.2)],
    ]
    _hair(sheet, look, outline, strands)


def elf_ears(sheet: Sheet, look: Look) -> None:
    for side in (1, -1):
        outer = shape([(side * 1.7, -0.35), (side * 2.3, -0.75), (side * 3.25, -1.45),
                       (side * 3.0, -0.45), (side * 2.35, 0.5), (side * 1.75, 0.8)])  # fmt: skip
        sheet.paint(soft(ab.moved(outer, 0.1, 0.1), 0.15), dark(look.back[1], 0.5), 0.4)
        sheet.paint(outer, look.skin)
        sheet.shade(outer, look.skin_shade, -0.08, -0.12, 0.16, 0.8)
        inner = shape([(side * 1.9, -0.15), (side * 2.4, -0.5), (side * 2.9, -0.98),
                       (side * 2.65, -0.3), (side * 2.15, 0.35)])  # fmt: skip
        sheet.paint(soft(inner, 0.07) * outer, look.blush, 0.75)


def antennas(sheet: Sheet, look: Look) -> None:
    for side in (1, -1):
        stalk = stroke([(side * 0.5, -2.35), (side * 0.75, -2.95), (side * 1.2, -3.5)], 0.2, 0.6)
        sheet.paint(stalk, look.skin)
        sheet.shade(stalk, look.skin_shade, -0.03, -0.03, 0.05, 0.9)
        ball = ab.ellipse(side * 1.25, -3.6, 0.27, 0.27)
        sheet.paint(soft(ab.ellipse(side * 1.25, -3.6, 0.5, 0.5), 0.2), look.hair_light, 0.5)
        sheet.paint(ball, look.hair)
        sheet.shade(ball, look.hair_shade, -0.07, -0.07, 0.09, 0.9)
        sheet.paint(soft(ab.ellipse(side * 1.25 - 0.09, -3.69, 0.08, 0.07), 0.03), WHITE, 0.9)
    spots = ((0.35, -1.75, 0.17), (-0.5, -1.55, 0.12), (0.85, -1.35, 0.1), (-0.05, -2.1, 0.13))
    for x, y, r in spots:
        sheet.paint(soft(ab.ellipse(x, y, r, r * 0.85), 0.03), look.skin_shade, 0.55)


def bear_ears(sheet: Sheet, look: Look) -> None:
    for side in (1, -1):
        outer = ab.ellipse(side * 1.5, -2.1, 0.82, 0.8)
        sheet.paint(soft(ab.moved(outer, 0.1, 0.1), 0.2), dark(look.back[1], 0.5), 0.4)
        sheet.paint(outer, look.skin)
        sheet.shade(outer, look.skin_shade, -0.14, -0.14, 0.2, 0.85)
        sheet.paint(soft(ab.ellipse(side * 1.5, -2.05, 0.46, 0.46), 0.08), look.blush, 0.85)


def bear_nose(sheet: Sheet, look: Look) -> None:
    """Muzzle and nose: painted over the face, under the mouth."""
    muzzle = shape(mirrored([(0, 0.42), (0.62, 0.62), (1.12, 1.2), (1.16, 1.8), (0.78, 2.3),
                             (0, 2.46)]))  # fmt: skip
    sheet.paint(soft(ab.moved(muzzle, 0.05, 0.1), 0.12), look.skin_shade, 0.55)
    sheet.paint(soft(muzzle, 0.05), look.hair_light)
    sheet.shade(muzzle, look.skin_shade, -0.1, -0.16, 0.22, 0.4)
    nose = shape(mirrored([(0, 0.56), (0.34, 0.6), (0.46, 0.82), (0.24, 1.08), (0, 1.18)]))
    sheet.paint(soft(ab.moved(nose, 0.02, 0.06), 0.05), look.skin_shade, 0.6)
    sheet.paint(nose, (46, 32, 36))
    sheet.shade(nose, (112, 92, 98), 0.04, 0.1, 0.08, 0.7)
    sheet.paint(soft(ab.ellipse(-0.12, 0.7, 0.13, 0.06), 0.03), WHITE, 0.75)
    sheet.paint(soft(stroke([(0, 1.12), (0, 1.35), (0, 1.58)], 0.06, 0.5), 0.012),
                dark(look.skin_shade, 0.55), 0.8)  # fmt: skip


def tuft(sheet: Sheet, look: Look) -> None:
    for x, height in ((-0.35, -2.75), (0.35, -2.8), (0.02, -3.05)):
        lock = shape([(x - 0.3, -2.2), (x - 0.12, -2.6), (x + 0.1, height), (x + 0.2, -2.55),
                      (x + 0.3, -2.15), (x, -1.9)])  # fmt: skip
        sheet.paint(lock, look.skin)
        sheet.shade(lock, look.skin_shade, -0.05, -0.02, 0.08, 0.6)


def bun_back(sheet: Sheet, look: Look) -> None:
    for mass in (ab.ellipse(0.1, -3.15, 1.0, 0.8),
                 shape(mirrored([(0, -2.95), (1.3, -2.6), (2.1, -1.5), (2.12, -0.2), (1.9, 0.9),
                                 (0, 1.0)]))):  # fmt: skip
        sheet.paint(soft(ab.moved(mass, 0.12, 0.12), 0.2), dark(look.back[1], 0.5), 0.45)
        sheet.paint(mass, look.hair)
        sheet.shade(mass, look.hair_shade, -0.2, -0.2, 0.25, 0.85)
        sheet.shade(mass, look.hair_light, 0.12, 0.14, 0.15, 0.5)


def swept_and_glasses(sheet: Sheet, look: Look) -> None:
    right = [(0.15, -2.62), (1.0, -2.66), (1.8, -1.9), (2.12, -0.7), (2.02, 0.3), (1.86, 0.55),
             (1.84, -0.4), (1.5, -1.3), (0.8, -1.9)]  # fmt: skip
    strands: list[Points] = [
        [(0.5, -2.45), (1.3, -2.1), (1.8, -1.1), (1.92, 0.0)],
        [(0.5, -2.25), (1.2, -1.8), (1.65, -1.0), (1.86, -0.2)],
        [(0.9, -2.5), (1.6, -1.9), (1.98, -0.8)],
    ]
    _hair(sheet, look, right, strands)
    _hair(sheet, look, [(0.5 - x, y) if i == 0 else (-x, y) for i, (x, y) in enumerate(right)],
          [flipped(strand) for strand in strands])  # fmt: skip
    for side in (1, -1):
        rim = ab.ellipse(side * 0.95, 0.06, 0.76, 0.62) - ab.ellipse(side * 0.95, 0.06, 0.69, 0.55)
        sheet.paint(soft(ab.moved(rim, 0.03, 0.08), 0.05), look.skin_shade, 0.6)
        sheet.paint(ab.ellipse(side * 0.95, 0.06, 0.7, 0.56), WHITE, 0.05)
        sheet.paint(rim, (150, 44, 66))
        sheet.shade(rim, WHITE, 0.02, 0.03, 0.03, 0.35)
        arm = [(side * 1.7, -0.02), (side * 1.85, -0.06), (side * 2.0, -0.05)]
        sheet.paint(stroke(arm, 0.1, 0.8), (120, 34, 52))
    sheet.paint(stroke([(-0.22, -0.02), (0, -0.1), (0.22, -0.02)], 0.08, 0.8), (150, 44, 66))


def robot_ears(sheet: Sheet, look: Look) -> None:
    for side in (1, -1):
        for radius, colour in ((0.62, look.skin_shade), (0.5, look.skin), (0.26, look.hair)):
            disc = ab.ellipse(side * 1.98, 0.15, radius * 0.62, radius)
            if colour is look.skin_shade:
                sheet.paint(soft(ab.moved(disc, 0.1, 0.1), 0.15), dark(look.back[1], 0.5), 0.4)
            sheet.paint(disc, colour)
            sheet.shade(disc, dark(colour, 0.55), -0.06, -0.08, 0.09, 0.8)
            sheet.shade(disc, WHITE, 0.05, 0.06, 0.06, 0.45)


def _panel_line(sheet: Sheet, look: Look, points: Points) -> None:
    sheet.paint(soft(stroke(points, 0.05, 0.7), 0.012), dark(look.skin_shade, 0.55), 0.8)
    below = [(x + 0.01, y + 0.045) for x, y in points]
    sheet.paint(soft(stroke(below, 0.035, 0.7), 0.012), WHITE, 0.4)


def robot_front(sheet: Sheet, look: Look) -> None:
    forehead = [(-1.75, -0.95), (-0.9, -1.22), (0, -1.3), (0.9, -1.22), (1.75, -0.95)]
    _panel_line(sheet, look, forehead)
    for side in (1, -1):
        jaw = [(side * 1.9, 0.85), (side * 1.42, 1.0), (side * 1.16, 1.5), (side * 0.98, 2.42)]
        _panel_line(sheet, look, jaw)
        for x, y in ((1.45, -1.32), (1.62, 1.05)):
            bolt = ab.ellipse(side * x, y, 0.1, 0.1)
            sheet.paint(bolt, dark(look.skin, 0.8))
            sheet.shade(bolt, dark(look.skin_shade, 0.5), -0.03, -0.03, 0.04, 0.9)
            sheet.paint(soft(ab.ellipse(side * x - 0.03, y - 0.03, 0.03, 0.03), 0.01), WHITE, 0.8)
    lamp = ab.ellipse(0, -1.85, 0.34, 0.2)
    sheet.paint(soft(ab.ellipse(0, -1.85, 0.6, 0.42), 0.2), look.hair_light, 0.55)
    sheet.paint(lamp, look.hair)
    sheet.shade(lamp, look.hair_shade, -0.05, -0.06, 0.08, 0.9)
    sheet.paint(soft(ab.ellipse(-0.1, -1.92, 0.1, 0.04), 0.03), WHITE, 0.9)
    rod = stroke([(0, -2.35), (0, -2.8), (0, -3.25)], 0.14, 0.9)
    sheet.paint(rod, look.skin_shade)
    sheet.shade(rod, WHITE, 0.03, 0, 0.03, 0.5)
    tip = ab.ellipse(0, -3.4, 0.26, 0.26)
    sheet.paint(soft(ab.ellipse(0, -3.4, 0.5, 0.5), 0.2), look.hair_light, 0.6)
    sheet.paint(tip, look.hair)
    sheet.shade(tip, look.hair_shade, -0.07, -0.07, 0.09, 0.9)
    sheet.paint(soft(ab.ellipse(-0.09, -3.49, 0.08, 0.06), 0.03), WHITE, 0.9)
    for x, strength in ((-1.15, 0.5), (-0.9, 0.25)):
        glint = [(x - 0.25, -1.75), (x - 0.42, -1.2), (x - 0.46, -0.7)]
        sheet.paint(soft(stroke(glint, 0.12), 0.04), WHITE, strength)


MIRA = Look(
    skin=(247, 208, 182), skin_shade=(206, 138, 116), blush=(238, 128, 112), lips=(214, 98, 100),
    hair=(92, 52, 40), hair_shade=(48, 26, 26), hair_light=(178, 108, 72), iris=(86, 156, 120),
    iris_dark=(24, 66, 54), brows=(62, 34, 30), cloth=(226, 150, 62), cloth_shade=(158, 86, 34),
    collar=(250, 232, 204),
    back=((36, 92, 104), (22, 52, 70), (126, 196, 190)), jaw=0.93, eye=1.12, brow_width=0.14,
    neck=0.74, shoulders=0.88, lashes=0.06, back_hair=bob_back, front_hair=bob_front,
)  # fmt: skip
THEO = Look(
    skin=(166, 112, 82), skin_shade=(104, 62, 48), blush=(178, 88, 66), lips=(150, 82, 74),
    hair=(44, 34, 36), hair_shade=(18, 14, 20), hair_light=(98, 80, 82), iris=(122, 78, 42),
    iris_dark=(46, 26, 16), brows=(24, 18, 20), cloth=(66, 92, 158), cloth_shade=(30, 42, 92),
    collar=(238, 240, 246),
    back=((240, 196, 132), (212, 128, 88), (255, 236, 196)), jaw=1.1, eye=0.98, brow_width=0.22,
    neck=0.98, shoulders=1.06, lashes=0.02, back_hair=short_back, front_hair=quiff,
)  # fmt: skip
ZIP = Look(
    skin=(142, 206, 168), skin_shade=(58, 132, 122), blush=(236, 146, 152), lips=(226, 132, 140),
    hair=(250, 188, 84), hair_shade=(202, 112, 40), hair_light=(255, 226, 150), iris=(240, 176, 70),
    iris_dark=(122, 60, 20), brows=(30, 92, 92), cloth=(112, 86, 176), cloth_shade=(58, 40, 112),
    collar=(244, 196, 96),
    back=((40, 36, 84), (24, 20, 54), (116, 92, 190)), jaw=0.98, eye=1.3, brow_width=0.12,
    neck=0.7, shoulders=0.84, lashes=0.02, front_hair=antennas, ears=elf_ears,
)  # fmt: skip
BRUNO = Look(
    skin=(176, 122, 78), skin_shade=(106, 64, 40), blush=(226, 150, 128), lips=(158, 86, 76),
    hair=(176, 122, 78), hair_shade=(60, 36, 24), hair_light=(240, 214, 178), iris=(98, 64, 40),
    iris_dark=(40, 24, 16), brows=(84, 50, 32), cloth=(196, 58, 62), cloth_shade=(122, 24, 40),
    collar=(250, 236, 214), back=((150, 202, 222), (92, 150, 178), (228, 244, 246)), jaw=1.16,
    eye=0.98, brow_width=0.13, neck=1.0, shoulders=1.02, lashes=0.015, front_hair=tuft,
    ears=bear_ears, nose=bear_nose,
)  # fmt: skip
NORA = Look(
    skin=(238, 196, 170), skin_shade=(190, 124, 104), blush=(232, 128, 116), lips=(190, 92, 94),
    hair=(206, 208, 214), hair_shade=(138, 140, 156), hair_light=(246, 246, 250),
    iris=(92, 132, 176), iris_dark=(36, 58, 92), brows=(150, 146, 152), cloth=(98, 74, 128),
    cloth_shade=(54, 36, 84), collar=(226, 214, 236),
    back=((206, 216, 196), (150, 168, 146), (244, 246, 232)), jaw=1.0, eye=0.92, brow_width=0.13,
    neck=0.8, shoulders=0.92, lashes=0.035, back_hair=bun_back, front_hair=swept_and_glasses,
)  # fmt: skip
ROBIN = Look(
    skin=(196, 208, 220), skin_shade=(98, 116, 142), blush=(150, 176, 206), lips=(122, 138, 168),
    hair=(86, 220, 226), hair_shade=(24, 122, 148), hair_light=(160, 250, 250),
    iris=(70, 214, 228), iris_dark=(12, 70, 104), brows=(70, 88, 116), cloth=(72, 84, 104),
    cloth_shade=(32, 38, 54), collar=(86, 220, 226),
    back=((244, 222, 200), (214, 168, 148), (255, 244, 230)), jaw=1.14, eye=1.12, brow_width=0.15,
    neck=0.72, shoulders=0.98, lashes=0.015, front_hair=robot_front, ears=robot_ears,
)  # fmt: skip
LOOKS = {"Robin": ROBIN, "Mira": MIRA, "Theo": THEO, "Zip": ZIP, "Bruno": BRUNO, "Nora": NORA}
