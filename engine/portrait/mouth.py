"""The inside of the mouth, drawn into the gap between the lips of a frame.

Sizes in millimetres of an adult face. Upper teeth hang on the skull, lower teeth and tongue on
the jaw, never on the lips. Knows nothing of how the lips got where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.portrait.canvas import Canvas
from engine.portrait.coefficients import INDEX
from engine.portrait.colours import Colours
from engine.portrait.curves import lip_gap, open_spline
from engine.portrait.grid import HEIGHT, WIDTH, smooth
from engine.portrait.headframe import HeadFrame
from engine.portrait.mesh import LOWER_INNER, UPPER_INNER
from engine.portrait.own_teeth import own_teeth
from engine.portrait.points import Pose
from engine.portrait.teeth import STRIP_MM, teeth_strip

LEAST_GAP_PX = 0.6
UPPER_SHOWS = 3.0  # mm of the incisors below the rest lip line
UPPER_LENGTH, LOWER_LENGTH = 10.2, 8.4
LOWER_BELOW = 1.2  # mm from the lower lip's rest edge down to the lower teeth's edge
CAVITY = np.array([32, 27, 72], np.float32)  # BGR, warm dark red
TONGUE = np.array([98, 92, 184], np.float32)
CONTACT = np.array([0.40, 0.40, 0.56], np.float32)  # of the lip's colour where lips touch
EDGE_BLUR = 0.8  # px: the lip's edge as a camera shows it
LEAST_BLUR = 0.3  # px: below this a blur only costs time
SUB = 4
OF_MOUTH = ("jaw", "mouth", "seal", "upperLip", "lowerLip")
MOVES = [i for name, i in INDEX.items() if name.startswith(OF_MOUTH)]
AT_REST = 0.15  # sum of the mouth's coefficients below which the picture's own mouth shows


@dataclass(frozen=True, slots=True)
class Gap:
    """The lip gap's rectangle in a frame: `mask` uint8 [h, w], `depth` px from its edge, `x`, `y`
    canvas px, `under` px below the upper lip, `size` largest height in px."""

    rows: slice
    cols: slice
    mask: np.ndarray
    depth: np.ndarray
    x: np.ndarray  # [1, w]
    y: np.ndarray  # [h, 1]
    under: np.ndarray
    size: float


class Mouth:
    def __init__(self, canvas: Canvas, frame: HeadFrame, colours: Colours) -> None:
        self._frame, self._colours = frame, colours
        self._mm = frame.mm
        drawn = canvas.style == "drawn"
        width = float(np.linalg.norm(canvas.landmarks[308] - canvas.landmarks[78])) / self._mm
        self._grow = float(np.clip(width / 46, 0.82, 1.1))  # teeth fit small and wide mouths
        scale = self._mm * self._grow
        self._upper = self._toned(teeth_strip(True, drawn, scale))
        self._lower = self._toned(teeth_strip(False, drawn, scale))
        self._own = own_teeth(canvas, colours, self._mm)

    def _toned(self, strip: np.ndarray) -> np.ndarray:
        """Grey as the picture is grey, tinted as it is tinted."""
        grey = strip[..., :3].mean(-1, keepdims=True)
        strip[..., :3] = grey + (strip[..., :3] - grey) * self._colours.chroma
        strip[..., :3] *= self._colours.tint
        return strip

    def draw(self, out: np.ndarray, pose: Pose) -> None:
        """Paint over `out` [1088, 704, 4] uint8."""
        upper, lower = pose.points[list(UPPER_INNER)], pose.points[list(LOWER_INNER)]
        heights = (lower - upper) @ self._frame.down
        most = float(heights.max())
        shown = float(smooth(np.abs(pose.token[MOVES]).sum(), 0.0, AT_REST))
        if self._own is not None and most < 1.2 * self._mm:
            self._contact(out, upper, lower, shown * (1 - most / (1.2 * self._mm)))
        if most < LEAST_GAP_PX or shown == 0:
            return
        gap = self._gap(upper, lower, most)
        if gap is None:
            return
        inside = self._inside(gap, pose)
        picture = cv2.merge(
            [*np.clip(inside, 0, 255).astype(np.uint8), np.full_like(gap.mask, 255)]
        )
        if self._colours.blur > LEAST_BLUR:
            picture = cv2.GaussianBlur(picture, (0, 0), self._colours.blur)
        shown *= float(smooth(np.array(most), LEAST_GAP_PX, 2 * LEAST_GAP_PX))
        alpha = cv2.GaussianBlur(gap.mask, (0, 0), EDGE_BLUR).astype(np.float32) * (shown / 255)
        part = out[gap.rows, gap.cols]
        cv2.blendLinear(picture, part, alpha, 1 - alpha, dst=part)

    def _gap(self, upper: np.ndarray, lower: np.ndarray, most: float) -> Gap | None:
        width = float(np.linalg.norm(upper[-1] - upper[0]))
        roundness = float(np.clip(most / (width + 1e-6) * 3 - 0.35, 0, 1))
        crossed = ((lower - upper) @ self._frame.down < 0)[:, None]
        middle = (upper + lower) / 2
        up, low = lip_gap(
            np.where(crossed, middle, upper), np.where(crossed, middle, lower), roundness
        )
        outline = np.concatenate([up, low[::-1]])
        x0, y0 = np.maximum(np.floor(outline.min(0) - 4), 0).astype(int)
        x1, y1 = np.minimum(np.ceil(outline.max(0) + 5), [WIDTH, HEIGHT]).astype(int)
        if x1 - x0 < 4 or y1 - y0 < 3:
            return None
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        corners = np.round((outline - [x0, y0]) * (1 << SUB)).astype(np.int32)
        cv2.fillPoly(mask, [corners], (255,), cv2.LINE_AA, SUB)
        x = np.arange(x0, x1, dtype=np.float32)[None]
        y = np.arange(y0, y1, dtype=np.float32)[:, None]
        edge = np.interp(x[0], np.maximum.accumulate(up[:, 0]), up[:, 1]).astype(np.float32)
        depth = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
        return Gap(slice(y0, y1), slice(x0, x1), mask, depth, x, y, y - edge, most)

    def _inside(self, gap: Gap, pose: Pose) -> np.ndarray:
        """[3, h, w] float32 BGR: planes, because numpy is slow on a last axis of 3."""
        mm, token = self._mm, pose.token
        axis = pose.points[308] - pose.points[78]
        width = float(np.linalg.norm(axis))
        right = axis / (width + 1e-6)
        down = np.array([-right[1], right[0]])
        base = (pose.skull[13] + pose.skull[14]) / 2
        drop = pose.jaw[14] - pose.skull[14]
        jaw = base + drop
        rounded = float(token[INDEX["mouthFunnel"]] + token[INDEX["mouthPucker"]])
        lit = float(np.clip(0.76 + 0.03 * gap.size / mm, 0.76, 1.0))
        inside = self._cavity(gap)
        jx, jy = _along(gap, jaw, right), _along(gap, jaw, down)
        tongue = float(token[INDEX["tongue"]])
        opening = float(np.linalg.norm(drop)) / mm
        reach = 17 * float(np.clip(width / (40 * mm), 0.55, 1.1))
        self._add_tongue(inside, jx / mm, jy / mm, reach, 1.5 + 0.33 * opening + 8 * tongue)
        shown = float(np.clip(1 - 1.3 * rounded, 0, 1))  # rounded lips hide the lower teeth
        roots = jaw + down * (LOWER_BELOW + LOWER_LENGTH * self._grow - 1.2) * mm
        self._place(inside, self._lower, roots, right, gap, lit * 0.82, shown, top=False)
        if self._own is None:
            lift = UPPER_LENGTH * self._grow - UPPER_SHOWS + 1.5 * rounded
            roots = base - down * lift * mm
            self._place(inside, self._upper, roots, right, gap, lit * 1.12, 1.0, top=True)
        along = np.abs(_along(gap, (pose.points[78] + pose.points[308]) / 2, right))
        inside *= _shade(gap, along / (width / 2 + 1e-6), mm)
        if self._own is not None:
            lift = down * (1.5 * rounded * mm)  # rounded lips hide most of the teeth
            lit = (0.80 + 0.20 * np.clip(gap.depth / mm, 0, 1)) * max(0.86, 1 - 0.14 * rounded)
            self._own.place(inside, pose.skull - lift, gap.cols.start, gap.rows.start, lit)
        return self._wet_rim(inside, gap)

    def _cavity(self, gap: Gap) -> np.ndarray:
        colours = self._colours
        colour = CAVITY * (0.35 + 0.65 * colours.light) * colours.tint / colours.tint.max()
        colour = colour.mean() + (colour - colour.mean()) * colours.chroma + colours.lip * 0.03
        fall = 1.3 - 0.8 * np.clip(gap.depth / (5 * self._mm), 0, 1)
        return fall * _planes(colour)

    def _add_tongue(
        self, inside: np.ndarray, x: np.ndarray, y: np.ndarray, reach: float, rise: float
    ) -> None:
        """`x`, `y` mm from the jaw's anchor; an arched back, a soft furrow, dark toward the rim."""
        arch = np.sqrt(np.clip(1 - (x / reach) ** 2, 0, 1))
        top = 1.5 - (rise + 1.5) * arch
        alpha = np.clip((y - top) / 1.5, 0, 1) * np.clip(arch * 4, 0, 1)
        deep = np.clip((y - top) / 8, 0, 1)
        shade = 0.50 + 0.42 * np.sin(np.pi * np.clip(deep * 1.1 + 0.08, 0, 1))
        shade = shade * (1 - 0.18 * np.exp(-((x / 1.3) ** 2))) * (0.55 + 0.45 * arch)
        colour = TONGUE.mean() + (TONGUE - TONGUE.mean()) * self._colours.chroma
        colour = colour * self._colours.tint
        inside += (_planes(colour) * shade - inside) * alpha

    def _place(
        self, inside: np.ndarray, strip: np.ndarray, roots: np.ndarray, right: np.ndarray,
        gap: Gap, light: float, alpha: float, top: bool,
    ) -> None:  # fmt: skip
        """Lay a strip over: the middle of its top or bottom edge at canvas px `roots`."""
        if alpha <= 0:
            return
        h, w = strip.shape[:2]
        k = w / (STRIP_MM[0] * self._mm * self._grow)
        turn = k * np.array([[right[0], right[1]], [-right[1], right[0]]])
        anchor = np.array([w / 2 - 0.5, 0.0 if top else h - 1.0])
        shift = anchor - turn @ (roots - [gap.cols.start, gap.rows.start])
        matrix = np.column_stack([turn, shift])
        size = (inside.shape[2], inside.shape[1])
        laid = cv2.warpAffine(strip, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
        *bgr, cover = cv2.split(laid)
        inside *= 1 - alpha * cover
        for plane, colour in zip(inside, bgr, strict=True):
            plane += colour * (light * alpha)

    def _wet_rim(self, inside: np.ndarray, gap: Gap) -> np.ndarray:
        """A thin line of dark lip colour that fades inwards, wider on the lower lip."""
        lowness = np.clip(gap.under / max(gap.size, 1), 0, 1)
        reach = (0.45 + 0.75 * lowness) * self._mm
        rim = np.exp(-gap.depth / reach) * 0.85
        inside += (_planes(self._colours.lip * 0.55) - inside) * rim
        return inside

    def _contact(self, out: np.ndarray, upper: np.ndarray, lower: np.ndarray, amount: float
                 ) -> None:  # fmt: skip
        """The line of lips that touch; a picture with open lips has none of its own."""
        line = open_spline(11, 41) @ ((upper + lower) / 2)
        thick = np.sqrt(np.sin(np.linspace(0, np.pi, 41))) * 0.40 * self._mm + 0.2
        across = thick[:, None] * self._frame.down
        outline = np.concatenate([line - across, (line + across)[::-1]])
        x0, y0 = np.maximum(np.floor(outline.min(0) - 6), 0).astype(int)
        x1, y1 = np.minimum(np.ceil(outline.max(0) + 7), [WIDTH, HEIGHT]).astype(int)
        if x1 - x0 < 3 or y1 - y0 < 3:
            return
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        corners = np.round((outline - [x0, y0]) * (1 << SUB)).astype(np.int32)
        cv2.fillPoly(mask, [corners], (255,), cv2.LINE_AA, SUB)
        alpha = cv2.GaussianBlur(mask, (0, 0), 0.35 * self._mm + 0.3).astype(np.float32)
        alpha *= float(np.clip(1.5 * amount, 0, 1)) * 0.85 / 255
        part = out[y0:y1, x0:x1, :3]
        part[:] = part + (self._colours.lip * CONTACT - part) * alpha[..., None]


def _planes(colour: np.ndarray) -> np.ndarray:
    """A BGR colour [3] over planes [3, h, w]."""
    return colour.astype(np.float32)[:, None, None]


def _along(gap: Gap, origin: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """[h, w] float32 px from `origin` along `axis`."""
    x = (gap.x - np.float32(origin[0])) * np.float32(axis[0])
    return x + (gap.y - np.float32(origin[1])) * np.float32(axis[1])


def _shade(gap: Gap, along: np.ndarray, mm: float) -> np.ndarray:
    """Light that the lips keep out: most under the upper lip and in the corners."""
    under = 0.66 + 0.34 * np.sqrt(np.clip(gap.under / (4 * mm), 0, 1))
    rim = 0.65 + 0.35 * np.clip(gap.depth / (1.2 * mm), 0, 1)
    return (under * rim * (1 - 0.70 * smooth(along, 0.45, 0.98))).astype(np.float32)
