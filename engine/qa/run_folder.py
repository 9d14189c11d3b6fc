"""The folder of a run: `run.json`, one JSON a result, one MP4 a video. Written so that a run that
was stopped anywhere goes on where it was.

Knows nothing of how results are made. Needs msgspec alone, so that the studio may read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from engine.errors import EngineError
from engine.qa.jobs import FORMAT, Job, RunFile
from engine.qa.report import ClipResult

ALIGNMENTS = "alignments"  # of users' clips: written before the run is known
REMEDY = "name another folder, or delete this one"


class RunFolder:
    """`open` makes or reopens it; everything else reads and writes single files."""

    def __init__(self, path: Path, run: RunFile) -> None:
        self.path = path
        self.run = run

    @classmethod
    def open(cls, path: Path, run: RunFile) -> RunFolder:
        """A new folder, or the same run's to go on with.

        Raises:
            EngineError: "bad_input" where another run is in it, or it cannot be written.
        """
        if (path / "run.json").is_file():
            old = read_run(path)
            if old != run:
                raise EngineError(
                    "bad_input", f"{path} holds another run: {_change(old, run)}", REMEDY
                )
            return cls(path, run)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(inside.name != ALIGNMENTS for inside in path.iterdir()):
                raise EngineError("bad_input", f"{path} is not empty and holds no run", REMEDY)
            write_whole(path / "run.json", msgspec.json.format(msgspec.json.encode(run), indent=1))
        except OSError as error:
            problem = f"{path} cannot be written ({error.strerror})"
            raise EngineError("bad_input", problem, "name another folder") from error
        return cls(path, run)

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """Raises EngineError("bad_input" or "bad_config") where there is no sound run."""
        return cls(path, read_run(path))

    def result_file(self, job: Job) -> Path:
        return self.path / "results" / job.place.with_name(job.place.name + ".json")

    def video_file(self, job: Job) -> Path:
        return self.path / "videos" / job.place.with_name(job.place.name + ".mp4")

    def result(self, job: Job) -> ClipResult | None:
        """None where it is not done yet, or its file is damaged: it will be made again."""
        try:
            found = msgspec.json.decode(self.result_file(job).read_bytes(), type=ClipResult)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return found if found.scorer == job.scorer else None

    def store(self, job: Job, result: ClipResult) -> None:
        path = self.result_file(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(result))

    def forget(self, job: Job) -> None:
        """Makes the job be done again."""
        self.result_file(job).unlink(missing_ok=True)
        self.video_file(job).unlink(missing_ok=True)

    def results(self) -> list[ClipResult]:
        """Those that are done, in the order of the run."""
        found = (self.result(job) for job in self.run.jobs)
        return [result for result in found if result is not None]

    def waiting(self, again: Iterable[str] = (), failed: bool = False) -> list[Job]:
        """Jobs without a result; clips named in `again`, or all `failed` ones, are forgotten first.
        `again` names a clip, or one job of it as CONFIGURATION/seedN/CLIP.

        Raises EngineError("bad_input") for a clip that the run has not.
        """
        wanted = set(again)
        known = {name for job in self.run.jobs for name in (job.clip, job.place.as_posix())}
        if unknown := wanted - known:
            problem = f"the run has no clip {sorted(unknown)[0]!r}"
            raise EngineError("bad_input", problem, "its clips are listed in run.json")
        for job in self.run.jobs:
            done = self.result(job)
            named = job.clip in wanted or job.place.as_posix() in wanted
            if named or (failed and done is not None and done.failed):
                self.forget(job)
        return [job for job in self.run.jobs if self.result(job) is None]


def read_run(path: Path) -> RunFile:
    """The `run.json` of a folder. Raises EngineError, one line."""
    try:
        run = msgspec.json.decode((path / "run.json").read_bytes(), type=RunFile)
    except FileNotFoundError as error:
        raise EngineError("bad_input", f"{path} holds no run", "name a run's folder") from error
    except msgspec.DecodeError as error:
        raise EngineError("bad_config", f"{path}/run.json is damaged: {error}", REMEDY) from error
    if run.format != FORMAT:
        problem = f"{path} has run format {run.format}, this program reads {FORMAT}"
        raise EngineError("bad_config", problem, "run it again")
    return run


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing: a reader never sees half a file."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def _change(old: RunFile, new: RunFile) -> str:
    if old.scorer != new.scorer:
        return f"scored by ruler {old.scorer}, this one is {new.scorer}"
    if old.set_hash != new.set_hash:
        return "made from another set of clips"
    return f"{len(old.jobs)} jobs of other configurations, seeds or clips"
