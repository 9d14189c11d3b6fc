"""A model put together from files that lie elsewhere: `avatar-model.toml` in a folder of its own.

    base = "../Wan2.2-S2V-14B"                        # folder or weights file
    lora = "../Live-Avatar/liveavatar.safetensors"    # optional
    schedule = "live-avatar"                          # optional, see engine/models/schedules.py
    prompt = "A person talks to the camera."          # optional
    picture = "528x816"                               # optional, across and down, in pixels
    decoder = "taehv"                                 # optional: the tiny one, faster and softer

A smaller picture is faster; it is enlarged to 704x1088 when shown and has to have that shape.
Paths are relative to the file. Nothing is copied. Knows nothing of what the files hold.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from engine.clock import HEIGHT, WIDTH
from engine.errors import EngineError
from engine.models.checkpoint.tensor_file import refused
from engine.models.dit_config import DitConfig

NAME = "avatar-model.toml"
KEYS = ("base", "lora", "schedule", "prompt", "picture", "decoder")
DECODERS = ("full", "taehv")
COARSEST = 4  # tokens that one packed token of a talking model's past covers, each way
RATIO, SLACK = WIDTH / HEIGHT, 0.05


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where a model comes from and how it is run; empty: as the files themselves say."""

    base: Path
    lora: Path | None = None
    schedule: str = ""
    prompt: str = ""
    picture: tuple[int, int] = (0, 0)  # pixels across and down
    decoder: str = "full"  # one of DECODERS


def recipe_of(path: Path) -> Recipe:
    """Of a model's folder or file; without an `avatar-model.toml`, itself.

    Raises EngineError("bad_checkpoint") when it cannot be understood.
    """
    file = path / NAME
    if not file.is_file():
        return Recipe(path)
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise refused(file, f"cannot be read ({error})", "correct it") from error
    wrong = [key for key, value in said.items() if key not in KEYS or not isinstance(value, str)]
    if wrong or "base" not in said:
        why = f"{wrong[0]!r} is not understood" if wrong else "names no base"
        raise refused(file, why, f"use texts for {', '.join(KEYS)}")
    lora = path / said["lora"] if "lora" in said else None
    size = _picture(file, said["picture"]) if "picture" in said else (0, 0)
    schedule, prompt = said.get("schedule", ""), said.get("prompt", "")
    decoder = said.get("decoder", "full")
    if decoder not in DECODERS:
        raise refused(file, f"decoder {decoder!r} is not known", f"use {' or '.join(DECODERS)}")
    return Recipe(path / said["base"], lora, schedule, prompt, size, decoder)


def _picture(file: Path, text: str) -> tuple[int, int]:
    across, _, down = text.partition("x")
    if not (across.isdecimal() and down.isdecimal() and 16 <= int(across) <= int(down) <= 4096):
        raise refused(file, f"picture {text!r} is not understood", 'use such as "528x816"')
    if abs(int(across) / int(down) / RATIO - 1) > SLACK:
        raise refused(file, f"picture {text!r} has not the shape of 704x1088", 'use "528x816"')
    return int(across), int(down)


def resized(config: DitConfig, picture: tuple[int, int]) -> DitConfig:
    """The model at the nearest size that its tokens allow; (0, 0) leaves its own."""
    if not picture[0]:
        return config
    token = config.patch * (16 if config.latent_channels == 48 else 8)  # pixels, each way
    across, down = (max(1, round(side / token)) for side in picture)
    if config.speech is not None and across < COARSEST:
        raise EngineError(
            "bad_checkpoint", f"a picture {picture[0]} pixels across is too small for this model",
            f"use {COARSEST * token} or more",
        )  # fmt: skip
    return replace(config, grid=(down, across))
