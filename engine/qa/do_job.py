"""Does one job: makes the video unless there is one, scores it, and gives the result.

The same function for a local process and for another machine. Gauges are kept for the life of the
process and on disk. Never raises for a bad clip. Knows nothing of other jobs.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, field, fields
from pathlib import Path

import msgspec
import numpy as np

from engine.audio_file import read_whole
from engine.character import load_character
from engine.errors import EngineError
from engine.folders import Folders
from engine.framebus import FrameBus
from engine.protocol.character_file import read_character
from engine.qa.alignment import read_alignment
from engine.qa.gauge import Gauge
from engine.qa.jobs import Job
from engine.qa.lse import SyncNet
from engine.qa.render_clip import Weights, render_clip
from engine.qa.report import ClipResult
from engine.qa.run_folder import write_whole
from engine.qa.same_code import drawing_code
from engine.qa.score_clip import Labels, failed_clip, score_video
from engine.qa.scores import Truth
from engine.qa.sweep import gauge_of


@dataclass(slots=True)
class Bench:
    """What a process keeps between jobs."""

    folders: Folders
    syncnet: SyncNet | None = None
    bus: FrameBus = field(default_factory=FrameBus.create)
    gauges: dict[tuple[str, str], Gauge] = field(default_factory=dict)
    weights: Weights = field(default_factory=Weights)


def do_job(job: Job, video: Path, bench: Bench) -> ClipResult:
    """`video`: where ours is written; it is removed again unless the job keeps it."""
    labels = Labels(
        clip=job.clip, scorer=job.scorer, configuration=job.configuration.name, seed=job.seed,
        character=job.character, language=job.language, split=job.split,
    )  # fmt: skip
    if job.unreadable:
        return failed_clip(labels, job.unreadable, job.video or job.audio)
    begun = time.perf_counter()
    try:
        truth = truth_of(job)
        stages = {} if job.video else _render(job, video, bench)
        rendered_ms = (time.perf_counter() - begun) * 1000
        gauge = None if job.video else gauge_for(job, bench)
    except EngineError as error:
        return failed_clip(labels, str(error))
    path = Path(job.video) if job.video else video
    result = score_video(path, truth, gauge, labels, bench.folders.models, bench.syncnet)
    if not job.video and not job.keep_video:
        video.unlink(missing_ok=True)
    times = {**result.timings_ms, **stages, "render": round(rendered_ms, 1)}
    return msgspec.structs.replace(result, timings_ms=times)


def _render(job: Job, video: Path, bench: Bench) -> dict[str, float]:
    """Milliseconds a frame by stage."""
    video.parent.mkdir(parents=True, exist_ok=True)
    return render_clip(job, video, bench.folders, bench.bus, bench.weights).stage_ms


def truth_of(job: Job) -> Truth:
    """Raises EngineError for a damaged alignment or sound."""
    phones = tuple(read_alignment(Path(job.alignment)).phones) if job.alignment else None
    return Truth(phones, read_whole(Path(job.audio)), job.no_phones or "no transcript")


def gauge_for(job: Job, bench: Bench) -> Gauge:
    """The gauge of the job's character: from this process, from disk, or from a new sweep (4 s)."""
    key = (job.character_file, job.scorer)
    if key not in bench.gauges:
        spec, picture = read_character(Path(job.character_file))
        character = load_character(
            picture, spec, bench.folders.cache, lambda done, what: None, lambda: False,
            bench.folders.models,
        )  # fmt: skip
        name = f"{character.key[:24]}-{job.scorer}-{drawing_code()[:12]}.npz"
        path = bench.folders.cache / "gauges" / name
        found = read_gauge(path)
        if found is None:
            found = gauge_of(character.canvas, bench.folders.models)
            write_gauge(path, found)
        bench.gauges[key] = found
    return bench.gauges[key]


def write_gauge(path: Path, gauge: Gauge) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {f.name: getattr(gauge, f.name) for f in fields(gauge)}
    arrays = {name: np.asarray(v) for name, v in values.items() if v is not None}
    data = io.BytesIO()  # no file of one name: two processes may sweep the same face at once
    np.savez_compressed(data, **arrays)  # pyright: ignore[reportArgumentType]
    write_whole(path, data.getvalue())


def read_gauge(path: Path) -> Gauge | None:
    """None where there is none, or it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except (OSError, ValueError, KeyError):
        return None
    values = {name: v if v.ndim else v.item() for name, v in arrays.items()}
    return Gauge(**{f.name: values.get(f.name) for f in fields(Gauge)})  # pyright: ignore
