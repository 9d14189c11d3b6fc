"""Pictures for the tests: a shipped character and generated ones."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from engine.portrait.face_model import DETECTOR, default_folder
from engine.protocol.character_file import read_character

ROOT = Path(__file__).resolve().parents[2]
CHARACTERS = sorted((ROOT / "assets" / "characters").glob("*.avatar"))
PORTRAITS = ROOT.parent / "shared" / "data" / "portraits"

needs_models = pytest.mark.skipif(
    not (default_folder() / DETECTOR).is_file(), reason="run python packaging/face_model.py"
)


def character_picture(name: str) -> bytes:
    return read_character(ROOT / "assets" / "characters" / f"{name}.avatar")[1]


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def face_image() -> Image.Image:
    """Mira, 440x680."""
    image = Image.open(io.BytesIO(character_picture("mira"))).convert("RGB")
    return image.resize((440, 680), Image.Resampling.LANCZOS)
