"""One table of settings: what the studio remembers between runs, in a JSON file, and its CLI flags.

Adding a setting is adding a row. Unknown keys in the file are kept (a newer studio wrote them), a
value of the wrong type or out of range falls back to the default. Knows nothing of Qt or engines.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError

Value = str | float | bool | int | list[str]


@dataclass(frozen=True, slots=True)
class Setting:
    """A row: key, default (its type is the type), one line of help, limits, and a flag if any."""

    key: str
    default: Value
    what: str
    low: float | None = None
    high: float | None = None
    flag: str = ""


TABLE: tuple[Setting, ...] = (
    Setting("engine", "", "engine to use instead of a local one, tcp://host:port", flag="--engine"),
    Setting("engine_token", "", "token that the engine printed", flag="--engine-token"),
    Setting("engine_keys", "", "folder of an engine's CURVE keys", flag="--engine-keys"),
    Setting("model", "portrait", "model that makes the picture", flag="--model"),
    Setting("checkpoints", [], "further folders in which the local engine looks for models"),
    Setting("measurements", [], "newest measurement of each model, JSON"),
    Setting("microphone", "", "microphone by name; empty is the default", flag="--microphone"),
    Setting("speaker", "", "speaker by name; empty is the default", flag="--speaker"),
    Setting("monitor", False, "hear the microphone, delayed so that lips and sound agree"),
    Setting("gate_db", -60.0, "noise gate, dBFS; -100 is off", low=-100.0, high=0.0),
    Setting("frames_per_chunk", 0, "frames a chunk, 0 for the model's own", low=0, high=16),
    Setting("voice", "microphone", "source of the voice: microphone or file"),
    Setting("audio_file", "", "last audio file", flag="--audio"),
    Setting("character", "", "last character file or picture", flag="--character"),
    Setting("recent_characters", [], "recent character files, newest first"),
    Setting("record_folder", "", "where recordings go; empty is the videos folder"),
    Setting("snapshot_folder", "", "where snapshots go; empty is the pictures folder"),
    Setting("quality_folder", "", "where lip-sync runs go; empty is the user's data folder"),
    Setting("hud", True, "show fps and latency over the picture"),
    Setting("view", "fit", "fit or 1:1"),
    Setting("window", "", "geometry and docks of the main window, base64"),
)
ROWS = {row.key: row for row in TABLE}


class StudioSettings:
    """Values by key. `set` saves at once (atomically) when there is a file behind it."""

    def __init__(self, path: Path | None = None, overrides: dict[str, Value] | None = None) -> None:
        self._path = path
        self._overrides = dict(overrides or {})  # from the command line: win, never saved
        self._stored: dict[str, Value] = _load(path) if path else {}

    def get(self, key: str) -> Value:
        row = ROWS[key]
        value = self._overrides.get(key, self._stored.get(key, row.default))
        return value if is_valid(row, value) else row.default

    def text(self, key: str) -> str:
        return str(self.get(key))

    def flag(self, key: str) -> bool:
        return bool(self.get(key))

    def number(self, key: str) -> float:
        value = self.get(key)
        assert isinstance(value, int | float), f"{key} is no number"
        return float(value)

    def strings(self, key: str) -> list[str]:
        value = self.get(key)
        assert isinstance(value, list), f"{key} is no list"
        return list(value)

    def set(self, key: str, value: Value) -> None:
        row = ROWS[key]
        if not is_valid(row, value):
            limits = f" from {row.low} to {row.high}" if row.low is not None else ""
            kind = type(row.default).__name__
            raise EngineError("bad_config", f"{key} = {value!r}", f"give a {kind}{limits}")
        self._overrides.pop(key, None)
        if self._stored.get(key) != value:
            self._stored[key] = value
            self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(self._stored, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(draft, self._path)  # noqa: PTH105 - atomic, over an existing file


def is_valid(row: Setting, value: object) -> bool:
    """True when `value` has the type of the row's default and lies within its limits."""
    if isinstance(row.default, bool) or isinstance(value, bool):
        return isinstance(row.default, bool) and isinstance(value, bool)
    if isinstance(row.default, list):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(row.default, str):
        return isinstance(value, str)
    if not isinstance(value, int | float) or (isinstance(row.default, int) and value % 1):
        return False
    low = float("-inf") if row.low is None else row.low
    high = float("inf") if row.high is None else row.high
    return low <= value <= high


def add_flags(parser: argparse.ArgumentParser) -> None:
    """A flag for every row that names one."""
    for row in TABLE:
        if row.flag:
            parser.add_argument(row.flag, dest=row.key, default=None, help=row.what)


def overrides_from(arguments: argparse.Namespace) -> dict[str, Value]:
    """What the command line gave; the rest stays with the file."""
    given = {row.key: getattr(arguments, row.key, None) for row in TABLE if row.flag}
    return {key: value for key, value in given.items() if value is not None}


def _load(path: Path) -> dict[str, Value]:
    """The file's map, or an empty one when it is missing or damaged (it is written anew)."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
