"""The second opinion: from the sound alone to how real people moved their mouths.

A linear map from log-mel bands around an instant to three movements of the lower face, learnt from
ten real speakers (`ridge_fit.py`). It shares nothing with phones, aligners, motion targets or the
gauge, and works without a transcript. It knows little: r about 0.6 with real mouths of others.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from engine.errors import EngineError
from engine.qa.measured import EYES, LIP_CORNERS, NOSE_WINGS, eye_line
from engine.qa.offset import LEAST_FRAMES, Lag, curve, lag_of_curve
from engine.speech.features import GRID_OFFSET, HOP, MELS, WINDOW, mel_power
from engine.speech.resample import ENCODER_RATE

WEIGHTS = Path(__file__).with_name("real_speakers.json")
BANDS = 10
TAPS_MS = (-120, -60, 0, 60, 120)
INPUTS = BANDS * len(TAPS_MS)
FLOOR = 1e-5
QUIET_PERCENTILE = 30  # hops below it do not count for the voice's mean spectrum
SCALE = 3.0  # natural log units
# An echo goes on when the mouth has shut, and a mouth that is right looked early: the two game
# voices of the tune split read -0.8 and -8.6 frames. Their echo decays by 32 dB a second from 8 dB
# under the voice (measured in their pauses); that much of what sounded 42 ms ago and more is taken
# away. They then read -0.1 and 0.0, all clips of that split scatter by .10 instead of .18 frame and
# the dry real speakers fit as before (r .672, was .677). One echo's figures serve for all sounds:
# of a hall planted 8 dB under three dry voices half the lateness is left (.13 of .31 frame).
ECHO_AFTER = 4  # hops
ECHO_BELOW_DB, ECHO_DECAY_DB = 8.0, 0.33  # under the voice at once; more with every hop
ECHO_LEAST = 0.05  # share of the power that is kept in any case
LEAST_MOVE_S = 0.004  # standard deviation of the lip gap; a tenth of a speaker's
LIPS_OUTER, CHIN = (0, 17), 152


class Weights(msgspec.Struct, frozen=True):
    """`matrix` [INPUTS][3], `mean` [INPUTS]; `source` says whose mouths, `within_1` of `clips`
    offsets were within one frame with the clip itself left out, at mean correlation `r0`."""

    source: str
    clips: int
    within_1: int
    r0: float
    mean: list[float]
    matrix: list[list[float]]


@cache
def weights() -> Weights:
    """Raises EngineError("missing_asset")."""
    try:
        return msgspec.json.decode(WEIGHTS.read_bytes(), type=Weights)
    except (OSError, ValueError) as error:
        raise EngineError(
            "missing_asset", f"{WEIGHTS.name} cannot be read ({error})", "reinstall the program"
        ) from error


def inputs(pcm: np.ndarray, times_s: np.ndarray) -> np.ndarray:
    """48 kHz mono -> [n, INPUTS] log-mel bands around each time, the voice's own mean removed."""
    sound = soxr.resample(np.asarray(pcm, np.float32), SAMPLE_RATE, ENCODER_RATE)
    power = mel_power(sound)
    if len(power) < 2:
        return np.zeros((len(times_s), INPUTS))
    bands = power.reshape(len(power), BANDS, MELS // BANDS).sum(2)
    log = np.log(without_echo(bands) + FLOOR)
    loudness = log.mean(1)
    heard = loudness >= np.percentile(loudness, QUIET_PERCENTILE)
    log = np.clip((log - log[heard].mean(0)) / SCALE, -2, 2)
    middles = (HOP * (np.arange(len(power)) + 1) + GRID_OFFSET - WINDOW / 2) / ENCODER_RATE
    taps = [times_s + tap / 1000 for tap in TAPS_MS]
    columns = [np.interp(t, middles, log[:, band]) for t in taps for band in range(BANDS)]
    return np.stack(columns, 1)


def without_echo(power: np.ndarray) -> np.ndarray:
    """[hops, bands] power less what an echo of earlier hops can account for."""
    echo, left = np.zeros(power.shape[1]), np.empty_like(power)
    decay = 10 ** (-ECHO_DECAY_DB / 10)
    first = 10 ** (-(ECHO_BELOW_DB + ECHO_DECAY_DB * ECHO_AFTER) / 10)
    for hop, heard in enumerate(power):
        echo = echo * decay
        if hop >= ECHO_AFTER:
            echo = np.maximum(echo, power[hop - ECHO_AFTER] * first)
        left[hop] = np.maximum(heard - echo, ECHO_LEAST * heard)
    return left


def predicted(pcm: np.ndarray, times_s: np.ndarray) -> np.ndarray:
    """[n, 3]: what a real speaker's `movements` would be, up to scale."""
    learnt = weights()
    return (inputs(pcm, times_s) - np.array(learnt.mean)) @ np.array(learnt.matrix)


def movements(landmarks: np.ndarray) -> np.ndarray:
    """[n, 3] in S, of landmarks [n, 478, 2]: inner lip gap, outer lip height, chin below nose,
    all along the face's own upright."""
    rows = []
    for points in landmarks:
        if not np.isfinite(points[EYES[0], 0]):
            rows.append((np.nan,) * 3)
            continue
        right, s = eye_line(points)
        height = points @ np.array([-right[1], right[0]]) / s
        nose = height[list(NOSE_WINGS)].mean()
        gap = height[14] - height[13]
        rows.append((gap, height[LIPS_OUTER[1]] - height[LIPS_OUTER[0]], height[CHIN] - nose))
    return np.array(rows, np.float64).reshape(-1, 3)


def mouth_width(landmarks: np.ndarray) -> np.ndarray:
    """[n] distance of the lip corners in S."""
    s = np.linalg.norm(landmarks[:, EYES[1]] - landmarks[:, EYES[0]], axis=1)
    a, b = LIP_CORNERS
    return np.linalg.norm(landmarks[:, b] - landmarks[:, a], axis=1) / np.maximum(s, 1e-6)


def ridge_curve(seen: np.ndarray, wanted: np.ndarray) -> np.ndarray | None:
    """Mean of the lag curves of the three movements; None where the clip is too short or the
    lips do not move: what is left then is the tracker's noise."""
    if len(seen) < LEAST_FRAMES or seen[:, 0].std() < LEAST_MOVE_S:
        return None
    return np.mean([curve(seen[:, i], wanted[:, i]) for i in range(seen.shape[1])], axis=0)


def ridge_lag(seen: np.ndarray, wanted: np.ndarray) -> Lag | None:
    """`seen` and `wanted` [n, 3] on one grid."""
    values = ridge_curve(seen, wanted)
    return None if values is None else lag_of_curve(values)
