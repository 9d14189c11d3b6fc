"""One thing to do in a run: a clip, in a configuration, with a seed. Plain data that any process
or machine can be sent.

Knows nothing of how it is done. msgspec only.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from engine.errors import EngineError

FORMAT = 1
DRIVES = ("audio", "phones", "loudness", "rhubarb", "headaudio", "video")
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ +-]{0,63}")


class Configuration(msgspec.Struct, frozen=True, omit_defaults=True):
    """What makes the videos. `drive` "audio" is the model as it ships; "phones" gives its motion
    the clip's own alignment, "loudness", "rhubarb" and "headaudio" that of other lip-sync systems;
    "video" scores files that are there already. `options` and `settings` as `avatar-engine` has
    them."""

    name: str
    model: str = "portrait"
    drive: str = "audio"
    settings: dict[str, float] = {}
    options: dict[str, float] = {}


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """Paths are absolute, or below the folder of the run. `alignment` empty: no phones, `no_phones`
    says why; `unreadable`: what is wrong with the clip, which then fails."""

    clip: str
    configuration: Configuration
    seed: int
    scorer: str
    audio: str
    character: str  # its id
    character_file: str
    language: str = ""
    split: str = ""
    alignment: str = ""
    no_phones: str = ""
    unreadable: str = ""
    video: str = ""  # a finished one; else ours is made
    keep_video: bool = True

    @property
    def place(self) -> Path:
        """Where its result lies in the run, without the extension."""
        return Path(self.configuration.name, f"seed{self.seed}", self.clip)


class RunFile(msgspec.Struct, frozen=True):
    """`run.json`: what a folder of results is of. A run is resumed only with an equal one."""

    format: int
    name: str
    set_version: str
    set_hash: str
    scorer: str
    margins: dict[str, float]
    jobs: list[Job]


def check_configuration(value: Configuration) -> Configuration:
    """The same. Raises EngineError("bad_input") for a name or a drive that cannot be."""
    if not SAFE_NAME.fullmatch(value.name):
        raise EngineError(
            "bad_input", f"configuration name {value.name!r} cannot name a folder",
            "use at most 64 letters, digits, spaces, . _ + -",
        )  # fmt: skip
    if value.drive not in DRIVES:
        problem = f"no drive is called {value.drive!r}"
        raise EngineError("bad_input", problem, f"one of {', '.join(DRIVES)}")
    if value.drive not in ("audio", "video") and value.model != "portrait":
        problem = f"drive {value.drive!r} needs the portrait model, not {value.model!r}"
        raise EngineError("bad_input", problem, "use --model portrait")
    return value
