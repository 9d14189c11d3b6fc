"""Character: from bytes to Canvas, the same whatever the file's orientation; cache; cancelling."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from engine import character, ingest_cache
from engine.character import content_key, load_character
from engine.errors import EngineError
from engine.portrait.pictures import TURNS
from engine.protocol.character import CharacterSpec, Framing, Settings
from engine.protocol.character_file import read_character

from .conftest import CHARACTERS, encoded, needs_models

pytestmark = needs_models


@pytest.fixture(scope="module")
def picture(face_image: Image.Image) -> bytes:
    return encoded(face_image, "PNG")


@pytest.mark.parametrize("path", CHARACTERS, ids=lambda path: path.stem)
def test_every_shipped_character_becomes_a_canvas(path) -> None:
    spec, data = read_character(path)
    loaded = load_character(data, spec)
    canvas = loaded.canvas
    assert canvas.pixels.shape == (1088, 704, 4) and canvas.pixels.dtype == np.uint8
    assert canvas.pixels.flags["C_CONTIGUOUS"] and (canvas.pixels[..., 3] == 255).all()
    assert canvas.landmarks.shape == (478, 3) and canvas.landmarks.dtype == np.float32
    face = canvas.landmarks[:468]
    assert 0.3 < np.ptp(face[:, 1]) / 1088 < 0.46
    assert (face[:, :2] > 20).all() and (face[:, :2] < [684, 1068]).all()
    assert spec.licence and spec.name.lower() == path.stem


def test_library_size() -> None:
    assert len(CHARACTERS) >= 10
    assert sum(path.stat().st_size for path in CHARACTERS) < 4_000_000


def test_all_eight_orientations_give_the_same_canvas(face_image: Image.Image) -> None:
    canvases = []
    for orientation in range(1, 9):
        back = {2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}.get(orientation)
        stored = face_image.transpose(TURNS[back]) if back else face_image
        exif = Image.Exif()
        exif[0x112] = orientation
        canvases.append(load_character(encoded(stored, "PNG", exif=exif), CharacterSpec()).canvas)
    for canvas in canvases[1:]:
        assert (canvas.pixels == canvases[0].pixels).all()
        assert (canvas.landmarks == canvases[0].landmarks).all()


def test_cache_gives_the_same_and_keys_follow_what_shapes_the_canvas(picture, tmp_path) -> None:
    spec = CharacterSpec(name="a")
    fresh = load_character(picture, spec, tmp_path)
    again = load_character(picture, spec, tmp_path)
    assert (fresh.cached, again.cached) == (False, True)
    assert (again.canvas.pixels == fresh.canvas.pixels).all()
    assert (again.canvas.landmarks == fresh.canvas.landmarks).all()
    assert (again.face, again.automatic, again.warnings) == (
        fresh.face, fresh.automatic, fresh.warnings,
    )  # fmt: skip
    same = CharacterSpec(name="b", settings=Settings(mouth=2.0), licence="x")
    assert content_key(picture, same) == fresh.key
    for other in (CharacterSpec(framing=Framing(zoom=1.1)), CharacterSpec(face=1)):
        assert content_key(picture, other) != fresh.key
    assert content_key(picture + b"\0", spec) != fresh.key


def test_a_damaged_cache_entry_is_a_miss(picture, tmp_path) -> None:
    fresh = load_character(picture, CharacterSpec(), tmp_path)
    entry = tmp_path / "canvas" / f"{fresh.key}.bin"
    data = entry.read_bytes()
    for damaged in (b"", b"junk", data[: len(data) // 2], data[:100] + bytes(200) + data[300:]):
        entry.write_bytes(damaged)
        again = load_character(picture, CharacterSpec(), tmp_path)
        assert not again.cached
        assert (again.canvas.pixels == fresh.canvas.pixels).all()
    assert load_character(picture, CharacterSpec(), tmp_path).cached
    assert not list(tmp_path.rglob("*.part"))


def test_the_cache_forgets_its_oldest(picture, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ingest_cache, "KEEP", 2)
    for i in range(4):
        load_character(picture, CharacterSpec(framing=Framing(zoom=1 + i / 10)), tmp_path)
    assert len(list((tmp_path / "canvas").iterdir())) == 2


def test_a_cache_that_cannot_be_written_does_not_matter(picture, tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert not load_character(picture, CharacterSpec(), tmp_path / "file").cached


def test_progress_rises_and_cancelling_stops(picture) -> None:
    told: list[tuple[float, str]] = []
    load_character(picture, CharacterSpec(), progress=lambda f, w: told.append((f, w)))
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] == 1
    with pytest.raises(EngineError) as caught:
        load_character(picture, CharacterSpec(), cancelled=lambda: True)
    assert caught.value.code == "cancelled"


def test_placed_landmarks_need_no_detector(picture, tmp_path) -> None:
    found = load_character(picture, CharacterSpec())
    placed = CharacterSpec(landmarks=found.face.landmarks)
    same = load_character(picture, placed, models=tmp_path)  # an empty folder: no model to ask
    assert np.abs(same.canvas.landmarks - found.canvas.landmarks).max() < 0.05
    assert np.abs(same.canvas.pixels.astype(int) - found.canvas.pixels).mean() < 1


@pytest.mark.parametrize(
    "points",
    [[(1.0, 2.0, 3.0)] * 477, [(float("nan"), 1.0, 1.0)] * 478, [(9e9, 9e9, 0.0)] * 478,
     [(5.0, 5.0, 0.0)] * 478, []],
)  # fmt: skip
def test_landmarks_that_are_no_face_are_refused(picture, points) -> None:
    with pytest.raises(EngineError) as caught:
        load_character(picture, CharacterSpec(landmarks=points))
    assert caught.value.code == "bad_character"


@pytest.mark.parametrize(
    "framing", [Framing(9, -9, 1), Framing(0.5, 0.5, 0), Framing(zoom=float("inf")),
                Framing(center_x=float("nan")), Framing(zoom=-1)],
)  # fmt: skip
def test_framing_by_hand_never_breaks(picture, framing) -> None:
    try:
        canvas = load_character(picture, CharacterSpec(framing=framing)).canvas
    except EngineError as error:
        assert error.code == "bad_character"
    else:
        assert canvas.pixels.shape == (1088, 704, 4)
        assert np.isfinite(canvas.landmarks).all()


def test_importing_does_nothing_heavy() -> None:
    assert not hasattr(character, "torch")
