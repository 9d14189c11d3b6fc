"""Options of one engine run: one frozen dataclass, checked once, from TOML and the command line.

Knows nothing of argparse or sockets.
"""

from __future__ import annotations

import dataclasses
import difflib
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.gpus import parse


@dataclass(frozen=True, slots=True)
class Config:
    bind: str = "ipc"  # "ipc", or a host for tcp: 127.0.0.1, 0.0.0.0 (needs CURVE), ...
    port: int = 0  # of the control lane, the others follow; 0: free ones
    runtime_dir: Path | None = None  # sockets live in a new 0700 folder inside
    cache_dir: Path = Path(tempfile.gettempdir()) / "avatar-cache"
    models_dir: Path | None = None  # of the face models; None: the user's data folder
    checkpoints: tuple[Path, ...] = ()  # folders of public video models, or a model's own
    curve_key_dir: Path | None = None
    parent_pid: int = 0  # exit when this process is gone; 0: never
    token: bool = True  # clients must show the token of the ready line
    spare_worker: bool = True  # keep a worker started, so that a session opens at once
    model: str = ""  # named first to studios; --gpus is checked against it
    gpus: str = "1+0"  # of each session: N denoise, M (0 or 1) decode
    model_module: str = ""  # imported in every worker first: may add models
    log_level: str = "info"

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_532:
            raise EngineError("bad_config", f"port {self.port} is not in 0..65532", "use 0")
        if "://" in self.bind:
            raise EngineError(
                "bad_config", f"bind {self.bind!r} is not a host", "give the host, and --port"
            )
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise EngineError(
                "bad_config", f"log_level {self.log_level!r} is not a level",
                "use debug, info, warning or error",
            )  # fmt: skip
        parse(self.gpus)
        if self.parent_pid < 0:
            raise EngineError("bad_config", f"parent_pid {self.parent_pid} is not a process", "")


TYPES: dict[str, type] = {
    "bind": str, "port": int, "runtime_dir": Path, "cache_dir": Path, "models_dir": Path,
    "curve_key_dir": Path, "checkpoints": tuple,
    "parent_pid": int, "token": bool, "spare_worker": bool, "model": str, "gpus": str,
    "model_module": str, "log_level": str,
}  # fmt: skip


def make_config(values: Mapping[str, Any]) -> Config:
    """A checked Config. Raises EngineError("bad_config") naming the nearest key."""
    known = [f.name for f in dataclasses.fields(Config)]
    checked: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise EngineError("bad_config", f"unknown key {key!r}", hint)
        if TYPES[key] is Path:
            value = Path(value).expanduser().absolute() if value is not None else None
        elif key == "checkpoints":
            value = _paths(key, value)
        elif type(value) is not TYPES[key]:
            raise EngineError(
                "bad_config", f"{key} = {value!r} is not {TYPES[key].__name__}", "correct its value"
            )
        checked[key] = value
    return Config(**checked)


def _paths(key: str, value: Any) -> tuple[Path, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(p, str | Path) for p in value):
        raise EngineError("bad_config", f"{key} = {value!r} is no list of folders", "write [...]")
    return tuple(Path(path).expanduser().absolute() for path in value)


def read_config_file(path: Path) -> dict[str, Any]:
    """The keys of a TOML file. Raises EngineError("bad_config")."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise EngineError("bad_config", f"{path} cannot be read ({error})", "correct it") from error
