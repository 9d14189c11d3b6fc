"""The `report` part of `avatar-qa`: a run's page, CSV and JSON, written into the run's folder.

0 written, 2 bad input. Knows nothing of how clips are scored or compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.qa.compare import compare
from engine.qa.compare_command import side
from engine.qa.jobs import Job
from engine.qa.page import Page, write_page
from engine.qa.report import ClipResult
from engine.qa.ruler_command import ruler_of
from engine.qa.run_folder import RunFolder
from engine.qa.tables import write_tables
from engine.qa.workers import cores

SAY_EVERY_S = 2.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's folder, or FOLDER:CONFIGURATION")
    parser.add_argument("--baseline", metavar="A", help="another run: adds the comparison with it")
    parser.add_argument(
        "--validation",
        type=Path,
        help="validation.json of `avatar-qa validate`; without, the run's or the shipped one",
    )
    parser.add_argument("--models", type=Path, help="folder of the face models")
    parser.add_argument("--out", type=Path, help="the page (default: in the run's folder)")
    parser.add_argument("--junit", action="store_true", help="junit.xml too, for build servers")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Raises EngineError."""
    folder, chosen = folder_of(arguments.run)
    everything = folder.results()
    results = [r for r in everything if chosen in ("", r.configuration)]
    if not results:
        raise EngineError("bad_input", f"{arguments.run} holds no result yet", "finish the run")
    comparison = None
    if arguments.baseline:
        a, margins = side(arguments.baseline)
        comparison = compare(a, side(arguments.run)[0], margins)
    jobs = {(j.clip, j.configuration.name, j.seed): j for j in folder.run.jobs}
    path = arguments.out or folder.path / (f"report {chosen}.html" if chosen else "report.html")
    page = Page(
        results, folder.run.set_version, folder.run.set_hash, comparison=comparison,
        ruler=ruler_of(folder.path, arguments.validation, arguments.models), beside=path.parent,
        threads=cores(),
        video_of=lambda r: video_of(folder, _job(jobs, r)),
        sound_of=lambda r: sound_of(_job(jobs, r)), made=progress_of(len(results)),
    )  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_page(path, page)
        # Beside the run the tables are of all of it: one configuration's would replace them.
        told = everything if path.parent == folder.path else results
        write_tables(path.parent, told, arguments.junit)
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror})"
        raise EngineError("bad_input", problem, "name another file with --out") from error
    said = {"page": str(path), "clips": len(results)}
    print(msgspec.json.encode(said).decode() if arguments.json else str(path))  # noqa: T201
    return 0


def progress_of(of: int) -> Callable[[int], None]:
    """Counts clips and says on stderr, at most every SAY_EVERY_S, how many have their pictures."""
    done, begun, said = 0, time.monotonic(), time.monotonic()

    def made(more: int) -> None:
        nonlocal done, said
        done += more
        now = time.monotonic()
        if now - said >= SAY_EVERY_S:
            said = now
            left_s = (now - begun) * (of - done) / done
            line = f"pictures of {done} of {of} clips, about {left_s:.0f} s left"
            print(line, file=sys.stderr)  # noqa: T201

    return made


def folder_of(name: str) -> tuple[RunFolder, str]:
    """(the run, the configuration that was named or ""). Raises EngineError."""
    if Path(name).is_dir() or ":" not in name:
        return RunFolder.existing(Path(name)), ""
    folder, _, configuration = name.rpartition(":")
    return RunFolder.existing(Path(folder)), configuration


def video_of(folder: RunFolder, job: Job) -> Path | None:
    path = Path(job.video) if job.video else folder.video_file(job)
    return path if path.is_file() else None


def sound_of(job: Job) -> np.ndarray | None:
    """The clip's PCM [n], None where it can no longer be read: the page then has no waveform."""
    try:
        return read_whole(Path(job.audio))
    except EngineError:
        return None


def _job(jobs: dict[tuple[str, str, int], Job], result: ClipResult) -> Job:
    return jobs[result.clip, result.configuration, result.seed]
