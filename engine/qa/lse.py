"""LSE-C and LSE-D when the user supplies SyncNet's weights (`syncnet_v2.model`); off otherwise.

The picture is re-timed to 25 fps by showing at each instant the frame that was on screen. Faces are
cut by the face mesh, not by the detector of the published evaluation, and no published figure could
be reproduced here for want of weights: compare these numbers among themselves only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError, first_line
from engine.qa.limits import make_score
from engine.qa.measured import Measured
from engine.qa.report import Score
from engine.qa.video_file import VideoFile

FPS, SIDE, WINDOW, MOST_LAG = 25, 224, 5, 15
HOPS = 4  # MFCC frames a picture frame; a window hears 20
MARGIN = 0.4  # of half the face's box, below and beside it
BATCH = 8
OFF = "no SyncNet weights given (--syncnet FILE)"


@dataclass(frozen=True, slots=True)
class SyncNet:
    """`towers` is `lse_net.Towers`, ready to run; `sha256` goes into the scorer's hash."""

    towers: Any
    sha256: str


def load_syncnet(path: Path | None) -> SyncNet | None:
    """None without a path. Raises EngineError("bad_input", "missing_asset")."""
    if path is None:
        return None
    import hashlib

    import torch

    from engine.qa.lse_net import Towers

    fix = "give syncnet_v2.model as published with the paper"
    if not path.is_file():
        raise EngineError("missing_asset", f"{path} is not a file", fix)
    try:
        # weights_only: tensors alone, no code of the file runs.
        state = torch.load(path, map_location="cpu", weights_only=True)
        towers = Towers()
        towers.load_state_dict(state)
    except (RuntimeError, ValueError, TypeError, KeyError, EOFError, OSError, AttributeError) as e:
        first = first_line(e)[:120]
        raise EngineError("bad_input", f"{path.name} does not hold SyncNet ({first})", fix) from e
    return SyncNet(towers.eval(), hashlib.sha256(path.read_bytes()).hexdigest())


def lse_scores(net: SyncNet | None, path: Path, measured: Measured, pcm: np.ndarray) -> list[Score]:
    """[LSE-C, LSE-D], skipped with a reason where they are off."""
    names = ("lse_c", "lse_d")
    if net is None:
        return [make_score(name, None, 0, OFF) for name in names]
    faces = faces_at_25(path, measured)
    sound = soxr.resample(np.asarray(pcm, np.float32), SAMPLE_RATE, 16_000)
    values = confidence_and_distance(net.towers, faces, sound)
    if values is None:
        return [make_score(name, None, 0, "shorter than 1.5 s") for name in names]
    return [make_score(n, v, len(faces)) for n, v in zip(names, values, strict=True)]


def faces_at_25(path: Path, measured: Measured) -> np.ndarray:
    """[n, 224, 224, 3] BGR: the face on screen at the middle of each 25 fps frame."""
    frames = [
        cut_face(bgr, points) for bgr, points in zip(
            VideoFile(path).frames(), steady_boxes(measured.landmarks), strict=False)
    ]  # fmt: skip
    times = measured.times_s
    wanted = (np.arange(int(times[-1] * FPS)) + 0.5) / FPS
    half = float(np.median(np.diff(times))) / 2
    shown = np.searchsorted(times + half, wanted, side="right")
    return np.stack([frames[min(i, len(frames) - 1)] for i in shown])


def steady_boxes(landmarks: np.ndarray) -> np.ndarray:
    """[n, 3]: centre x, y and half side px of the face's box, median over 13 frames."""
    low, high = landmarks.min(1), landmarks.max(1)
    boxes = np.column_stack([(low + high) / 2, (high - low).max(1) / 2])
    for i in range(3):
        known = np.isfinite(boxes[:, i])
        boxes[:, i] = np.interp(np.arange(len(boxes)), np.flatnonzero(known), boxes[known, i])
    padded = np.pad(boxes, ((6, 6), (0, 0)), mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 13, axis=0), axis=-1)


def cut_face(bgr: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The square that the published evaluation cuts: half a face more below and beside."""
    x, y, half = box
    side = 2 * half * (1 + MARGIN)
    step = side / SIDE
    matrix = np.array([[step, 0, x - side / 2], [0, step, y - half]])
    flags = cv2.INTER_AREA | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(bgr, matrix, (SIDE, SIDE), flags=flags, borderValue=(110, 110, 110))


def confidence_and_distance(
    towers: Any, faces: np.ndarray, sound: np.ndarray
) -> tuple[float, float] | None:
    """(LSE-C, LSE-D): median minus smallest, and smallest, of the mean distance over lags."""
    import torch

    from engine.qa.lse_net import mfcc

    heard = mfcc(sound).T.astype(np.float32)  # [13, hops]
    count = min(len(faces), len(sound) // (16_000 // FPS), heard.shape[1] // HOPS) - WINDOW
    if count < 2 * MOST_LAG:
        return None
    lips, sounds = [], []
    with torch.inference_mode():
        for first in range(0, count, BATCH):
            at = range(first, min(first + BATCH, count))
            pictures = np.stack([faces[i : i + WINDOW] for i in at]).transpose(0, 4, 1, 2, 3)
            windows = np.stack([heard[:, HOPS * i : HOPS * i + HOPS * WINDOW] for i in at])
            lips.append(towers.lips(torch.from_numpy(pictures.astype(np.float32))))
            sounds.append(towers.sound(torch.from_numpy(windows)[:, None]))
    seen, heard_as = torch.cat(lips).numpy(), torch.cat(sounds).numpy()
    padded = np.pad(heard_as, ((MOST_LAG, MOST_LAG), (0, 0)))
    distances = [
        np.linalg.norm(seen - padded[lag : lag + count] + 1e-6, axis=1).mean()
        for lag in range(2 * MOST_LAG + 1)
    ]
    smallest = float(np.min(distances))
    return float(np.median(distances)) - smallest, smallest
