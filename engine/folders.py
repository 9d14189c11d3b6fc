"""Where a run of the engine finds models and keeps its cache, and how its processes are told.

Knows nothing of contents.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True, slots=True)
class Folders:
    cache: Path  # prepared characters, FP8 weights, prompts; may be deleted at any time
    models: Path | None = None  # face models; None: the user's data folder
    checkpoints: tuple[Path, ...] = ()  # of public video models: folders of them, or a model's own


def default_checkpoints() -> Path:
    """Where the user's video models are looked for, unless told otherwise."""
    return platformdirs.user_data_path("avatar-studio", appauthor=False) / "checkpoints"


def as_arguments(folders: Folders) -> list[str]:
    """For the command line of another process of this engine."""
    return [
        "--cache-dir", str(folders.cache), "--models-dir", str(folders.models or ""),
        "--checkpoints", os.pathsep.join(map(str, folders.checkpoints)),
    ]  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `as_arguments` writes."""
    parser.add_argument("--cache-dir", required=True)
    parser.add_argument("--models-dir", default="")
    parser.add_argument("--checkpoints", default="", help=f"joined by {os.pathsep!r}")


def from_arguments(options: argparse.Namespace) -> Folders:
    listed = [Path(text) for text in options.checkpoints.split(os.pathsep) if text]
    models = Path(options.models_dir) if options.models_dir else None
    return Folders(Path(options.cache_dir), models, tuple(listed))
