"""Where a run of the engine finds models and keeps its cache. Knows nothing of contents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True, slots=True)
class Folders:
    cache: Path  # prepared characters; may be deleted at any time
    models: Path | None = None  # face models; None: the user's data folder
    checkpoints: tuple[Path, ...] = ()  # of public video models: folders, or a model's own


def default_checkpoints() -> Path:
    """Where the user's video models are looked for, unless told otherwise."""
    return platformdirs.user_data_path("avatar-studio", appauthor=False) / "checkpoints"
