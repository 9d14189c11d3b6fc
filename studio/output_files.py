"""Names and folders of recordings and snapshots. Knows nothing of what is written into them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices

from studio.settings import StudioSettings

Location = QStandardPaths.StandardLocation
FolderOf = Callable[[StudioSettings], Path]


def record_folder(settings: StudioSettings) -> Path:
    return _folder(settings.text("record_folder"), Location.MoviesLocation)


def snapshot_folder(settings: StudioSettings) -> Path:
    return _folder(settings.text("snapshot_folder"), Location.PicturesLocation)


def new_path(folder: Path, name: str, suffix: str, now: datetime) -> Path:
    """A path that does not exist: the character's name and the local time, safe on every disk."""
    stem = re.sub(r'[\\/:*?"<>|\x00-\x1f.]+', " ", name).strip()[:60] or "Avatar"
    base = f"{stem} {now:%Y-%m-%d %H.%M.%S}"
    path = folder / f"{base}{suffix}"
    number = 2
    while path.exists():
        path = folder / f"{base} {number}{suffix}"
        number += 1
    return path


def _folder(chosen: str, place: Location) -> Path:
    if chosen:
        return Path(chosen).expanduser()
    standard = QStandardPaths.writableLocation(place)
    return (Path(standard) if standard else Path.home()) / "Avatar Studio"


def show_folder(folder: Path) -> None:
    """Open a folder in the desktop's file browser; it is made when it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
