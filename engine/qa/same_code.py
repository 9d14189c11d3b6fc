"""Is another machine's program the same as this one? Code, ruler, weights, libraries, machine.

Results of programs that differ are never put side by side, so a worker that differs is not used.
Knows nothing of clusters.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from engine.qa.scorer import PACKAGE, code_hash

ASSETS = ("mesh", "motion", "speech")  # what pictures are made from, beside the code
# Each of these computes pixels, sounds or scores; PyAV carries the video encoder.
LIBRARIES = ("numpy", "scipy", "opencv-python-headless", "av", "soxr", "ai-edge-litert")


class Identity(msgspec.Struct, frozen=True):
    """`ruler` is the scorer's code and face models, `code` all of the engine and its assets; both
    hex SHA-256. `processor` is told only: another one may round the last digit otherwise."""

    program: str
    ruler: str
    code: str
    machine: str
    libraries: dict[str, str]
    processor: str = ""


def identity(models: Path | None, more: tuple[str, ...] = ()) -> Identity:
    """Of this process; `models` is the folder of the face models, `more` further libraries.

    Raises EngineError("missing_asset").
    """
    return Identity(
        _version("avatar-studio"),
        code_hash(models),
        _all_code(),
        platform.machine(),
        {name: _version(name) for name in (*LIBRARIES, *more)},
        _processor(),
    )


def difference(there: Identity, here: Identity) -> str:
    """What makes another program of it, in a few words; empty where it is the same."""
    if there.program != here.program:
        return f"it has avatar-studio {there.program}, here is {here.program}"
    if there.ruler != here.ruler:
        return f"its ruler is {there.ruler[:12]}, here is {here.ruler[:12]}"
    if there.code != here.code:
        return f"its code or assets are {there.code[:12]}, here are {here.code[:12]}"
    if there.machine != here.machine:
        return f"it is {there.machine}, here is {here.machine}"
    for name, version in here.libraries.items():
        if (other := there.libraries.get(name, "not installed")) != version:
            return f"it has {name} {other}, here is {version}"
    return ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@cache
def drawing_code() -> str:
    """Hex SHA-256 of what draws a portrait: what a face's gauge depends on beside the ruler."""
    return _hash_of(PACKAGE.glob("portrait/*.py"))


def _all_code() -> str:
    """About 300 files and 4 MB."""
    assets = PACKAGE.parent / "assets"
    own = [path for name in ASSETS for path in (assets / name).rglob("*") if path.is_file()]
    return _hash_of([*PACKAGE.rglob("*.py"), *own])


def _hash_of(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(PACKAGE.parent).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
