"""The newest measurement of each model, kept in the settings with its date and circumstances.

Knows nothing of how a model is measured.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from engine.protocol.messages import ModelBenched
from studio.settings import StudioSettings

KEEP = 50  # models


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """`at` is local time as ISO 8601 to the minute; `beside` what else the engine ran meanwhile."""

    model: str
    device: str
    fps: float
    first_chunk_ms: float
    stage_ms: dict[str, float]
    frames: int
    seconds: float
    peak_bytes: int
    synthetic: bool
    at: str
    beside: str = ""


def measurement(benched: ModelBenched, now: datetime, beside: str) -> Measurement:
    """What the engine reported, with date and company."""
    fields = msgspec.structs.asdict(benched)
    return Measurement(**fields, at=f"{now:%Y-%m-%d %H:%M}", beside=beside)


def kept(settings: StudioSettings) -> dict[str, Measurement]:
    """By model; lines that cannot be read are left out."""
    found: dict[str, Measurement] = {}
    for line in settings.strings("measurements"):
        try:
            row = msgspec.json.decode(line, type=Measurement)
        except msgspec.DecodeError:  # of another version, or edited by hand
            continue
        found[row.model] = row
    return found


def keep(settings: StudioSettings, new: Measurement) -> None:
    """Put `new` in the place of the model's former one; the oldest of many go."""
    rows = kept(settings)
    rows.pop(new.model, None)
    rows[new.model] = new
    newest = list(rows.values())[-KEEP:]
    settings.set("measurements", [msgspec.json.encode(row).decode() for row in newest])
