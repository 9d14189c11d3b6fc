"""Runs made by hand for the quality window: known results and films whose frames tell their index.

Written with the engine's own types, so that a change of the format breaks these tests.
"""

from __future__ import annotations

from pathlib import Path

import av
import msgspec
import numpy as np

from engine.qa.jobs import FORMAT, Configuration, Job, RunFile
from engine.qa.limits import make_score
from engine.qa.report import ClipResult, PhoneSpan, Tracks
from engine.qa.run_folder import RunFolder

FPS, FRAMES, SCORER = 24, 48, "0123456789abcdef"
LENGTH_S = FRAMES / FPS
PHONES = (("M", 0.0, 0.5), ("AA", 0.5, 1.5), ("SIL", 1.5, 2.0))


def level(index: int) -> int:
    """Grey of frame `index`; eight apart, so that coding cannot confuse two."""
    return 20 + 4 * index


def write_film(path: Path, blue: bool = False) -> None:
    """64 x 96, two seconds, a tone; grey rises with the index, `blue` marks another run's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=FPS, options={"crf": "10", "preset": "ultrafast"})
        video.width, video.height, video.pix_fmt = 64, 96, "yuv420p"
        audio = out.add_stream("aac", rate=48_000, layout="mono")
        for i in range(FRAMES):
            pixels = np.full((96, 64, 3), level(i), np.uint8)
            pixels[..., 2] = 220 if blue else level(i)
            out.mux(video.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        tone = np.sin(np.arange(round(48_000 * LENGTH_S)) * 0.05).astype(np.float32)[None]
        frame = av.AudioFrame.from_ndarray(tone, format="fltp", layout="mono")
        frame.sample_rate = 48_000
        out.mux(audio.encode(frame))
        out.mux(video.encode(None))
        out.mux(audio.encode(None))


def result(clip: str, headline: float, configuration: str, seed: int = 1) -> ClipResult:
    seen = [0.0] * 12 + [1.0] * 24 + [0.0] * 12
    return ClipResult(
        clip, SCORER, configuration=configuration, seed=seed, character="mira", language="en",
        frames=FRAMES, fps=24.0, duration_s=LENGTH_S,
        scores=[
            make_score("headline", headline), make_score("offset", -0.5), make_score("r0", 0.9),
            make_score("bilabial", 0.2), make_score("pause_shut", None, 0, "no pause"),
        ],
        phones=[PhoneSpan(*phone) for phone in PHONES],
        tracks=Tracks(seen, [0.5] * FRAMES, [0.3] * FRAMES, 1.0),
    )  # fmt: skip


def make_run(
    folder: Path, headlines: dict[str, float | str | None], configuration: str = "portrait",
    film: bool = True, blue: bool = False,
) -> RunFolder:  # fmt: skip
    """A clip per entry: its headline, a reason why it failed, or None while it waits."""
    jobs = [
        Job(clip, Configuration(configuration), 1, SCORER, f"/set/clips/{clip}.flac", "mira",
            "/nowhere/mira.avatar", "en")
        for clip in headlines
    ]  # fmt: skip
    run = RunFolder.open(folder, RunFile(FORMAT, folder.name, "1.0", "ab" * 32, SCORER, {}, jobs))
    for job, value in zip(jobs, headlines.values(), strict=True):
        if isinstance(value, str):
            bad = result(job.clip, 0, configuration)
            run.store(job, msgspec.structs.replace(bad, failed=value, scores=[], tracks=None))
        elif value is not None:
            run.store(job, result(job.clip, value, configuration))
            if film:
                write_film(run.video_file(job), blue)
    return run
