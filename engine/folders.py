"""Where a run of the engine finds models and keeps its cache. Knows nothing of contents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folders:
    cache: Path  # prepared characters; may be deleted at any time
    models: Path | None = None  # face models; None: the user's data folder
