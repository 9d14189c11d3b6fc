"""Which Frame to show now: a pure function of frames at hand, the sound's position and the past.

The sound is the clock and the picture follows: show, hold or drop, never the sound delayed.
Knows nothing of threads, sockets or wall time; positions are samples at 48 kHz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME
from engine.protocol.frame import Frame

# A frame is dropped once its successor is due; one that far ahead belongs to another timeline.
TOO_EARLY_SAMPLES = 3 * SAMPLE_RATE
SHELF_FRAMES = 24  # 1 s of pictures ahead of the sound, 74 MB at 704x1088

Reason = Literal["on_time", "late", "early", "empty", "current"]


@dataclass(frozen=True, slots=True)
class Decision:
    """`show` is the frame to put up (None: hold the one that is up, for `reason`).

    `late` frames were passed over, `early` ones belong to no time near; `keep` stays on the shelf;
    `wait_samples` is how long until the next frame at hand is due (None: nothing is waiting).
    """

    show: Frame | None
    reason: Reason
    late: tuple[Frame, ...]
    early: tuple[Frame, ...]
    keep: tuple[Frame, ...]
    wait_samples: int | None


def decide(frames: Sequence[Frame], position: int, shown_pts: int | None) -> Decision:
    """`frames` by rising pts; `position`: the sample being heard; `shown_pts`: of the picture up.

    The newest frame with pts <= position is shown if it is newer than what is up. It counts as late
    when its own interval has passed already, and is shown all the same: nothing newer exists.
    """
    due = [frame for frame in frames if frame.pts <= position]
    ahead = [frame for frame in frames if frame.pts > position]
    early = tuple(frame for frame in ahead if frame.pts - position > TOO_EARLY_SAMPLES)
    keep = tuple(ahead[: len(ahead) - len(early)])
    wait = keep[0].pts - position if keep else None
    fresh = [frame for frame in due if shown_pts is None or frame.pts > shown_pts]
    if not fresh:
        return Decision(None, _why_hold(position, shown_pts), tuple(due), early, keep, wait)
    newest = fresh[-1]
    overdue = position - newest.pts >= SAMPLES_PER_FRAME
    passed = tuple(frame for frame in due if frame is not newest)
    return Decision(newest, "late" if overdue else "on_time", passed, early, keep, wait)


def _why_hold(position: int, shown_pts: int | None) -> Reason:
    """The picture that is up is still the right one, came too soon, or has no successor yet."""
    if shown_pts is None or position - shown_pts >= SAMPLES_PER_FRAME:
        return "empty"
    return "current" if position >= shown_pts else "early"


def shelve(frames: Sequence[Frame], frame: Frame) -> tuple[tuple[Frame, ...], Frame | None]:
    """`frames` with `frame` in pts order, and what fell off: the oldest when the shelf is full.

    A second frame of the same pts replaces the first (the engine made that chunk anew).
    """
    others = [other for other in frames if other.pts != frame.pts]
    shelf = sorted([*others, frame], key=lambda each: each.pts)
    fallen = shelf.pop(0) if len(shelf) > SHELF_FRAMES else None
    return tuple(shelf), fallen
