"""The Pace: puts each Frame into the mailbox at the moment its sound is heard.

Called by the link thread only (`arrived`, `tick`); the rest sets what it follows from outside.
Every frame goes to the tap (the recorder) when its time comes, shown or passed over; frames of an
interrupted epoch never get there. What is not shown is counted by reason in the timings. Knows
nothing of sockets or widgets; decisions are in `playout`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME, ms_to_samples
from engine.protocol.frame import Frame
from studio.arrival import ArrivalDelay
from studio.mailbox import Mailbox
from studio.playout import decide, shelve
from studio.timings import Timings

# From the decision to light on the screen: wake-up, paint and half a refresh of 60 Hz.
SCREEN_LEAD_SAMPLES = ms_to_samples(10)
NO_WAIT_S = 3600.0
BACKLOG_FRAMES = 4  # frames kept while none is urgent: one chunk
UNHURRIED_NS = 37_500_000  # 0.9 of a frame's time, so that a backlog melts


@dataclass(frozen=True, slots=True)
class Following:
    """What the picture follows: `position(now_ns)` in samples of the session's clock.

    kind "heard": the sample leaving the speaker now. "captured": the sample at the microphone now;
    the pace itself finds the delay at which the picture is ready. "arrival": no sound at all
    (the character idles), every frame is shown as it comes.
    """

    kind: str = "arrival"
    position: Callable[[int], int | None] = lambda now_ns: None
    captured: Callable[[int], int | None] | None = None  # with a microphone, heard or not


class Pace:
    """One per studio; `mailbox` and `timings` are shared with the viewer."""

    def __init__(self, mailbox: Mailbox, timings: Timings, wake_viewer: Callable[[], None]) -> None:
        self._mailbox = mailbox
        self._timings = timings
        self._wake_viewer = wake_viewer
        self._shelf: tuple[Frame, ...] = ()
        self._shown_pts: int | None = None
        self._shown_epoch = (0, 0)
        self._free_at_ns = 0
        self._arrival = ArrivalDelay()
        self._following = Following()
        self._epoch = 0
        self._session = 0
        self.tap: Callable[[Frame], None] | None = None
        self.last_arrival_ns = 0
        self.head = -1  # pts of the newest frame of the present epoch
        self._headed = -1
        self.picture_delay: int | None = None  # samples behind the microphone, once known

    # --- set from the GUI thread (each a single assignment: the link thread sees old or new) --
    def follow(self, following: Following) -> None:
        self._following = following

    def expect(self, session: int, epoch: int) -> None:
        """From now on only frames of `session` from `epoch` on; what waits is dropped."""
        self._session, self._epoch = session, epoch

    def behind(self, now_ns: int) -> int:
        """Samples by which the sound has passed the end of the picture that is up."""
        here, shown = self._position(now_ns), self._shown_pts
        return 0 if here is None or shown is None else max(here - shown - SAMPLES_PER_FRAME, 0)

    def relearn(self) -> None:
        """Forget how far the picture runs behind the microphone."""
        self._arrival = ArrivalDelay()

    # --- link thread --------------------------------------------------------------------------
    def arrived(self, frame: Frame, now_ns: int) -> None:
        self._timings.arrived(frame, now_ns)
        self.last_arrival_ns = now_ns
        if frame.session != self._session or frame.epoch < self._epoch:
            self._timings.dropped("old_epoch")
            return
        if frame.epoch > self._epoch:
            self._epoch = frame.epoch  # the engine is ahead of its reply on the control lane
        self._observe(frame, now_ns)
        self.head = max(self.head, frame.pts) if frame.epoch == self._headed else frame.pts
        self._headed = frame.epoch
        self._shelf, fallen = shelve(self._shelf, frame)
        if fallen is not None:
            self._timings.dropped("shelf_full")

    def _observe(self, frame: Frame, now_ns: int) -> None:
        """Learn how far pictures run behind the microphone, whether its sound is heard or not."""
        captured = self._following.captured
        here = captured(now_ns) if captured is not None else None
        if here is not None and not frame.idle:
            self._arrival.observe(frame.pts, here)
            self.picture_delay = self._arrival.delay(here)

    def tick(self, now_ns: int) -> float:
        """Show what is due; seconds until the next call is needed."""
        self._forget_old_epochs()
        if not self._shelf:
            return NO_WAIT_S
        position = self._position(now_ns)
        if position is None:
            return self._show_as_they_come(now_ns)
        decision = decide(self._shelf, position, self._shown_pts)
        self._shelf = decision.keep
        self._pass_over(decision.late)
        self._count(decision.early, "early")
        if decision.show is not None:
            if decision.reason == "late":
                self._timings.late()
            self._show(decision.show)
        wait = decision.wait_samples
        return NO_WAIT_S if wait is None else wait / SAMPLE_RATE

    def _position(self, now_ns: int) -> int | None:
        """The sample whose picture should be put up now, None to show frames as they come."""
        following = self._following
        here = following.position(now_ns)
        if here is None or following.kind == "arrival":
            return None
        if following.kind == "heard":
            return here + SCREEN_LEAD_SAMPLES
        delay = self._arrival.delay(here)
        return None if delay is None else here - delay

    def _show_as_they_come(self, now_ns: int) -> float:
        """Frames of a chunk come together: with no sound to follow they are spread evenly."""
        if now_ns < self._free_at_ns:
            return (self._free_at_ns - now_ns) / 1e9
        passed, shelf = self._shelf[:-BACKLOG_FRAMES], self._shelf[-BACKLOG_FRAMES:]
        for frame in passed:
            self._record(frame)
        self._count(passed, "crowded")
        self._shelf = shelf[1:]
        self._show(shelf[0])
        self._free_at_ns = now_ns + UNHURRIED_NS
        return UNHURRIED_NS / 1e9 if self._shelf else NO_WAIT_S

    def _forget_old_epochs(self) -> None:
        now = (self._session, self._epoch)
        if now == self._shown_epoch:
            return
        self._shown_epoch = now
        self._shown_pts = None  # the timeline may have gone back
        fresh = tuple(f for f in self._shelf if f.epoch >= now[1] and f.session == now[0])
        if len(fresh) < len(self._shelf):
            self._timings.dropped("old_epoch", len(self._shelf) - len(fresh))
        self._shelf = fresh

    def _show(self, frame: Frame) -> None:
        self._shown_pts = frame.pts
        self._record(frame)
        overwritten = self._mailbox.overwritten
        if self._mailbox.put(frame):
            self._wake_viewer()
        if self._mailbox.overwritten > overwritten:
            self._timings.dropped("not_painted")

    def _count(self, frames: tuple[Frame, ...], reason: str) -> None:
        if frames:
            self._timings.dropped(reason, len(frames))

    def _pass_over(self, frames: tuple[Frame, ...]) -> None:
        self._count(frames, "late")
        for frame in frames:
            self._record(frame)

    def _record(self, frame: Frame) -> None:
        tap = self.tap
        if tap is not None:
            tap(frame)
