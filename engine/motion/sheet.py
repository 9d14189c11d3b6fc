"""Contact sheet of a spoken sentence: every frame, its time and its phone, to be looked at.

`python -m engine.motion.sheet --image FILE --audio FILE OUT.jpg`. Crops to the face, or to the
mouth with `--mouth`. Phones are those heard, or exact ones with `--phones` (from flite -psdur).
Knows nothing of sessions: it runs the two halves of the `portrait` model one after the other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from engine.character import Character, load_character
from engine.clock import FPS, HEIGHT, WIDTH
from engine.errors import EngineError
from engine.models.base import Latents
from engine.models.portrait import PortraitDecoder
from engine.motion.clip import motion_of, sound
from engine.motion.phone_track import phone_at, read_phones
from engine.protocol.character import CharacterSpec
from engine.protocol.character_file import read_character

CELL = 150  # px, side of a frame on the sheet
LABEL = 16  # px under it
COLUMNS = 12
MOUTH_CORNERS = (61, 291)


def pictures(character: Character, tokens: np.ndarray) -> Iterator[np.ndarray]:
    """BGR frames [1088, 704, 3] of the tokens; each is only valid until the next."""
    decoder = PortraitDecoder()
    decoder.prepare(character, {}, lambda fraction, what: None)
    frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    for i, token in enumerate(tokens):
        decoder.decode(Latents(0, i, i, 1, token[None]), [frame])
        yield frame[:, :, :3]


def crop_box(landmarks: np.ndarray, mouth: bool) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of a square around the face or the mouth, inside the canvas."""
    if mouth:
        corners = landmarks[list(MOUTH_CORNERS), :2]
        centre, half = corners.mean(0), 0.95 * np.ptp(corners[:, 0])
    else:
        low, high = landmarks[:, :2].min(0), landmarks[:, :2].max(0)
        centre, half = (low + high) / 2, 0.6 * max(high - low)
    half = min(half, WIDTH / 2)
    x, y = np.clip(centre, half, np.array([WIDTH, HEIGHT]) - half)
    return int(x - half), int(y - half), int(x + half), int(y + half)


def compose(cells: list[np.ndarray], labels: list[str], columns: int = COLUMNS) -> np.ndarray:
    """One BGR picture of square cells with their labels, row by row."""
    side = cells[0].shape[0]
    rows = -(-len(cells) // columns)
    sheet = np.full((rows * (side + LABEL), columns * side, 3), 24, np.uint8)
    for i, (cell, label) in enumerate(zip(cells, labels, strict=True)):
        top, left = (i // columns) * (side + LABEL), (i % columns) * side
        sheet[top : top + side, left : left + side] = cell
        cv2.putText(sheet, label, (left + 3, top + side + LABEL - 4), cv2.FONT_HERSHEY_SIMPLEX,
                    0.42, (235, 235, 235), 1, cv2.LINE_AA)  # fmt: skip
    return sheet


def make_sheet(
    character: Character, tokens: np.ndarray, phones: list[str], first: int, mouth: bool
) -> np.ndarray:
    """The sheet of tokens whose first is frame `first` of the sound."""
    left, top, right, bottom = crop_box(character.canvas.landmarks, mouth)
    cells = [
        cv2.resize(picture[top:bottom, left:right], (CELL, CELL), interpolation=cv2.INTER_AREA)
        for picture in pictures(character, tokens)
    ]
    labels = [f"{phone} {(first + i + 0.5) / FPS:.2f}" for i, phone in enumerate(phones)]
    return compose(cells, labels)


def _load(options: argparse.Namespace) -> Character:
    if options.character:
        spec, picture = read_character(options.character)
        return load_character(picture, spec)
    if not options.image.is_file():
        raise EngineError("bad_picture", f"{options.image} is not a file", "name a picture")
    return load_character(options.image.read_bytes(), CharacterSpec())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.motion.sheet")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--image", type=Path)
    source.add_argument("--character", type=Path)
    parser.add_argument("--audio", type=Path, required=True)
    parser.add_argument("--phones", type=Path, help="exact times, as flite -psdur prints them")
    parser.add_argument("--from", dest="start_s", type=float, default=0.0, metavar="S")
    parser.add_argument("--to", dest="end_s", type=float, default=1e9, metavar="S")
    parser.add_argument("--mouth", action="store_true", help="crop to the mouth")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("out", type=Path)
    return parser


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        tokens, phones = motion_of(sound(options.audio), {"seed": options.seed})
        if options.phones:
            exact = read_phones(options.phones)
            phones = [phone_at(exact, (i + 0.5) / FPS) for i in range(len(tokens))]
        first, last = round(options.start_s * FPS), min(len(tokens), round(options.end_s * FPS))
        if first >= last:
            raise EngineError("bad_input", "no frame between --from and --to", "widen them")
        sheet = make_sheet(
            _load(options), tokens[first:last], phones[first:last], first, options.mouth
        )
        cv2.imwrite(str(options.out), sheet, [cv2.IMWRITE_JPEG_QUALITY, 88])
    except EngineError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
