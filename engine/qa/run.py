"""A run: clips x configurations x seeds, scored by processes on all cores into a folder.

It may be stopped anywhere and goes on where it was. A bad clip is a failed result, never the end.
Same set, ruler, configuration and seed give the same results apart from timings. Knows nothing of
reports or comparisons.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from engine.qa.alignment import write_alignment
from engine.qa.clip_set import Clip, ClipSet
from engine.qa.jobs import FORMAT, Configuration, Job, RunFile, check_configuration
from engine.qa.report import ClipResult
from engine.qa.run_folder import ALIGNMENTS, RunFolder
from engine.qa.workers import Task, Tools, do_all


@dataclass(frozen=True, slots=True)
class Progress:
    """After each clip. `rate` in clips a minute since this start, `left_s` at that rate."""

    done: int
    total: int
    failed: int
    rate: float
    left_s: float
    job: Job
    result: ClipResult


Tell = Callable[[Progress], None]
DoAll = Callable[[Sequence[Task], int, Tools], Generator[tuple[Job, ClipResult], None, None]]
VIDEO_ONLY = Configuration("videos", model="", drive="video")


def plan(
    clips: ClipSet,
    configurations: Sequence[Configuration],
    seeds: Sequence[int],
    scorer: str,
    folder: Path,
    name: str = "",
    keep_videos: bool = True,
) -> RunFile:
    """What there is to do, in order of character so that a process seldom changes it.

    Finished videos are scored once each, whatever the configurations and seeds. Alignments that
    were made just now are written into `folder`.

    Raises:
        EngineError: "bad_input" for a configuration or seed that cannot be, or a double name.
    """
    names = [check_configuration(c).name for c in configurations]
    if doubles := {n for n in names if names.count(n) > 1}:
        raise EngineError("bad_input", f"two configurations are called {doubles.pop()!r}", "rename")
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise EngineError("bad_input", f"seeds {list(seeds)}", "give different ones from 0 up")
    jobs = [
        _job(clip, clips, configuration, seed, scorer, folder, keep_videos)
        for configuration in configurations
        for seed in seeds
        for clip in sorted(clips.clips, key=lambda c: c.character)
        if clip.video is None
    ]
    jobs += [
        _job(clip, clips, VIDEO_ONLY, 0, scorer, folder, True)
        for clip in clips.clips
        if clip.video is not None
    ]
    title = name or folder.name
    return RunFile(FORMAT, title, clips.version, clips.hash, scorer, clips.margins, jobs)


def _job(
    clip: Clip,
    clips: ClipSet,
    configuration: Configuration,
    seed: int,
    scorer: str,
    folder: Path,
    keep_video: bool,
) -> Job:
    path = clip.alignment_file
    if path is None and clip.aligned is not None:
        path = folder / ALIGNMENTS / f"{clip.id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_alignment(path, clip.id, clip.aligned)
    return Job(
        clip=clip.id,
        configuration=configuration,
        seed=seed,
        scorer=scorer,
        audio=str(clip.audio.absolute()),
        character=clip.character if clip.video is None else "",
        character_file=str(clips.characters[clip.character].file),
        language=clip.language,
        split=clip.split,
        alignment=str(path.absolute()) if path else "",
        no_phones=clip.no_phones,
        unreadable=clip.no_phones if clip.samples == 0 else "",
        video=str(clip.video.absolute()) if clip.video else "",
        keep_video=keep_video,
    )


def run(
    folder: RunFolder,
    tools: Tools,
    workers: int,
    tell: Tell,
    again: Iterable[str] = (),
    retry_failed: bool = False,
    stop: Callable[[], bool] = lambda: False,
    do: DoAll = do_all,
) -> list[ClipResult]:
    """Does what is not done yet; `again` names clips to do anew. All results, in order.

    `do` makes them: processes of this machine, or a cluster's (see `engine.qa.cluster`).
    `stop` is asked after each clip: what is under way then is dropped and done by the next run.
    """
    waiting = folder.waiting(again, retry_failed)
    total, begun = len(folder.run.jobs), time.monotonic()
    before = total - len(waiting)
    failed = sum(bool(result.failed) for result in folder.results())
    tasks = [Task(job, str(folder.video_file(job))) for job in waiting]
    with closing(do(tasks, workers, tools)) as results:  # ends its workers also on Ctrl-C
        for count, (job, result) in enumerate(results, 1):
            folder.store(job, result)
            failed += bool(result.failed)
            rate = count / (time.monotonic() - begun)
            left = (len(waiting) - count) / rate
            tell(Progress(before + count, total, failed, rate * 60, left, job, result))
            if stop():
                break
    return folder.results()
