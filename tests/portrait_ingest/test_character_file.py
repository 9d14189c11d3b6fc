"""The `.avatar` file: round trip, whole or not at all, and nothing in it can hurt."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.protocol import character_file
from engine.protocol.character import CharacterSpec, Framing, Settings
from engine.protocol.character_file import parse_character, read_character, write_character

SPEC = CharacterSpec(
    name="Zoë ✿", framing=Framing(0.4, 0.6, 1.5), face=1, landmarks=[(1.5, 2.5, -3.0)] * 478,
    settings=Settings(mouth=0.5, seed=9), licence="CC0",
)  # fmt: skip


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def refused(data: bytes) -> str:
    with pytest.raises(EngineError) as caught:
        parse_character(data)
    assert caught.value.code == "bad_character"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_round_trip_and_same_content_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "a.avatar", tmp_path / "b.avatar"
    for path in (one, other):
        write_character(path, SPEC, b"\xff\xd8picture")
        assert read_character(path) == (SPEC, b"\xff\xd8picture")
    assert one.read_bytes() == other.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.avatar", "b.avatar"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.avatar"
    write_character(path, SPEC, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(character_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_character(path, SPEC, b"new")
    assert read_character(path)[1] == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.avatar"]


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no picture"):
        write_character(tmp_path / "a.avatar", SPEC, b"")
    with pytest.raises(EngineError, match="limit"):
        write_character(tmp_path / "a.avatar", CharacterSpec(name="x" * 300_000), b"p")
    assert not list(tmp_path.iterdir())


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        read_character(tmp_path / "none.avatar")
    with pytest.raises(EngineError, match="cannot be read"):
        read_character(tmp_path)
    assert "not a character file" in refused(b"\xff\xd8\xff a JPEG renamed")
    assert "not a character file" in refused(zipped({"readme.txt": b"hi"}))
    assert "not a character file" in refused(zipped({"character.json": b"{}", "picture": b"p"}))


def test_a_later_format_asks_for_an_update() -> None:
    text = msgspec.json.encode({"format": 2, "name": ["something", "new"]})
    assert "update Avatar Studio" in refused(zipped({"character.json": text, "picture": b"p"}))


def test_unknown_fields_and_members_of_a_minor_version_are_ignored() -> None:
    fields = {"format": 1, "name": "A", "colour": "red"}
    members = {"character.json": msgspec.json.encode(fields), "picture": b"p", "voice": b"v"}
    assert parse_character(zipped(members)) == (CharacterSpec(name="A"), b"p")


@pytest.mark.parametrize(
    "field", [{"face": "one"}, {"framing": {"zoom": "big"}}, {"landmarks": [[1, 2]]}, {"name": 5}]
)
def test_wrong_types_name_their_place(field: dict) -> None:
    text = msgspec.json.encode({"format": 1, **field})
    assert next(iter(field)) in refused(zipped({"character.json": text, "picture": b"p"}))


def test_zip_bombs_are_not_unpacked() -> None:
    bomb = zipped({"character.json": b'{"format":1}', "picture": bytes(100_000_000)})
    assert len(bomb) < 200_000
    assert "too large" in refused(bomb)
    assert "too large" in refused(zipped({"character.json": bytes(10_000_000), "picture": b"p"}))
    assert "members" in refused(zipped({f"m{i}": b"" for i in range(100)}))


def test_nested_json_does_not_overflow_the_stack() -> None:
    deep = b'{"format":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    refused(zipped({"character.json": deep, "picture": b"p"}))


def good_file() -> bytes:
    return zipped({"character.json": msgspec.json.encode(SPEC), "picture": bytes(range(256)) * 4})


@given(st.integers(0, 10**6), st.integers(1, 8), st.binary(min_size=1, max_size=6), st.booleans())
@settings(max_examples=400, deadline=None)
def test_mutated_files_are_read_or_refused(seed: int, step: int, junk: bytes, cut: bool) -> None:
    data = bytearray(good_file())
    for i in range(step):
        at = (seed * 7919 + i * 104_729) % len(data)
        data[at : at + len(junk)] = junk
    blob = bytes(data[: seed % len(data)] if cut else data)
    try:
        spec, picture = parse_character(blob)
    except EngineError as error:
        assert error.code == "bad_character"
    else:
        assert isinstance(spec, CharacterSpec) and picture


def test_the_studio_may_import_it() -> None:
    """No torch, cv2, numpy or Qt comes with it."""
    code = (
        "import sys, engine.protocol.character_file, engine.protocol.framing\n"
        "bad = {'torch', 'cv2', 'numpy', 'PySide6', 'PIL'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
