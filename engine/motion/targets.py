"""Phone targets: reads and checks `assets/motion/phones.toml`, as arrays.

Knows which coefficient each phone wants, how strongly and how early; nothing of time or audio.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import EngineError
from engine.portrait.coefficients import HIGHEST, INDEX
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONE_INDEX, PHONES

ASSET = Path(__file__).resolve().parents[2] / "assets" / "motion" / "phones.toml"
# A channel is one coefficient, or both sides of a pair under one name.
CHANNELS: dict[str, tuple[str, ...]] = {
    "jawOpen": ("jawOpen",),
    "mouthFunnel": ("mouthFunnel",),
    "mouthPucker": ("mouthPucker",),
    "mouthStretch": ("mouthStretchL", "mouthStretchR"),
    "mouthSmile": ("mouthSmileL", "mouthSmileR"),
    "upperLipUp": ("upperLipUp",),
    "lowerLipDown": ("lowerLipDown",),
    "tongue": ("tongue",),
}
CLOSURE_CHANNELS = ("mouthClose", "mouthRollUpper", "mouthRollLower", "upperLipUp")
_ARTICULATOR_KEYS = {
    "channels", "rise_ms", "fall_ms", "lead_ms", "ahead_ms", "behind_ms", "inertia",
}  # fmt: skip
_CLOSURE_KEYS = {"rise_ms", "fall_ms", "doubt", "sure", "jaw_cap"}
_PHONE_KEYS = {"dominance", "end", "lead_ms", "closure"}


@dataclass(frozen=True, slots=True)
class Closure:
    """One way of shutting the mouth: at the lips, or lower lip against the teeth."""

    phones: np.ndarray  # [members] int, indices into PHONES
    rise_ms: float
    fall_ms: float
    doubt: float  # summed posterior that starts it
    sure: float  # summed posterior that completes it
    jaw_cap: float
    amounts: dict[str, float]  # of CLOSURE_CHANNELS, when complete


@dataclass(frozen=True, slots=True)
class Targets:
    """Everything of the file; G groups, C channels, H heads, P phones."""

    groups: tuple[str, ...]
    channels: tuple[str, ...]
    group_of: np.ndarray  # [C] int
    rise_ms: np.ndarray  # [C]
    fall_ms: np.ndarray  # [C]
    inertia: np.ndarray  # [G]
    start: np.ndarray  # [C, P] amounts
    end: np.ndarray  # [C, P] amounts; equals `start` for all but diphthongs
    pull: np.ndarray  # [G, H, P] dominance x reach of each phone seen at each head
    closures: dict[str, Closure]


@lru_cache(maxsize=4)
def load_targets(path: Path = ASSET) -> Targets:
    """The targets of a file.

    Raises EngineError("missing_asset" or "bad_config") naming the entry that is wrong.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise EngineError("missing_asset", f"{path} is missing", "reinstall the program") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path.name, str(error)) from error
    return parse_targets(tables, path.name)


def parse_targets(tables: dict[str, Any], source: str) -> Targets:
    """Checked targets from the tables of a file called `source` in messages."""
    for part in ("articulators", "closures", "phones"):
        if not isinstance(tables.get(part), dict):
            raise _wrong(source, f"has no [{part}.*]")
    groups, phones = tables["articulators"], tables["phones"]
    for name, group in groups.items():
        _check_keys(source, f"articulators.{name}", group, _ARTICULATOR_KEYS, must_have_all=True)
    channels = tuple(channel for group in groups.values() for channel in group["channels"])
    if sorted(channels) != sorted(CHANNELS):
        raise _wrong(source, f"articulators share out {channels}, not {list(CHANNELS)}")
    if set(phones) != set(PHONES):
        raise _wrong(source, f"phones wrong or missing: {sorted(set(phones) ^ set(PHONES))}")
    for name, phone in phones.items():
        _check_phone(source, name, phone, groups, tables["closures"])
    owner = {channel: g for g, group in enumerate(groups.values()) for channel in group["channels"]}
    by_channel = [list(groups.values())[owner[channel]] for channel in channels]
    start, end = _amounts(phones, channels)
    return Targets(
        groups=tuple(groups),
        channels=channels,
        group_of=np.array([owner[channel] for channel in channels]),
        rise_ms=np.array([group["rise_ms"] for group in by_channel], np.float64),
        fall_ms=np.array([group["fall_ms"] for group in by_channel], np.float64),
        inertia=np.array([group["inertia"] for group in groups.values()], np.float64),
        start=start,
        end=end,
        pull=_pull(groups, phones),
        closures={n: _closure(source, n, t, phones) for n, t in tables["closures"].items()},
    )


