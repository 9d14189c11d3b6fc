"""Learns the second opinion from real speakers: `python -m engine.qa.ridge_fit FOLDER`.

FOLDER holds videos of people who speak, with their sound. Reports each with itself left out.
Writes `real_speakers.json`: 203 numbers, no picture and no sound.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec
import numpy as np

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.qa.expected import frame_times
from engine.qa.measured import Measurer
from engine.qa.offset import Lag
from engine.qa.ridge import WEIGHTS, Weights, inputs, movements, ridge_lag
from engine.qa.video_file import VideoFile

STRENGTH = 100.0  # of the ridge; 30 to 300 gave the same within 0.02 of r
SOURCE = (
    "ten clips of the GRID audio-visual sentence corpus (Cooke, Barker, Cunningham, Shao 2006; "
    "25 fps, 3 s each); only these regression coefficients are kept"
)
Data = dict[str, tuple[np.ndarray, np.ndarray]]  # clip -> inputs [n, INPUTS], movements [n, 3]


def read_clip(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(inputs, movements in standard deviations) of a video, on its own frames resampled to 24 fps.

    Raises EngineError("bad_input") where a frame shows no face.
    """
    video, measurer = VideoFile(path), Measurer()
    frames = list(video.frames())
    for bgr, time_s in zip(frames, video.facts().middles_s, strict=True):
        measurer.push(bgr, time_s)
    measured = measurer.measured()
    if not measured.seen.all():
        raise EngineError("bad_input", f"{path.name} has frames without a face", "leave it out")
    times = frame_times(int(measured.times_s[-1] * 24))
    moves = movements(measured.landmarks)
    seen = np.stack([np.interp(times, measured.times_s, m) for m in moves.T], 1)
    return inputs(read_whole(path), times), (seen - seen.mean(0)) / seen.std(0)


def fit(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """(mean [INPUTS], matrix [INPUTS, 3]) of a ridge over all clips."""
    x = np.concatenate([pair[0] for pair in data.values()])
    y = np.concatenate([pair[1] for pair in data.values()])
    mean = x.mean(0)
    x = x - mean
    return mean, np.linalg.solve(x.T @ x + STRENGTH * np.eye(x.shape[1]), x.T @ y)


def left_out(data: Data) -> dict[str, Lag]:
    """Each clip judged by what the others teach."""
    lags = {}
    for name, (x, seen) in data.items():
        mean, matrix = fit({k: v for k, v in data.items() if k != name})
        lag = ridge_lag(seen, (x - mean) @ matrix)
        if lag is not None:
            lags[name] = lag
    return lags


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--leave-out", nargs="*", default=["swiz3n"], help="parts of file names")
    options = parser.parse_args(argv)
    paths = [p for p in sorted(options.folder.iterdir()) if p.suffix in (".mpg", ".mp4")]
    paths = [p for p in paths if not any(part in p.name for part in options.leave_out)]
    data = {path.stem: read_clip(path) for path in paths}
    lags = left_out(data)
    for name, lag in lags.items():
        print(f"{name}: {lag.late:+.2f} frames, r0 {lag.r0:.2f}")  # noqa: T201
    within = sum(abs(lag.late) <= 1 for lag in lags.values())
    r0 = float(np.mean([lag.r0 for lag in lags.values()]))
    mean, matrix = fit(data)
    learnt = Weights(
        SOURCE, len(data), within, round(r0, 3), mean.round(5).tolist(), matrix.round(5).tolist()
    )
    WEIGHTS.write_bytes(msgspec.json.format(msgspec.json.encode(learnt), indent=1))
    print(f"{within} of {len(lags)} within a frame, r0 {r0:.2f} -> {WEIGHTS.name}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
