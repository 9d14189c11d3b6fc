"""Faces are found, landmarks lie where they should, and what cannot talk is refused."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from engine.errors import EngineError
from engine.portrait import face_check, face_model
from engine.portrait.face_check import check, inspect
from engine.portrait.face_mirror import MIRROR
from engine.portrait.face_shape import angles, eye_distance, is_face_like, mouth_gap_mm
from engine.portrait.faces import Face, face_of_points, find_faces
from engine.portrait.pictures import Picture, read_picture

from .conftest import CHARACTERS, PORTRAITS, character_picture, encoded, needs_models

# Where our own drawings have their parts, in px of the 880x1360 picture (assets/airbrush.py).
UNIT, ORIGIN = 110.0, np.array([440.0, 560.0])
DRAWN = {  # landmark -> place in u
    13: (0.0, 1.80), 14: (0.0, 1.80), 61: (-0.72, 1.76), 291: (0.72, 1.76), 0: (0.0, 1.62),
    17: (0.0, 2.05), 152: (0.0, 2.80), 468: (-0.92, -0.02), 473: (0.92, -0.02),
}  # fmt: skip


def picture_of(image: Image.Image) -> Picture:
    return read_picture(encoded(image, "PNG"))


@needs_models
@pytest.mark.parametrize("name", ["mira", "theo", "nora", "zip", "bruno", "robin"])
def test_landmarks_of_our_drawings_lie_on_their_parts(name: str) -> None:
    faces = find_faces(read_picture(character_picture(name)))
    assert len(faces) == 1
    points = faces[0].landmarks
    s = eye_distance(points)
    for index, place in DRAWN.items():
        wrong = np.linalg.norm(points[index, :2] - (np.array(place) * UNIT + ORIGIN)) / s
        # The chin of a drawing is a matter of taste, lips and eyes are not.
        assert wrong < (0.12 if index == 152 else 0.065), (index, wrong)
    assert abs(faces[0].angles.yaw) < 4 and abs(faces[0].angles.roll) < 2


@needs_models
@pytest.mark.parametrize("path", CHARACTERS, ids=lambda path: path.stem)
def test_every_shipped_character_passes_the_face_check(path) -> None:
    answer = inspect(character_picture(path.stem))
    assert answer.refusal == "" and answer.automatic is not None
    assert len(answer.faces) == 1
    points = np.array(answer.faces[0].landmarks)
    assert points.shape == (478, 3) and is_face_like(points)


@needs_models
def test_the_mirror_image_has_the_mirrored_face() -> None:
    picture = read_picture(character_picture("lisar"))
    turned = Picture(
        np.ascontiguousarray(picture.pixels[:, ::-1]), picture.width, picture.height, picture.scale
    )
    one, other = find_faces(picture)[0], find_faces(turned)[0]
    back = other.landmarks[MIRROR]
    back[:, 0] = picture.width - 1 - back[:, 0]
    apart = np.linalg.norm((back - one.landmarks)[:, :2], axis=1).mean()
    assert apart / eye_distance(one.landmarks) < 0.02
    assert abs(one.angles.yaw + other.angles.yaw) < 2
    assert (MIRROR[MIRROR] == np.arange(478)).all()


@needs_models
@pytest.mark.parametrize("turn", [-30, 20])
def test_a_tilted_face_is_found_and_its_tilt_is_known(face_image: Image.Image, turn: int) -> None:
    tilted = face_image.rotate(-turn, resample=Image.Resampling.BICUBIC, fillcolor=(90, 110, 120))
    face = find_faces(picture_of(tilted))[0]
    assert abs(face.angles.roll - turn) < 4


@needs_models
@pytest.mark.parametrize("quarter", [Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180])
def test_a_picture_on_its_side_is_told_so(face_image: Image.Image, quarter) -> None:
    answer = inspect(encoded(face_image.transpose(quarter), "PNG"))
    assert "turn it upright" in answer.refusal


@needs_models
def test_a_small_face_in_a_large_picture_is_found(face_image: Image.Image) -> None:
    wide = Image.new("RGB", (1600, 1200), (120, 130, 140))
    wide.paste(face_image.resize((110, 170), Image.Resampling.LANCZOS), (1100, 700))
    face = find_faces(picture_of(wide))[0]
    middle = (face.low + face.high) / 2
    assert np.abs(middle - [1155, 700 + 170 * 590 / 1360]).max() < 15


@needs_models
def test_two_faces_come_largest_first_and_the_other_can_be_chosen(face_image: Image.Image) -> None:
    both = Image.new("RGB", (900, 700), (120, 130, 140))
    both.paste(face_image.resize((260, 402), Image.Resampling.LANCZOS), (40, 100))
    both.paste(face_image, (400, 10))
    picture = picture_of(both)
    faces = find_faces(picture)
    assert [face.low[0] > 400 for face in faces] == [True, False]
    assert any("2 faces" in note for note in check(picture, faces, 0))
    with pytest.raises(EngineError, match="face 3 was asked for, the picture has 2"):
        check(picture, faces, 2)


@needs_models
@pytest.mark.parametrize("seed", range(3))
def test_no_face_in_noise_and_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, (24, 24, 3), np.uint8)
    image = Image.fromarray(small).resize((600, 600), Image.Resampling.BICUBIC)
    answer = inspect(encoded(image, "PNG"))
    assert answer.faces == [] and answer.automatic is None
    assert "no face" in answer.refusal and "choose" in answer.refusal


@needs_models
def test_animals_of_the_test_portraits_are_no_faces_and_people_are() -> None:
    if not PORTRAITS.is_dir():
        pytest.skip("no test portraits beside the repository")
    found = {p.stem: len(find_faces(read_picture(p.read_bytes()))) for p in PORTRAITS.glob("*.jpg")}
    animals = {"cat", "dog", "alpaca"}
    assert all(found[name] == 0 for name in animals), found
    assert all(count == 1 for name, count in found.items() if name not in animals), found


def test_a_missing_model_names_the_command(tmp_path) -> None:
    picture = Picture(np.zeros((100, 100, 4), np.uint8), 100, 100)
    with pytest.raises(EngineError, match=r"packaging/face_model\.py") as caught:
        find_faces(picture, tmp_path)
    assert caught.value.code == "missing_asset"
    (tmp_path / face_model.DETECTOR).write_bytes(b"not a model")
    with pytest.raises(EngineError, match="cannot be read"):
        find_faces(picture, tmp_path)


# --- the check itself, on a face turned and opened by arithmetic ---------------------------------
@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """Landmarks of a frontal face, eye distance near 300 px."""
    if not (face_model.default_folder() / face_model.DETECTOR).is_file():
        pytest.skip("run python packaging/face_model.py")
    return find_faces(read_picture(character_picture("mira")))[0].landmarks


def turned(points: np.ndarray, yaw_deg: float) -> Face:
    a = np.radians(yaw_deg)
    middle = points.mean(0)
    turn = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    return face_of_points((points - middle) @ turn.T + middle)


LARGE = Picture(np.zeros((1360, 880, 4), np.uint8), 880, 1360)


@pytest.mark.parametrize(("yaw", "word"), [(20, ""), (-20, ""), (38, "turned by"), (-38, "turned")])
def test_turned_faces_warn(points: np.ndarray, yaw: float, word: str) -> None:
    face = turned(points, yaw)
    assert abs(face.angles.yaw - yaw) < 3
    notes = check(LARGE, [face], 0)
    assert any("turned" in note for note in notes) == bool(word)


@pytest.mark.parametrize("yaw", [50, -50, 80])
def test_profiles_are_refused(points: np.ndarray, yaw: float) -> None:
    with pytest.raises(EngineError, match="from the side") as caught:
        check(LARGE, [turned(points, yaw)], 0)
    assert caught.value.code == "face_unusable"


def test_small_faces_warn_and_tiny_ones_are_refused(points: np.ndarray) -> None:
    size = face_of_points(points).height
    assert any("look soft" in n for n in check(LARGE, [face_of_points(points * 150 / size)], 0))
    with pytest.raises(EngineError, match="only 40 px high, at least 56"):
        check(LARGE, [face_of_points(points * 40 / size)], 0)


def test_an_open_mouth_is_measured_and_refused_from_15_mm(points: np.ndarray) -> None:
    s = eye_distance(points)
    for gap_mm in (10.0, 20.0):
        opened = points.copy()
        lower = [14, 87, 317]
        opened[lower, :2] = points[[13, 82, 312], :2] + [0, gap_mm / 90 * s]
        opened[lower, 2] = points[[13, 82, 312], 2]
        assert abs(mouth_gap_mm(opened) - gap_mm) < 0.1
        if gap_mm < face_check.GAP_MM_REFUSE:
            check(LARGE, [face_of_points(opened)], 0)
        else:
            with pytest.raises(EngineError, match="wide open"):
                check(LARGE, [face_of_points(opened)], 0)


def test_a_face_at_the_border_warns(points: np.ndarray) -> None:
    face = face_of_points(points)
    moved = face_of_points(points - [face.low[0] - 2, 0, 0])
    assert any("touches the border" in note for note in check(LARGE, [moved], 0))
    assert not any("border" in note for note in check(LARGE, [face], 0))


def test_upside_down_and_squashed_points_are_not_face_like(points: np.ndarray) -> None:
    assert is_face_like(points)
    shuffled = points[np.random.default_rng(0).permutation(478)]
    assert not is_face_like(shuffled)
    assert not is_face_like(points * [1, 0.2, 1])
    assert not is_face_like(np.zeros((478, 3), np.float32))
    assert angles(np.zeros((478, 3))).yaw == 0.0
