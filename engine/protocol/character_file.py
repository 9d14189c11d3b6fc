"""The `.avatar` file: a zip of `character.json` and the picture's bytes as they were.

Used by studio and engine alike: standard library and msgspec only. Written whole or not at all,
read with limits, so that no file can fill memory. Knows nothing of what is in the picture.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from pathlib import Path

import msgspec

from engine.errors import EngineError, first_line
from engine.protocol.character import FORMAT, CharacterSpec

SUFFIX = ".avatar"
SPEC_NAME = "character.json"
PICTURE_NAME = "picture"
MAX_SPEC_BYTES = 256 * 1024  # 478 landmarks take 20 kB
MAX_PICTURE_BYTES = 60 * 1024 * 1024  # what the engine accepts
MAX_FILE_BYTES = MAX_PICTURE_BYTES + 2 * MAX_SPEC_BYTES
MAX_MEMBERS = 16  # ours has 2; a few more may come in a later minor version

_decoder = msgspec.json.Decoder(CharacterSpec)


class _Version(msgspec.Struct):
    format: int


def write_character(path: Path, spec: CharacterSpec, picture: bytes) -> None:
    """Save as one file; what was there before stays until the new file is complete.

    Raises EngineError("bad_character") for what `read_character` would refuse, OSError as the
    disk gives it.
    """
    _check_picture(len(picture))
    text = msgspec.json.format(msgspec.json.encode(spec), indent=1)
    if len(text) > MAX_SPEC_BYTES:
        raise _bad(f"the character's settings take {len(text)} bytes", MAX_SPEC_BYTES)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(_zipped(text, picture))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _zipped(text: bytes, picture: bytes) -> bytes:
    """Same content, same bytes: members carry a fixed date. Pictures are compressed already."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data, method in (
            (SPEC_NAME, text, zipfile.ZIP_DEFLATED),
            (PICTURE_NAME, picture, zipfile.ZIP_STORED),
        ):
            member = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))
            member.compress_type = method
            archive.writestr(member, data)
    return buffer.getvalue()


def read_character(path: Path) -> tuple[CharacterSpec, bytes]:
    """Spec and picture bytes. Raises EngineError("bad_character") with one line."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise _bad(f"{path.name} has {size} bytes", MAX_FILE_BYTES)
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EngineError(
            "bad_character", f"{path.name} cannot be read ({reason})", "choose another file"
        ) from error
    return parse_character(data, path.name)


def parse_character(data: bytes, name: str = "the file") -> tuple[CharacterSpec, bytes]:
    """The same from bytes; `name` only for the message."""
    if len(data) > MAX_FILE_BYTES:
        raise _bad(f"{name} has {len(data)} bytes", MAX_FILE_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise _bad(f"{name} has {len(archive.infolist())} members", MAX_MEMBERS)
            text = _member(archive, SPEC_NAME, MAX_SPEC_BYTES)
            picture = _member(archive, PICTURE_NAME, MAX_PICTURE_BYTES)
        spec = _spec(text, name)
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RuntimeError,
            NotImplementedError, RecursionError, OverflowError, zlib.error) as error:  # fmt: skip
        raise EngineError(
            "bad_character",
            f"{name} is not a character file or is damaged ({first_line(error)[:80]})",
            "save the character again, or open its picture instead",
        ) from error
    _check_picture(len(picture))
    return spec, picture


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """One member, reading no more than the limit whatever its header promises."""
    with archive.open(name) as member:
        data = member.read(limit + 1)
    if len(data) > limit:
        raise _bad(f"{name} in the character file is too large", limit)
    return data


def _spec(text: bytes, name: str) -> CharacterSpec:
    """The version first: a later format may look different elsewhere."""
    version = msgspec.json.decode(text, type=_Version).format
    if version > FORMAT:
        raise EngineError(
            "bad_character",
            f"{name} has format {version}; this version reads up to {FORMAT}",
            "update Avatar Studio",
        )
    return _decoder.decode(text)


def _check_picture(size: int) -> None:
    if size == 0:
        raise EngineError("bad_character", "the character has no picture", "choose a picture")
    if size > MAX_PICTURE_BYTES:
        raise _bad(f"the character's picture has {size} bytes", MAX_PICTURE_BYTES)


def _bad(what: str, limit: int) -> EngineError:
    return EngineError("bad_character", f"{what}; the limit is {limit}", "use a smaller one")
