"""Character as data: framing, landmarks, intensities; what the character file and the wire carry.

Knows nothing of pixels, models or files.
"""

from __future__ import annotations

import msgspec

FORMAT = 1  # of the character file


class Framing(msgspec.Struct, frozen=True):
    """Which part of the upright picture fills the 704x1088 canvas.

    Centre in fractions of the picture's width and height; `zoom` 1 is the automatic framing's
    scale, larger is closer. None in CharacterSpec means automatic.
    """

    center_x: float = 0.5
    center_y: float = 0.5
    zoom: float = 1.0


class Settings(msgspec.Struct, frozen=True):
    """Intensities, 0 off, 1 natural, 2 twice as much; `seed` fixes blinks and head."""

    mouth: float = 1.0
    head: float = 1.0
    blink: float = 1.0
    gaze: float = 1.0
    expression: float = 1.0
    seed: int = 1


class CharacterSpec(msgspec.Struct, frozen=True):
    """Everything about a character but its picture's bytes."""

    name: str = "Untitled"
    framing: Framing | None = None
    face: int = 0  # which face of the list, largest first
    # 478 points (x, y, z) in px of the upright picture, when a person placed them; None: detect
    landmarks: list[tuple[float, float, float]] | None = None
    settings: Settings = Settings()
    licence: str = ""  # shown in the library
    format: int = FORMAT