def _wrong(source: str, problem: str) -> EngineError:
    return EngineError("bad_config", f"{source}: {problem}", "correct that entry of the file")


def _check_keys(
    source: str, where: str, table: dict[str, Any], allowed: set[str], must_have_all: bool = False
) -> None:
    unknown = set(table) - allowed
    missing = allowed - set(table) if must_have_all else set()
    if unknown or missing:
        raise _wrong(source, f"[{where}] unknown {sorted(unknown)}, missing {sorted(missing)}")


def _check_amounts(source: str, where: str, table: dict[str, Any]) -> None:
    for name, amount in table.items():
        highest = float(HIGHEST[INDEX[CHANNELS.get(name, (name,))[0]]])
        if not isinstance(amount, int | float) or not 0 <= amount <= highest:
            raise _wrong(source, f"[{where}] {name} = {amount}, allowed 0 to {highest:g}")


def _check_phone(
    source: str, name: str, phone: dict[str, Any], groups: dict[str, Any], closures: dict[str, Any]
) -> None:
    where = f"phones.{name}"
    _check_keys(source, where, phone, _PHONE_KEYS | set(CHANNELS))
    _check_keys(source, f"{where}.dominance", phone.get("dominance", {}), set(groups))
    _check_keys(source, f"{where}.end", phone.get("end", {}), set(CHANNELS))
    _check_amounts(source, where, {k: v for k, v in phone.items() if k in CHANNELS})
    _check_amounts(source, f"{where}.end", phone.get("end", {}))
    if phone.get("closure") not in (None, *closures):
        raise _wrong(source, f"[{where}] closure {phone['closure']!r} is none of {list(closures)}")
    if any(value < 0 for value in phone.get("dominance", {}).values()):
        raise _wrong(source, f"[{where}] a dominance is negative")


def _amounts(phones: dict[str, Any], channels: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(start, end) [C, P]; a phone without `end` stays where it starts."""
    start = np.array([[phones[p].get(c, 0.0) for p in PHONES] for c in channels])
    ends = [phones[p].get("end", phones[p]) for p in PHONES]
    return start, np.array([[e.get(c, 0.0) for e in ends] for c in channels])


def _pull(groups: dict[str, Any], phones: dict[str, Any]) -> np.ndarray:
    """[G, H, P]: dominance times an exponential reach around the instant a group looks at."""
    offsets = np.array(HEAD_OFFSETS_MS, np.float64)
    pull = np.zeros((len(groups), len(offsets), len(PHONES)))
    for g, (name, group) in enumerate(groups.items()):
        for p, phone in enumerate(PHONES):
            ahead = offsets - group["lead_ms"] - phones[phone].get("lead_ms", 0.0)
            reach = np.where(ahead > 0, group["ahead_ms"], group["behind_ms"])
            weights = np.exp(-np.abs(ahead) / reach)
            dominance = phones[phone].get("dominance", {}).get(name, 1.0)
            pull[g, :, p] = dominance * weights / weights.sum()
    return pull


def _closure(source: str, name: str, table: dict[str, Any], phones: dict[str, Any]) -> Closure:
    _check_keys(source, f"closures.{name}", table, _CLOSURE_KEYS | set(CLOSURE_CHANNELS))
    missing = _CLOSURE_KEYS - set(table)
    if missing:
        raise _wrong(source, f"[closures.{name}] lacks {sorted(missing)}")
    amounts = {k: float(v) for k, v in table.items() if k in CLOSURE_CHANNELS}
    _check_amounts(source, f"closures.{name}", amounts)
    if not 0 < table["doubt"] < table["sure"] <= 1:
        raise _wrong(source, f"[closures.{name}] wants 0 < doubt < sure <= 1")
    members = [PHONE_INDEX[p] for p in PHONES if phones[p].get("closure") == name]
    return Closure(
        phones=np.array(members, int),
        amounts=amounts,
        **{key: float(table[key]) for key in _CLOSURE_KEYS},
    )
