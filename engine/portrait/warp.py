"""One warp of the whole picture a frame: blend fields, turn the head, invert, enlarge, remap.

Floors at 704x1088 on one core, moving box = whole canvas (what the work cannot go below):
 - blend: 12 moving bases x up to 0.3 MB read = 4 MB; 0.4 ms at 10 GB/s
 - inversion: 48,772 cells x 2 rounds, 20,000 cells of the face x 4 more, of a
   2-channel bilinear read: 5 ns a cell, 1.0 ms
 - map: 766k px x 2 floats = 6.1 MB written once, read once; 0.6 ms + 0.6 ms
 - remap: 3.1 MB written, 4 reads of 4 bytes a px; 2.3 ms, the 4-channel path of OpenCV (with
   3 channels it misses that path: 5.1 ms)
Sum about 5 ms. Only the box that can move is remapped; the rest is copied (0.1 ms a MB).
Knows nothing of eyes or of the inside of the mouth.
"""

from __future__ import annotations

import cv2
import numpy as np

from engine.portrait.coefficients import INDEX
from engine.portrait.fields import Basis, Fields
from engine.portrait.grid import ALL, CELL, PAD, Box, box_where, to_cells
from engine.portrait.head import Head
from engine.portrait.mesh import LOWER_INNER, LOWER_OUTER, UPPER_INNER, UPPER_OUTER
from engine.portrait.sampling import ZERO, less, read, read_rows, times

# Rounds of the fixed point: each leaves |slope| of the error. A head's turn has slopes to 0.2, an
# expression to 0.6, the lower lip more.
ROUNDS, FACE_ROUNDS, LIP_ROUNDS = 2, 4, 6
LIPS = UPPER_OUTER + LOWER_OUTER
SEAM_BLUR = 0.6  # px: more would pull the picture's own teeth into closed lips
BREATH = INDEX["breath"]
LEAST = 1e-4  # coefficients below this do nothing
SUB = 4  # bits of a pixel for polygon corners


class Field:
    """A displacement field over one box: sum of bases, head turn, inverse. Buffers are reused."""

    def __init__(
        self, box: Box, face: Box, bases: list[Basis], head: Head, rounds: tuple[int, int]
    ) -> None:
        """`face`: the part of `box` that any expression moves. `rounds`: of the inversion, in all
        of the box and then in the face again."""
        h, w = box.shape
        self.box, self._bases = box, bases
        self._rounds, self._face_rounds = rounds
        x, y = np.meshgrid(np.arange(w, dtype=np.float32), np.arange(h, dtype=np.float32))
        self.index = np.stack([x, y], -1)
        follow, depth = head.follow[box.cells], head.depth[box.cells]
        corner = np.array([box.left, box.top])
        from_pivot = (self.index + corner - head.pivot).astype(np.float32)
        # The turn of the resting picture, weighted: one matrix product a frame.
        place = np.dstack([from_pivot, depth, np.ones_like(depth)])
        self._place = np.ascontiguousarray(place * follow[..., None])
        self._shaped = face.inside(box)  # what the expression moved turns with the head
        self._follow = np.repeat(follow[self._shaped][..., None], 2, 2)
        self._face_step = np.empty_like(self._follow)
        self.forward = np.zeros((h, w, 2), np.float32)
        self.backward = np.empty((h, w, 2), np.float32)
        self._step = np.empty((h, w, 2), np.float32)

    def blend(self, token: np.ndarray) -> None:
        """Add the moving bases to `forward`."""
        for basis in self._bases:
            amount = float(token[basis.token])
            if abs(amount) > LEAST:
                part = self.forward[basis.box.inside(self.box)]
                cv2.scaleAdd(basis.values, amount, part, dst=part)

    def turn(self, matrix: np.ndarray | None) -> None:
        """Rigid head motion of what the expression moved."""
        if matrix is None:
            return
        face = self.forward[self._shaped]
        cv2.transform(face, matrix[:, :2], dst=self._face_step)
        cv2.multiply(self._face_step, self._follow, dst=self._face_step)
        cv2.add(face, self._face_step, dst=face)
        cv2.transform(self._place, matrix, dst=self._step)
        cv2.add(self.forward, self._step, dst=self.forward)

    def invert(self) -> np.ndarray:
        """Where each cell of the frame comes from, as indices into this box: b = y - d(b)."""
        cv2.subtract(self.index, self.forward, dst=self.backward)
        self._settle(self.index, self._step, self.backward, self._rounds)
        face = self._shaped
        self._settle(self.index[face], self._face_step, self.backward[face], self._face_rounds)
        return self.backward

    def _settle(self, index: np.ndarray, step: np.ndarray, back: np.ndarray, rounds: int) -> None:
        for _ in range(rounds):
            read(self.forward, back, step)
            cv2.subtract(index, step, dst=back)


