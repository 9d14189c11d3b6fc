"""The keys with which the studio talks to an engine on another machine, read from a folder.

The engine's `--curve-key-dir` makes them: `engine.key` (its public key) and `studio.key_secret`
(ours) are what is carried over. Knows nothing of sockets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import zmq.auth

from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class EngineKeys:
    """Z85 keys: the engine's public one and our pair."""

    server: bytes
    public: bytes
    secret: bytes


def load_keys(folder: str) -> EngineKeys | None:
    """Keys in `folder`, None for "". EngineError("bad_config") names the file that is missing."""
    if not folder:
        return None
    engine_file, ours_file = Path(folder) / "engine.key", Path(folder) / "studio.key_secret"
    hint = "copy engine.key and studio.key_secret from the engine's --curve-key-dir"
    for file in (engine_file, ours_file):
        if not file.is_file():
            raise EngineError("bad_config", f"{file} is missing", hint)
    try:
        server, _ = zmq.auth.load_certificate(engine_file)
        public, secret = zmq.auth.load_certificate(ours_file)
    except (OSError, ValueError) as error:
        raise EngineError("bad_config", f"keys in {folder} cannot be read", hint) from error
    if secret is None:
        raise EngineError("bad_config", f"{ours_file} holds no secret key", hint)
    return EngineKeys(server, public, secret)
