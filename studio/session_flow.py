"""SessionFlow: ties link, voice, playout, recorder and state together, without a widget in sight.

Every user action is one public method; what comes of it is seen in `StudioState` and these signals.
GUI thread only; nothing here blocks. Can be driven headless, which is how it is tested.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from engine.protocol.character import CharacterSpec, Settings
from engine.protocol.messages import CharacterLoaded, DoctorReport, LogLine, PictureInspected
from studio.mailbox import Mailbox
from studio.settings import StudioSettings
from studio.state import StudioState
from studio.timings import Timings


class SessionFlow(QObject):
    """The one object that the window, the tests and the command line talk to."""

    frame_waiting = Signal()  # coalesced wake-up: take it from `mailbox`, paint, timings.painted()
    picture_inspected = Signal(object)  # PictureInspected
    character_loaded = Signal(object)  # CharacterLoaded
    doctor_reported = Signal(object)  # DoctorReport
    log_line = Signal(object)  # LogLine
    failed = Signal(object)  # EngineError: one line to show, with its hint

    def __init__(
        self,
        settings: StudioSettings,
        state: StudioState | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.settings = settings
        self.state = state or StudioState()
        self.timings = Timings()
        self.mailbox = Mailbox()

    # --- life ---------------------------------------------------------------------------------
    def start(self, endpoint: str | None = None) -> None:
        """Start the local engine as a child, or use the engine at `endpoint` (tcp://host:port)."""

    def shut_down(self) -> None:
        """Stop voice, recording, link and child engine; returns within 3 s. Idempotent."""

    # --- character ------------------------------------------------------------------------------
    def inspect_picture(self, picture: bytes) -> None:
        """Ask the engine about a picture file's bytes; answer: `picture_inspected` or `failed`."""

    def open_character(self, spec: CharacterSpec, picture: bytes) -> None:
        """Put a character on stage (also while live); answer: `character_loaded` or `failed`."""

    def set_character_settings(self, settings: Settings) -> None:
        """Intensities; may be called at every slider step (the newest wins, about 20 a second)."""

    # --- voice ------------------------------------------------------------------------------------
    def choose_microphone(self, name: str = "") -> None:
        """Take the microphone of that name as the voice; "" is the default device."""

    def choose_file(self, path: Path) -> None:
        """Take an audio file as the voice; unreadable files are `failed` with one line."""

    def choose_speaker(self, name: str = "") -> None: ...
    def set_monitor(self, on: bool) -> None: ...
    def set_muted(self, muted: bool) -> None: ...
    def set_gate_db(self, db: float) -> None: ...
    def seek(self, sample: int) -> None:
        """Move in the file, in samples at 48 kHz; while live the mouth follows from there."""

    def refresh_devices(self) -> None: ...

    # --- going live ---------------------------------------------------------------------------------
    def go_live(self) -> None:
        """Start sending the voice; without a character or engine: `failed` says what is missing."""

    def stop(self) -> None:
        """End speaking; the character stays, at rest."""

    def interrupt(self) -> None:
        """Drop everything under way; the mouth goes to rest and the voice goes on from now."""

    def resync(self) -> None:
        """Measure sound against picture anew and jump there."""

    # --- output ---------------------------------------------------------------------------------
    def start_recording(self, path: Path) -> None: ...
    def pause_recording(self, paused: bool = True) -> None: ...
    def stop_recording(self) -> None: ...
    def save_snapshot(self, path: Path) -> None:
        """PNG of the newest frame, exactly 704x1088, whatever the window's size."""

    def run_doctor(self) -> None: ...


__all__ = ["CharacterLoaded", "DoctorReport", "LogLine", "PictureInspected", "SessionFlow"]
