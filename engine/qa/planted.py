"""Plants faults in clips, draws them, measures and scores the pixels: one `ClipResult` each.

Heads that stand still make equal mouths equal frames, which are then drawn and measured once.
Knows nothing of what the results must be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from engine.clock import FPS, HEIGHT, WIDTH
from engine.portrait.renderer import PortraitRenderer
from engine.qa.expected import frame_times
from engine.qa.faults import Fault, Subject
from engine.qa.gauge import Gauge
from engine.qa.measured import Measured, Measurer
from engine.qa.report import ClipResult
from engine.qa.score_clip import Labels, score_measured

Key = bytes
MOST_KEPT = 4_000  # frames of one face: 45 MB of strips


@dataclass(frozen=True, slots=True)
class Face:
    """A character ready to be drawn and read."""

    id: str
    kind: str  # "photo", "painting", "drawing"
    renderer: PortraitRenderer
    gauge: Gauge


class StillFrames:
    """Measured frames of one face that stands still, by their tokens."""

    def __init__(self, face: Face, models: Path | None = None) -> None:
        self._face = face
        self._measurer = Measurer(models)
        self._rows: dict[Key, int] = {}
        self._known: Measured | None = None

    def measured(self, tokens: np.ndarray) -> Measured:
        """Of tokens [n, COUNT] that differ in the mouth alone; new ones are drawn."""
        keys = [token.tobytes() for token in tokens]
        fresh = {}
        for key, token in zip(keys, tokens, strict=True):
            if key not in self._rows and key not in fresh:
                fresh[key] = token
        if fresh:
            for bgr in drawn(self._face.renderer, np.stack(list(fresh.values()))):
                self._measurer.push(bgr, 0.0)
            for key in fresh:
                self._rows[key] = len(self._rows)
            self._known = self._measurer.measured()
        assert self._known is not None
        at = np.array([self._rows[key] for key in keys])
        same = np.array([True, *(a == b for a, b in zip(keys[1:], keys[:-1], strict=True))])
        return Measured(
            frame_times(len(keys)), self._known.landmarks[at], self._known.strips[at],
            self._known.luma[at], np.where(same, 0.0, 1.0), self._known.sharp[at],
        )  # fmt: skip


def drawn(renderer: PortraitRenderer, tokens: np.ndarray) -> Iterator[np.ndarray]:
    """BGR frames [h, w, 3] of tokens [n, COUNT], each only until the next: kept frames are copies.
    cv2 drops alpha 13 times faster than a strided copy, 4 of 22 ms a frame."""
    frame, bgr = np.zeros((HEIGHT, WIDTH, 4), np.uint8), np.empty((HEIGHT, WIDTH, 3), np.uint8)
    for token in tokens:
        renderer.render(token, frame)
        yield cv2.cvtColor(frame, cv2.COLOR_BGRA2BGR, dst=bgr)


def moving_frames(face: Face, tokens: np.ndarray, models: Path | None = None) -> Measured:
    """Every frame drawn and tracked in order."""
    measurer = Measurer(models)
    for i, bgr in enumerate(drawn(face.renderer, tokens)):
        measurer.push(bgr, (i + 0.5) / FPS)
    return measurer.measured()


def score_fault(
    fault: Fault, subject: Subject, face: Face, still: StillFrames, labels: Labels,
    models: Path | None = None,
) -> ClipResult:  # fmt: skip
    tokens = fault.plant(subject)
    measured = moving_frames(face, tokens, models) if subject.moving else still.measured(tokens)
    named = replace(labels, configuration=fault.name, character=face.id)
    return score_measured(measured, None, subject.truth, face.gauge, named)
