"""Framing as arithmetic: which part of the upright picture fills the 704x1088 canvas.

Pure numbers, so that the studio shows the very crop that the engine cuts. Knows nothing of pixels.

    k      = automatic_scale(picture, face)       canvas px per picture px at zoom 1
    scale  = k * framing.zoom, kept where the face takes SMALLEST to LARGEST of the height
    window = centre (framing.center_x * width, framing.center_y * height), kept where the middle
             of the face is at least MARGIN of the canvas away from its edges,
             size (704 / scale, 1088 / scale), all in picture px; it may reach over the border:
             there the engine draws the picture's edge on, softer with distance. Clothes can
             be drawn on better than hair: what has to be filled goes below, not above.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.protocol.character import Framing

CANVAS_WIDTH, CANVAS_HEIGHT = 704, 1088
FACE_SHARE = 0.36  # of the canvas height: face from hair line to chin, head and shoulders fit
MOST_SHARE = 0.45  # a picture that is cut closer is filled at its borders rather than shown larger
FACE_X, FACE_Y = 0.5, 0.43  # where the middle of the face goes, in shares of the canvas
SLACK_X, SLACK_Y = 0.10, 0.10  # how far it may move from there to stay inside the picture
SMALLEST, LARGEST = 0.12, 0.75  # by hand: face height in shares of the canvas
MARGIN = 0.2


@dataclass(frozen=True, slots=True)
class Window:
    """Part of the picture in its px, and the canvas px per picture px."""

    left: float
    top: float
    width: float
    height: float
    scale: float


@dataclass(frozen=True, slots=True)
class Box:
    """A face in px of the upright picture (the fields of the same names of `FaceFound`)."""

    x: float
    y: float
    width: float
    height: float


def automatic_scale(width: float, height: float, face: Box) -> float:
    """Canvas px per picture px at zoom 1: the face at FACE_SHARE, or as much larger (to
    MOST_SHARE) as the picture needs to cover the canvas around the face."""
    length = _length(face)
    wanted = FACE_SHARE * CANVAS_HEIGHT / length
    most = MOST_SHARE * CANVAS_HEIGHT / length
    x, y = face.x + face.width / 2, face.y + face.height / 2
    need = max(
        CANVAS_WIDTH / width,
        CANVAS_HEIGHT / height,
        (FACE_X - SLACK_X) * CANVAS_WIDTH / max(x, 1.0),
        (1 - FACE_X - SLACK_X) * CANVAS_WIDTH / max(width - x, 1.0),
        (FACE_Y - SLACK_Y) * CANVAS_HEIGHT / max(y, 1.0),
        (1 - FACE_Y - SLACK_Y) * CANVAS_HEIGHT / max(height - y, 1.0),
    )
    return min(max(wanted, need), most)


def automatic_framing(width: float, height: float, face: Box) -> Framing:
    """The face in its place, moved by at most the slack to stay inside the picture; zoom 1."""
    scale = automatic_scale(width, height, face)
    x = _centre(face.x + face.width / 2, width, CANVAS_WIDTH, scale, FACE_X, SLACK_X, 0.5)
    y = _centre(face.y + face.height / 2, height, CANVAS_HEIGHT, scale, FACE_Y, SLACK_Y, 0.0)
    return Framing(center_x=x / width, center_y=y / height, zoom=1.0)


def _centre(
    face: float, size: float, canvas: int, scale: float, at: float, slack: float, share: float
) -> float:
    """Middle of the window along one side, in picture px; `share` of what has to be filled goes
    before the picture, the rest behind it."""
    span = canvas / scale
    filled = share * (size - span / 2) + (1 - share) * span / 2
    wanted = face + (0.5 - at) * span
    inside = min(max(wanted, span / 2), size - span / 2) if span <= size else filled
    return min(max(inside, wanted - slack * span), wanted + slack * span)


def window(width: float, height: float, face: Box, framing: Framing | None) -> Window:
    """The part of the picture that fills the canvas; None is the automatic framing."""
    framing = framing or automatic_framing(width, height, face)
    full = CANVAS_HEIGHT / _length(face)
    scale = automatic_scale(width, height, face) * framing.zoom
    scale = min(max(scale, SMALLEST * full), LARGEST * full)
    span_x, span_y = CANVAS_WIDTH / scale, CANVAS_HEIGHT / scale
    x = _near(framing.center_x * width, face.x + face.width / 2, span_x)
    y = _near(framing.center_y * height, face.y + face.height / 2, span_y)
    return Window(x - span_x / 2, y - span_y / 2, span_x, span_y, scale)


def _length(face: Box) -> float:
    """Height of the face, or what it would be for its width: turned or drawn ones are short."""
    return max(face.height, 1.2 * face.width, 1.0)


def _near(center: float, face: float, span: float) -> float:
    reach = (0.5 - MARGIN) * span
    return min(max(center, face - reach), face + reach)
