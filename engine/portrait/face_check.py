"""Can this face talk? Refusals and warnings, one plain line each, with the remedy.

Knows nothing of how faces are found. Angles and sizes at which quality was seen to fall.
"""

from __future__ import annotations

from pathlib import Path

from engine.errors import EngineError
from engine.portrait.face_shape import mouth_gap_mm
from engine.portrait.faces import Face, find_faces, lies_on_its_side
from engine.portrait.framing import box_of
from engine.portrait.pictures import Picture, read_picture
from engine.protocol.framing import automatic_framing
from engine.protocol.messages import FaceFound, PictureInspected

YAW_WARN, YAW_REFUSE = 35.0, 45.0  # degrees
ROLL_REFUSE = 50.0  # degrees: lying down, or a picture on its side
TURN_IT = "turn it upright in a picture viewer and save it"
FACE_PX_WARN, FACE_PX_REFUSE = 200.0, 56.0  # px of face height, hair line to chin
GAP_MM_REFUSE = 15.0  # between the lips, on an adult face: a mouth that cannot be shut
BORDER_SHARE = 0.02  # of the face's size: closer to the border than this is "touching"


def check(
    picture: Picture, faces: list[Face], chosen: int, models: Path | None = None
) -> list[str]:
    """Warnings about the chosen face. Raises EngineError("no_face" or "face_unusable")."""
    if not faces:
        if lies_on_its_side(picture, models):
            raise EngineError("no_face", "the picture lies on its side", TURN_IT)
        raise EngineError(
            "no_face",
            "no face was found in the picture",
            "choose one with a single face from the front",
        )
    if not 0 <= chosen < len(faces):
        raise EngineError(
            "no_face",
            f"face {chosen + 1} was asked for, the picture has {len(faces)}",
            "choose one of them",
        )
    face = faces[chosen]
    _refuse(face)
    return _warnings(picture, faces, face)


def _refuse(face: Face) -> None:
    if abs(face.angles.roll) > ROLL_REFUSE:
        raise EngineError(
            "face_unusable",
            f"the face is tilted by {abs(face.angles.roll):.0f} degrees "
            f"({ROLL_REFUSE:.0f} are the limit)",
            TURN_IT,
        )
    yaw = abs(face.angles.yaw)
    if yaw >= YAW_REFUSE:
        raise EngineError(
            "face_unusable",
            f"the face is seen from the side ({yaw:.0f} degrees, {YAW_REFUSE:.0f} are the limit)",
            "choose a picture that shows both eyes and the whole mouth",
        )
    if face.height < FACE_PX_REFUSE:
        raise EngineError(
            "face_unusable",
            f"the face is only {face.height:.0f} px high, at least {FACE_PX_REFUSE:.0f} are needed",
            "choose a larger or closer picture",
        )
    gap = mouth_gap_mm(face.landmarks)
    if gap > GAP_MM_REFUSE:
        raise EngineError(
            "face_unusable",
            f"the mouth is wide open (about {gap:.0f} mm, {GAP_MM_REFUSE:.0f} are the limit) "
            "and could not be shut for speech",
            "choose a picture with the mouth closed or smiling",
        )


def _warnings(picture: Picture, faces: list[Face], face: Face) -> list[str]:
    notes = []
    if abs(face.angles.yaw) >= YAW_WARN:
        notes.append(
            f"the face is turned by {abs(face.angles.yaw):.0f} degrees: it will move less; "
            "a picture from the front looks better"
        )
    if len(faces) > 1:
        notes.append(
            f"{len(faces)} faces were found: the largest is used unless you choose another, and "
            "only that one moves; crop closer to leave the others out"
        )
    if face.height < FACE_PX_WARN:
        notes.append(
            f"the face is only {face.height:.0f} px high and will look soft; "
            f"{FACE_PX_WARN:.0f} px or more look sharp"
        )
    if _touches_border(picture, face):
        notes.append(
            "the face touches the border of the picture: the missing part is filled in; "
            "a picture with room around the head looks better"
        )
    return notes


def _touches_border(picture: Picture, face: Face) -> bool:
    margin = BORDER_SHARE * face.height
    far = [picture.width - margin, picture.height - margin]
    return not bool((face.low >= margin).all() and (face.high <= far).all())


def face_found(face: Face) -> FaceFound:
    """A face as it goes over the wire."""
    points = [(float(x), float(y), float(z)) for x, y, z in face.landmarks.round(2)]
    return FaceFound(
        x=float(face.low[0]), y=float(face.low[1]), width=face.width, height=face.height,
        score=face.score, yaw_deg=face.angles.yaw, landmarks=points,
    )  # fmt: skip


def inspect(data: bytes, models: Path | None = None) -> PictureInspected:
    """Look at picture bytes without taking them on; a picture without a usable face is an answer
    (`refusal`), not an error. Raises EngineError("bad_picture", "missing_asset")."""
    picture = read_picture(data)
    faces = find_faces(picture, models)
    warnings, refusal = list(picture.warnings), ""
    try:
        warnings += check(picture, faces, 0, models)
    except EngineError as error:
        refusal = str(error)
    framing = automatic_framing(picture.width, picture.height, box_of(faces[0])) if faces else None
    return PictureInspected(
        width=picture.width, height=picture.height, faces=[face_found(face) for face in faces],
        warnings=warnings, refusal=refusal, automatic=framing,
    )  # fmt: skip
