"""Rebuilds the starter library: `python assets/make_characters.py --scratch FOLDER`.

Our own drawings need nothing. The photo comes out of scikit-image's wheel (pip), the paintings out
of Debian's wesnoth-1.16-data (apt-get download): both pinned by the SHA-256 of each picture used.
What may be shipped and why is in `LICENSES.md`. Knows nothing of how characters are loaded.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # a script beside the package: run without installing

import drawings  # noqa: E402
import looks  # noqa: E402
from airbrush import Colour, Sheet  # noqa: E402
from drawn_landmarks import landmarks  # noqa: E402
from enlarge import enlarge, sharpen_edges  # noqa: E402

from engine.protocol.character import CharacterSpec  # noqa: E402
from engine.protocol.character_file import SUFFIX, write_character  # noqa: E402

OWN = "Drawn by Avatar Studio's own program, Apache-2.0"
NASA = "Eileen Collins, NASA, public domain, by way of scikit-image; enlarged"
WESNOTH = "The Battle for Wesnoth artists, GPL-2.0-or-later, enlarged and put on a new background"
WHEEL = "scikit-image==0.26.0"
ASTRONAUT = "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5"
DEB = "wesnoth-1.16-data"
DATA = "./usr/share/games/wesnoth/1.16/data/"
HUMANS = DATA + "core/images/portraits/humans/"
TUTORIAL = DATA + "campaigns/tutorial/images/portraits/"
Back = tuple[Colour, Colour, Colour]


@dataclass(frozen=True, slots=True)
class Painting:
    """`center` and `height` px of the face in the original of 400x400."""

    name: str
    path: str
    sha256: str
    center: tuple[float, float]
    height: float
    back: Back


PAINTINGS = (
    Painting("Lisar", TUTORIAL + "lisar.png",
             "6c65e7f8c18f6c506b2386960a6e7cfcbbe1aa13a06e8264505858265694f930",
             (147, 82), 61, ((70, 96, 120), (38, 50, 72), (176, 190, 196))),
    Painting("Konrad", TUTORIAL + "konrad.png",
             "ddef5d567f97fd9fc2d32a0a6405f948ccbada1a30a87560ce1a3735ee8e2ad5",
             (178, 97), 65, ((120, 128, 104), (66, 74, 62), (214, 206, 170))),
    Painting("Aldric", HUMANS + "mage-red.png",
             "db67191b4ecd67ed4350b95c1feb4d789e01f4805efc3cca286e31a5d84f2447",
             (190, 82), 83, ((124, 70, 58), (64, 34, 36), (220, 156, 112))),
    Painting("Rowan", HUMANS + "mage-silver+female.png",
             "21a07fed6904cc05a2cfbdbbc20b577e216c4b859d2fcc7840ecdf219aa71fe2",
             (207, 78), 62, ((78, 108, 112), (40, 58, 66), (184, 206, 196))),
    Painting("Isolde", HUMANS + "mage-white+female.png",
             "964e2fae13c05dd58d589cb01233c69d160d362a983f313e08fc09b0ee2f9b53",
             (231, 105), 74, ((104, 92, 126), (54, 48, 76), (198, 186, 214))),
)  # fmt: skip


def fetched(scratch: Path, pattern: str, command: list[str]) -> Path:
    """The package's file in `scratch`, downloaded by its ordinary client when not there."""
    if not list(scratch.glob(pattern)):
        subprocess.run(command, cwd=scratch, check=True, timeout=600)
    return sorted(scratch.glob(pattern))[-1]


def checked(name: str, data: bytes, sha256: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise SystemExit(f"{name} is not the picture it should be: another version of its package?")
    return data


def decoded(data: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


def astronaut(scratch: Path) -> bytes:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", WHEEL]
    with zipfile.ZipFile(fetched(scratch, "scikit_image-*.whl", command)) as wheel:
        data = wheel.read("skimage/data/astronaut.png")
    return checked("astronaut.png", data, ASTRONAUT)


def originals(scratch: Path) -> dict[str, bytes]:
    """The paintings' files by name, out of the Debian package."""
    deb = fetched(scratch, f"{DEB}_*.deb", ["apt-get", "download", DEB])
    archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
    wanted = {painting.path: painting for painting in PAINTINGS}
    found = {}
    with archive, tarfile.open(fileobj=archive.stdout, mode="r|") as files:
        for member in files:
            painting = wanted.get(member.name)
            file = files.extractfile(member) if painting else None
            if painting and file:
                found[painting.name] = checked(member.name, file.read(), painting.sha256)
    return found


def composed(painting: Painting, data: bytes) -> np.ndarray:
    """The bust, enlarged, on a background of ours: uint8 BGR, 1088 px high or so."""
    x, y = painting.center
    high = painting.height / 0.31  # the face takes .31 of the height; framing may come closer
    wide, top = high * 880 / 1360, y - 0.42 * high
    matrix = np.array([[1, 0, wide / 2 - x], [0, 1, -top]])
    size = (round(wide), round(high))
    bust = cv2.warpAffine(decoded(data), matrix, size, flags=cv2.INTER_LINEAR)
    large = enlarge(bust, 4)
    back = cv2.resize(Sheet(*painting.back).bgr(), large.shape[1::-1], interpolation=cv2.INTER_AREA)
    alpha = large[:, :, 3:].astype(np.float32) / 255
    return np.clip(large[:, :, :3] * alpha + back * (1 - alpha) + 0.5, 0, 255).astype(np.uint8)


def photo(bgr: np.ndarray) -> np.ndarray:
    """Head and shoulders of the astronaut, three times as large and a little crisper."""
    size = (bgr.shape[1] * 2, bgr.shape[0] * 2)
    large = sharpen_edges(cv2.resize(bgr, size, interpolation=cv2.INTER_LANCZOS4), 1, 1.5)
    crisp = cv2.addWeighted(large, 1.35, cv2.GaussianBlur(large, (0, 0), 1.2), -0.35, 0)
    size = (bgr.shape[1] * 3, bgr.shape[0] * 3)
    return cv2.resize(crisp, size, interpolation=cv2.INTER_CUBIC)[:1200, 150:1200]


def jpeg(bgr: np.ndarray) -> bytes:
    done, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 92])
    assert done, "JPEG encoding failed"
    return data.tobytes()


def save(folder: Path, spec: CharacterSpec, picture: bytes) -> None:
    path = folder / (spec.name.lower() + SUFFIX)
    write_character(path, spec, picture)
    sys.stderr.write(f"{path.name}: {path.stat().st_size // 1024} kB\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the starter library.")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for the downloads")
    parser.add_argument("--only", default="", help="names, comma separated")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    folder = HERE / "characters"
    folder.mkdir(exist_ok=True)
    only = [name for name in options.only.split(",") if name]
    for name, look in looks.LOOKS.items():
        if not only or name in only:
            picture = jpeg(drawings.draw(look))
            points = landmarks(look, picture)
            save(folder, CharacterSpec(name=name, landmarks=points, licence=OWN), picture)
    if not only or "Eileen" in only:
        picture = jpeg(photo(decoded(astronaut(options.scratch))))
        save(folder, CharacterSpec(name="Eileen", licence=NASA), picture)
    if not only or any(painting.name in only for painting in PAINTINGS):
        pictures = originals(options.scratch)
        for painting in PAINTINGS:
            if not only or painting.name in only:
                picture = jpeg(composed(painting, pictures[painting.name]))
                save(folder, CharacterSpec(name=painting.name, licence=WESNOTH), picture)


if __name__ == "__main__":
    main()
