"""What `doctor` says of installed public models: whole or not, their licence, what they lack.

Knows nothing of how rows are shown.
"""

from __future__ import annotations

from engine.folders import Folders
from engine.models.inventory import Entry, installed

Row = tuple[str, str, str, str]  # (what, status, found, remedy), as `engine.doctor` shows them


def model_rows(folders: Folders) -> list[Row]:
    """One row a model; one that says where to put them when there is none."""
    entries = installed(folders)
    if not entries:
        where = ", ".join(str(path) for path in folders.checkpoints) or "no folder is looked into"
        found = f"none; looked for in {where}"
        return [("Public models", "ok", found, "")]
    return [_row(entry) for entry in entries]


def _row(entry: Entry) -> Row:
    what = f"Model {entry.name}"
    if entry.problem:
        return (what, "warning", entry.problem, "")
    found = "; ".join([entry.line, entry.fit, f"licence {entry.licence.line}", *entry.notes])
    good = entry.runs and entry.fits
    return (what, "ok" if good else "warning", found, "; ".join(entry.lacks))