def face_box(fields: Fields) -> Box:
    """Cells that some basis moves, breathing aside: shoulders do not turn with the head."""
    box = fields.mouth
    for basis in fields.upper:
        box = box if basis.token == BREATH else box.join(basis.box)
    return box


def moving_box(fields: Fields, head: Head) -> Box:
    """Every cell that can move, and one more on each side."""
    box = fields.mouth.join(box_where(head.follow > 0) or fields.mouth)
    for basis in fields.upper:
        box = box.join(basis.box)
    return Box(box.top - 1, box.bottom + 1, box.left - 1, box.right + 1).meet(ALL)


class Warp:
    def __init__(
        self, pixels: np.ndarray, landmarks: np.ndarray, fields: Fields, head: Head
    ) -> None:
        self._pixels = pixels
        box = moving_box(fields, head)
        self.upper = Field(box, face_box(fields), fields.upper, head, (ROUNDS, FACE_ROUNDS))
        self.seam = Seam(landmarks, fields, head, box)
        h, w = box.shape
        self._small = np.empty((h, w, 2), np.float32)
        self._large = np.empty((h * CELL, w * CELL, 2), np.float32)
        self.rows, self.cols = box.canvas()
        top, left = corner_px(box)
        # [rows, cols, 2] canvas px: the part of the enlarged map that lies on the canvas
        self.map = self._large[
            self.rows.start - top : self.rows.stop - top,
            self.cols.start - left : self.cols.stop - left,
        ]

    def solve(self, token: np.ndarray, turn: np.ndarray | None, points: np.ndarray) -> None:
        """Fill `map` for one frame; `points` [478, 2] are its landmarks."""
        self.upper.forward.fill(0)
        self.upper.blend(token)
        self.upper.turn(turn)
        back = self.upper.invert()
        # index in the box -> canvas px
        box = self.upper.box
        corner = (np.array([box.left, box.top], np.float32) - PAD + 0.5) * CELL - 0.5
        cv2.transform(back, np.column_stack([CELL * np.eye(2), corner]), dst=self._small)
        size = (self._large.shape[1], self._large.shape[0])
        cv2.resize(self._small, size, dst=self._large, interpolation=cv2.INTER_LINEAR)
        self.seam.solve(token, turn, self.upper, points)
        self.seam.edit(self._large, corner_px(box), points)

    def draw(self, out: np.ndarray) -> None:
        """`out` [1088, 704, 4] uint8: the warped picture."""
        rows, cols = self.rows, self.cols
        out[: rows.start] = self._pixels[: rows.start]
        out[rows.stop :] = self._pixels[rows.stop :]
        out[rows, : cols.start] = self._pixels[rows, : cols.start]
        out[rows, cols.stop :] = self._pixels[rows, cols.stop :]
        read(self._pixels, self.map, out[rows, cols])


def corner_px(box: Box) -> tuple[int, int]:
    """Canvas px (row, column) of a box's first px; negative in the ring outside the canvas."""
    return (box.top - PAD) * CELL, (box.left - PAD) * CELL


