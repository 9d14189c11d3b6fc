"""Lip-sync runs on disk as the studio sees them: which there are, what is done, what is left.

A run is a folder with `run.json` and one JSON a result, written by the child process; here it is
only read. Knows nothing of how clips are rendered, scored or shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from engine.errors import EngineError
from engine.qa.report import PRIMARY, ClipResult

ASSETS_QA = Path(__file__).resolve().parents[1] / "assets" / "qa"
OPENED = "opened.txt"  # beside the runs: folders of runs from elsewhere, one a line
USER_SET = "user"  # the set version of a person's own folder


@dataclass(frozen=True, slots=True)
class Job:
    """One clip of a run: its files, and who speaks it."""

    clip: str
    seed: int
    language: str
    character: str
    character_file: Path
    audio: Path
    video: Path
    result_file: Path

    @property
    def key(self) -> tuple[str, int]:
        return self.clip, self.seed

    def place(self, folder: Path) -> str:
        """What the command calls this job of the run in `folder`: CONFIGURATION/seedN/CLIP."""
        return self.result_file.relative_to(folder / "results").as_posix().removesuffix(".json")


@dataclass(slots=True)
class Side:
    """One configuration of a run: what a table shows and what is compared. `refresh` reads new
    results; a file that has not changed is not read again."""

    folder: Path
    configuration: str
    jobs: list[Job]
    alone: bool  # the only configuration of its run
    _kept: dict[Path, tuple[int, ClipResult | None]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.folder.name if self.alone else f"{self.folder.name}: {self.configuration}"

    @property
    def argument(self) -> str:
        """How `avatar-qa compare` is told of it."""
        return str(self.folder) if self.alone else f"{self.folder}:{self.configuration}"

    def refresh(self) -> dict[tuple[str, int], ClipResult]:
        """Results by (clip, seed), those that are done."""
        found = ((job.key, self._result(job.result_file)) for job in self.jobs)
        return {key: result for key, result in found if result is not None}

    @property
    def is_complete(self) -> bool:
        return len(self.refresh()) == len(self.jobs)

    def _result(self, path: Path) -> ClipResult | None:
        try:
            stamp = path.stat().st_mtime_ns
            if self._kept.get(path, (0, None))[0] != stamp:
                self._kept[path] = (stamp, msgspec.json.decode(path.read_bytes(), type=ClipResult))
        except (OSError, msgspec.DecodeError):
            return None
        return self._kept[path][1]


def sides_of(folder: Path) -> list[Side]:
    """The configurations of one run; empty where the folder holds no sound run."""
    run = _run(folder)
    if run is None:
        return []
    jobs: dict[str, list[Job]] = {}
    try:
        for row in run["jobs"]:
            jobs.setdefault(row["configuration"]["name"], []).append(_job(folder, row))
    except (KeyError, TypeError):
        return []
    return [Side(folder, name, rows, len(jobs) == 1) for name, rows in jobs.items()]


def all_sides(runs: Path) -> list[Side]:
    """Every configuration of every run below `runs` or opened from elsewhere, newest first."""
    try:
        folders = [p for p in runs.iterdir() if (p / "run.json").is_file()]
    except OSError:
        folders = []
    folders += [p for p in opened(runs) if (p / "run.json").is_file() and p.parent != runs]
    folders.sort(key=lambda p: (p / "run.json").stat().st_mtime_ns, reverse=True)
    return [side for folder in folders for side in sides_of(folder)]


def opened(runs: Path) -> list[Path]:
    """Folders of runs that were made elsewhere, as remembered."""
    try:
        lines = (runs / OPENED).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [Path(line) for line in dict.fromkeys(lines) if line]


def remember(runs: Path, folder: Path) -> None:
    """Raises EngineError where the folder holds no run, or it cannot be kept."""
    if not sides_of(folder):
        raise EngineError("bad_input", f"{folder} holds no run", "choose a folder with run.json")
    lines = [str(p) for p in dict.fromkeys([*opened(runs), folder.absolute()])]
    try:
        runs.mkdir(parents=True, exist_ok=True)
        (runs / OPENED).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        problem = f"{runs} cannot be written ({error.strerror})"
        raise EngineError("bad_input", problem, "free the disk or set quality_folder") from error


def new_folder(runs: Path, name: str) -> Path:
    """A folder below `runs` that is not there yet, called after `name`."""
    stem = re.sub(r"[^\w .+-]", " ", name).strip(" .")[:60] or "Run"
    path, count = runs / stem, 2
    while path.exists():
        path, count = runs / f"{stem} {count}", count + 1
    return path


def resume_arguments(folder: Path) -> list[str]:
    """`avatar-qa run` with the very jobs of this run. Raises EngineError where it is damaged."""
    run = _run(folder)
    if run is None or not run.get("jobs"):
        raise EngineError("bad_input", f"{folder.name} cannot be resumed", "start a new run")
    jobs = run["jobs"]
    clips = list(dict.fromkeys(row["clip"] for row in jobs))
    seeds = sorted({row["seed"] for row in jobs if row["configuration"].get("drive") != "video"})
    given = ["--out", str(folder), "--name", run["name"], *_source(run, jobs[0])]
    made = {row["configuration"]["name"]: row["configuration"] for row in jobs}
    for one in made.values():
        if one.get("drive") != "video":
            given += ["--configuration", _configuration(one)]
            given += _pairs("--options", one.get("options", {}))
    given += ["--seeds", ",".join(map(str, seeds or [1]))]
    if not all(row.get("keep_video", True) for row in jobs):
        given.append("--no-videos")
    return [*given, "--only", *clips]


def headline(results: Iterable[ClipResult]) -> float | None:
    """The mean of the primary score over the clips that have one."""
    values = [v for r in results if (v := r.value(PRIMARY)) is not None]
    return sum(values) / len(values) if values else None


def _run(folder: Path) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode((folder / "run.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return found if isinstance(found, dict) else None


def _job(folder: Path, row: dict[str, Any]) -> Job:
    place = Path(row["configuration"]["name"], f"seed{row['seed']}", row["clip"])
    ours = folder / "videos" / place.with_name(f"{place.name}.mp4")
    return Job(
        row["clip"], row["seed"], row.get("language", ""), row.get("character", ""),
        Path(row.get("character_file", "")), Path(row.get("audio", "")),
        Path(row["video"]) if row.get("video") else ours,
        folder / "results" / place.with_name(f"{place.name}.json"),
    )  # fmt: skip


def _source(run: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """Which clips: the set that lies beside their audio, or a person's own folder."""
    if run.get("set_version") != USER_SET:
        return ["--set", str(Path(first["audio"]).parents[1])]
    folder = Path(first.get("video") or first["audio"]).parent
    speaker = first.get("character")
    return ["--clips", str(folder), *(["--character", speaker] if speaker else [])]


def _configuration(one: dict[str, Any]) -> str:
    words = {"model": one.get("model", "portrait"), "drive": one.get("drive", "audio")}
    pairs = {**words, **one.get("settings", {})}
    return f"{one['name']}:" + ",".join(f"{key}={value}" for key, value in pairs.items())


def _pairs(flag: str, values: dict[str, float]) -> list[str]:
    return [flag, ",".join(f"{k}={v}" for k, v in values.items())] if values else []
