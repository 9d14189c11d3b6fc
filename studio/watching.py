"""Watching: turns telemetry, voice events and reports into `StudioState`, notices what is wrong.

Looks four times a second for late or missing pictures. Decides nothing. GUI thread only.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer

from engine.clock import ms_to_samples, samples_to_ms
from engine.errors import CODES, EngineError
from engine.protocol import messages as pm
from studio.recorder import RecordingReport
from studio.voice_level import Level

if TYPE_CHECKING:
    from studio.session_flow import SessionFlow

LOOK_MS = 250
STALLED_NS = 1_000_000_000
LAG_SAMPLES = ms_to_samples(300)
LAGGING_LOOKS = 2
SKIP_EVERY_NS = 3_000_000_000  # an engine that is too slow for good is not helped by more
LATE_FRAMES = 3  # passed over since the last look: 3 of 6 due
LOG_BURST = 200  # engine lines between two looks of the GUI; the rest is counted


class Watching(QObject):
    """Child of the flow; its methods are connected by the flow."""

    def __init__(self, flow: SessionFlow) -> None:
        super().__init__(flow)
        self._flow = flow
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self._late_before = 0
        self._lagging = 0
        self._next_skip_ns = 0
        self._lines: list[str] = []
        self._lines_lost = 0
        self._lines_lock = threading.Lock()

    def start(self) -> None:
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    # --- telemetry ----------------------------------------------------------------------------
    def telemetry(self, message: pm.Telemetry) -> None:
        if isinstance(message, pm.ChunkTimings):
            self._flow.timings.chunk(message, time.monotonic_ns())
        elif isinstance(message, pm.SessionState):
            self._session_state(message)
        elif isinstance(message, pm.EngineState):
            self._flow.state.update_engine(worker=message.worker, health=message)
        elif isinstance(message, pm.ProgressReport):
            if message.request == self._flow.talk.loading:  # not of a model that is being loaded
                self._flow.state.update_character(progress=message.fraction, what=message.what)
        else:
            self._flow.log_line.emit(message)

    def _session_state(self, message: pm.SessionState) -> None:
        if message.session != self._flow.talk.session:
            return
        if message.state in ("COMPLETED", "FAILED"):
            self._flow.talk.completed()
        if message.state == "FAILED" and self._flow.state.session.state != "FAILED":
            error = EngineError(known(message.code), message.message, message.hint)
            self._flow.session_failed(error)
        self._flow.state.update_session(
            state=message.state, epoch=message.epoch, counters=message.counters,
            age_s=message.age_s, synthetic=message.synthetic, kernel_path=message.kernel_path,
            ranks=message.ranks,
            message=message.message, hint=message.hint,
        )  # fmt: skip

    # --- voice --------------------------------------------------------------------------------
    def voice_event(self, what: str, value: Any) -> None:
        state = self._flow.state
        if what == "level":
            level: Level = value[0]
            state.level_changed.emit(level.rms_db, level.peak_db, bool(value[1]))
        elif what == "position":
            state.position_changed.emit(int(value))
        elif what == "devices":
            watch = self._flow.voice.watch
            state.update_voice(microphones=watch.inputs or (), speakers=watch.outputs or ())
        elif what == "finished":
            self._flow.finished()
        elif what in ("microphone", "speaker"):
            self._device_event(what, str(value))
        elif what == "broken":
            self._flow.failed.emit(value)

    def _device_event(self, what: str, trouble: str) -> None:
        lost = f"{what}: {trouble}" if trouble else ""
        if lost:
            self.say("warning", lost)
        elif self._flow.state.voice.device_lost.startswith(what):
            self.say("info", f"the {what} is back")
        if lost or self._flow.state.voice.device_lost.startswith(what):
            self._flow.state.update_voice(device_lost=lost)

    # --- recorder -----------------------------------------------------------------------------
    def recorded(self, report: RecordingReport) -> None:
        changes: dict[str, Any] = {"seconds": report.seconds, "repeated_frames": report.repeated}
        if report.state == "off":
            changes["state"] = "off"
        self._flow.state.update_recording(**changes)
        if report.error is not None:
            self._flow.failed.emit(report.error)

    # --- log ----------------------------------------------------------------------------------
    def say(self, level: str, text: str) -> None:
        """A line of our own in the log."""
        assert level in ("info", "warning", "error")
        self._flow.log_line.emit(pm.LogLine(level=level, source="studio", text=text))

    def engine_said(self, line: str) -> None:
        """A line of the engine's stderr, on the watcher's thread."""
        with self._lines_lock:
            if len(self._lines) < LOG_BURST:
                self._lines.append(line)
            else:
                self._lines_lost += 1
        self._flow.calls.post("stderr", self._show_lines)

    def _show_lines(self) -> None:
        with self._lines_lock:
            lines, self._lines = self._lines, []
            lost, self._lines_lost = self._lines_lost, 0
        if lost:
            lines.append(f"({lost} more lines)")
        for line in lines:
            self._flow.log_line.emit(pm.LogLine(level="info", source="engine", text=line))

    # --- looking ------------------------------------------------------------------------------
    def look(self) -> None:
        """Late or stalled? Only while live: an idle character may wait."""
        flow = self._flow
        late_now = flow.timings.count("late")
        late = late_now - self._late_before >= LATE_FRAMES
        self._late_before = late_now
        if not flow.state.session.live:
            return
        silent_ns = time.monotonic_ns() - flow.pace.last_arrival_ns
        stalled = silent_ns > STALLED_NS
        if stalled and not flow.state.session.stalled:
            self.say("warning", "no picture for 1 s while the voice goes on")
        flow.state.update_session(late=late, stalled=stalled)
        self._check_lag(time.monotonic_ns())

    def _check_lag(self, now_ns: int) -> None:
        """Half a second of lips far behind the sound, while pictures come: skip what is late."""
        behind = self._flow.pace.behind(now_ns)
        self._lagging = self._lagging + 1 if behind > LAG_SAMPLES else 0
        fresh = now_ns - self._flow.pace.last_arrival_ns < STALLED_NS
        if self._lagging >= LAGGING_LOOKS and fresh and now_ns > self._next_skip_ns:
            self._lagging, self._next_skip_ns = 0, now_ns + SKIP_EVERY_NS
            self.say("warning", f"the picture was {samples_to_ms(behind):.0f} ms late: skipped")
            self._flow.timings.dropped("skipped")
            self._flow.catch_up()


def known(code: str) -> str:
    """A newer engine may have codes that this studio does not know."""
    return code if code in CODES else "internal"