class Seam:
    """Below the moving lip line the picture comes by the lower lip's field, L = U + `delta`.

    `delta` is zero outside the mouth's box of the picture. The frame's box is the same one carried
    along with the lips, however far the head moves.
    """

    def __init__(self, landmarks: np.ndarray, fields: Fields, head: Head, within: Box) -> None:
        box, (h, w) = fields.mouth, fields.mouth.shape
        self._mouth, self._within, self._bases = box, within, fields.lower
        self._rest = landmarks[list(LIPS), :2].mean(0)
        self._follow = np.repeat(head.follow[box.cells][..., None], 2, 2)
        self.delta, self._step, self._other, self._at, self.back = (
            np.zeros((h, w, 2), np.float32) for _ in range(5)
        )
        self._large, self._weight = (
            np.empty((h * CELL, w * CELL, 2), np.float32) for _ in range(2)
        )
        self._mask = np.zeros((h * CELL, w * CELL), np.uint8)
        self.box = box  # of the frame

    def solve(
        self, token: np.ndarray, turn: np.ndarray | None, upper: Field, points: np.ndarray
    ) -> None:
        """Invert L over the frame's box, from U's inverse on."""
        self.delta.fill(0)
        for basis in self._bases:
            amount = float(token[basis.token])
            if abs(amount) > LEAST:
                part = self.delta[basis.box.inside(self._mouth)]
                cv2.scaleAdd(basis.values, amount, part, dst=part)
        if turn is not None:
            cv2.transform(self.delta, turn[:, :2], dst=self._step)
            cv2.multiply(self._step, self._follow, dst=self._step)
            cv2.add(self.delta, self._step, dst=self.delta)
        self.box = self._carried(points)
        cells = self.box.inside(upper.box)
        start, index = upper.backward[cells], upper.index[cells]
        self.back[:] = start
        mouth, within = self._mouth, self._within
        corner = (mouth.left - within.left, mouth.top - within.top)
        for _ in range(LIP_ROUNDS):
            read(upper.forward, self.back, self._step)
            less(self.back, *corner, self._at)
            read(self.delta, self._at, self._other, ZERO)
            cv2.add(self._step, self._other, dst=self._step)
            cv2.subtract(index, self._step, dst=self.back)
        cv2.subtract(self.back, start, dst=self._step)
        times(self._step, CELL, self._step)
        size = (self._large.shape[1], self._large.shape[0])
        cv2.resize(self._step, size, dst=self._large, interpolation=cv2.INTER_LINEAR)

    def _carried(self, points: np.ndarray) -> Box:
        """The mouth's box, moved by whole cells with the lips, kept inside what moves."""
        x, y = np.round((points[list(LIPS), :2].mean(0) - self._rest) / CELL).astype(int)
        (h, w), within = self._mouth.shape, self._within
        top = int(np.clip(self._mouth.top + y, within.top, within.bottom - h))
        left = int(np.clip(self._mouth.left + x, within.left, within.right - w))
        return Box(top, top + h, left, left + w)

    def edit(self, full: np.ndarray, corner: tuple[int, int], points: np.ndarray) -> None:
        """Add to the map `full`, whose first element is canvas px `corner`, below the lip line."""
        top, left = corner_px(self.box)
        self._mask.fill(0)
        line = np.round((below_lips(points) - [left, top]) * (1 << SUB)).astype(np.int32)
        cv2.fillPoly(self._mask, [line], (255,), cv2.LINE_AA, SUB)
        mask = cv2.GaussianBlur(self._mask, (3, 3), SEAM_BLUR)
        times(cv2.merge([mask, mask]), 1 / 255, self._weight)
        cv2.multiply(self._weight, self._large, dst=self._weight)
        h, w = self._mask.shape
        part = full[top - corner[0] : top - corner[0] + h, left - corner[1] : left - corner[1] + w]
        cv2.add(part, self._weight, dst=part)


def below_lips(points: np.ndarray) -> np.ndarray:
    """[n, 2] px: the region under the middle of the lip gap, the line carried on at both ends."""
    middle = (points[list(UPPER_INNER), :2] + points[list(LOWER_INNER), :2]) / 2
    along = middle[-1] - middle[0]
    first, last = middle[0] - 1.2 * along, middle[-1] + 1.2 * along
    far = 20 * np.array([-along[1], along[0]])
    return np.concatenate([first[None], middle, last[None], [last + far, first + far]])


def sample_back(field: Field, px: np.ndarray) -> np.ndarray:
    """Where canvas px [n, 2] of the frame come from, cells of the canvas (for tests)."""
    at = (to_cells(px) - [field.box.left, field.box.top]).astype(np.float32)
    x, y = at[None, :, 0], at[None, :, 1]
    back = read_rows(field.backward, x, y)[0]
    return back + np.array([field.box.left, field.box.top])
