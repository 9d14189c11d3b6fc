"""SessionFlow: ties link, voice, pace, recorder and state together, without a widget in sight.

Every user action is one public method; what comes of it is seen in `StudioState` and these signals.
GUI thread only; nothing here blocks. Can be driven headless, which is how it is tested.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from engine.clock import SAMPLES_PER_FRAME, ms_to_samples
from engine.errors import EngineError
from engine.protocol import messages as pm
from engine.protocol.audio_block import AudioBlock
from engine.protocol.character import CharacterSpec, Settings
from studio.conversation import Conversation, OnDone
from studio.engine_keys import load_keys
from studio.engine_life import EngineLife
from studio.file_audio import FileAudio
from studio.gui_calls import GuiCalls
from studio.link import EngineLink
from studio.mailbox import Mailbox
from studio.pace import Pace
from studio.readiness import what_is_missing
from studio.recorder import Recorder
from studio.settings import StudioSettings
from studio.snapshot import save_snapshot
from studio.state import StudioState
from studio.timings import Timings
from studio.voice import Voice
from studio.watching import Watching

SETTINGS_MS = 50  # a dragged slider sends 20 changes a second, not one a pixel
INSPECT_S = 15.0
CATCH_UP_SAMPLES = ms_to_samples(250)  # ahead of the ear: what the engine needs to begin again


class SessionFlow(QObject):
    """The one object that the window, the tests and the command line talk to."""

    frame_waiting = Signal()  # coalesced wake-up: take it from `mailbox`, paint, timings.painted()
    picture_inspected = Signal(object)  # PictureInspected
    character_loaded = Signal(object)  # CharacterLoaded
    doctor_reported = Signal(object)  # DoctorReport
    log_line = Signal(object)  # LogLine
    failed = Signal(object)  # EngineError: one line to show, with its hint

    def __init__(
        self, settings: StudioSettings, state: StudioState | None = None,
        parent: QObject | None = None, engine_command: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.settings = settings
        self.state = state or StudioState()
        self.timings = Timings()
        self.mailbox = Mailbox()
        self.calls = GuiCalls(self)
        self.pace = Pace(self.mailbox, self.timings, self.frame_waiting.emit)
        self.link = EngineLink(self.pace, parent=self)
        self.talk = Conversation(self.link, self)
        self.recorder = Recorder(
            lambda report: self.calls.post("recorder", lambda: self.watching.recorded(report))
        )
        self.voice = Voice(
            self._send_block, self._post_voice_event, self.pace.follow,
            lambda: self.pace.head, lambda: self.pace.picture_delay,
        )  # fmt: skip
        self.watching = Watching(self)
        self.engine = EngineLife(
            self.link, self.state, self.calls, engine_command, self.watching.engine_said, self
        )
        self._wants_live = False
        self._file: FileAudio | None = None
        self._newest_settings: Settings | None = None
        self._settings_timer = QTimer(self, singleShot=True, interval=SETTINGS_MS)
        self._settings_timer.timeout.connect(self._send_settings)
        self._is_shut = False
        self._connect()

    def _connect(self) -> None:
        self.engine.came.connect(self._engine_came)
        self.engine.left.connect(self._engine_left)
        self.engine.refused.connect(self._engine_refused)
        self.link.telemetry.connect(self.watching.telemetry)
        self.talk.running.connect(self._character_on_stage)
        self.talk.character_loaded.connect(self._character_loaded)
        self.talk.failed.connect(self._step_failed)

    # --- life -----------------------------------------------------------------------------------
    def start(self, endpoint: str | None = None) -> None:
        """Start the local engine as a child, or use the engine at `endpoint` (tcp://host:port)."""
        endpoint = endpoint or self.settings.text("engine")
        self._want_model(self.settings.text("model"))
        self.state.update_session(model=self.settings.text("model"))
        self.voice.start()
        self._apply_voice_settings()
        self.watching.start()
        try:
            keys = load_keys(self.settings.text("engine_keys"))
        except EngineError as error:
            self._engine_refused(error)
            return
        self.engine.open(endpoint, self.settings.text("engine_token"), keys)

    def shut_down(self) -> None:
        """Stop voice, recording, link and child engine; returns within some 3 s. Idempotent."""
        if self._is_shut:
            return
        self._is_shut = True
        self.watching.stop()
        self.pace.tap = None
        self.recorder.stop()
        self.voice.close()
        self.engine.close()

    def restart_engine(self) -> None:
        """End the child engine; it comes back with session, character and settings."""
        self.engine.restart()

    # --- character ------------------------------------------------------------------------------
    def inspect_picture(self, picture: bytes) -> None:
        """Ask the engine about a picture file's bytes; answer: `picture_inspected` or `failed`."""
        body = pm.InspectPicture(picture=picture)
        self.link.request(body, self.picture_inspected.emit, self.failed.emit, INSPECT_S)

    def open_character(self, spec: CharacterSpec, picture: bytes) -> None:
        """Put a character on stage (also while live); answer: `character_loaded` or `failed`."""
        self.state.update_character(
            spec=spec, picture=picture, loaded=False, busy=True, progress=0.0,
            what="waiting for the engine" if not self.talk.session else "loading", warnings=(),
        )  # fmt: skip
        self.talk.want_character(spec, picture)

    def set_character_settings(self, settings: Settings) -> None:
        """Intensities; may be called at every slider step (the newest wins, about 20 a second)."""
        spec = self.state.character.spec
        if spec is not None:
            self.state.update_character(spec=msgspec.structs.replace(spec, settings=settings))
        self._newest_settings = settings
        if not self._settings_timer.isActive():
            self._settings_timer.start()

    def _send_settings(self) -> None:
        if self._newest_settings is not None:
            self.talk.want_settings(self._newest_settings)

    def set_model(self, model: str, noise: bool = False) -> None:
        """Another session, of that model; `noise` allows random weights, in this run only."""
        if not noise:
            self.settings.set("model", model)
        self.state.update_session(model=model)
        self._want_model(model, noise)

    # --- voice ----------------------------------------------------------------------------------
    def choose_microphone(self, name: str = "") -> None:
        """Take the microphone of that name as the voice; "" is the default device."""
        self.stop()
        self._file = None
        self.settings.set("voice", "microphone")
        self.settings.set("microphone", name)
        self.voice.use_microphone(name)
        self.state.update_voice(kind="microphone", microphone=name, file="", duration_samples=0)

    def choose_file(self, path: Path) -> None:
        """Take an audio file as the voice; unreadable files are `failed` with one line."""
        threading.Thread(target=self._read_file, args=(path,), daemon=True).start()

    def _read_file(self, path: Path) -> None:
        """On a thread of its own: an hour of MP3 takes seconds to decode."""
        try:
            file = FileAudio(path)
        except EngineError as error:
            self.calls.post("file", lambda error=error: self.failed.emit(error))
            return
        self.calls.post("file", lambda: self._file_read(file))

    def _file_read(self, file: FileAudio) -> None:
        self.stop()
        self._file = file
        self.settings.set("voice", "file")
        self.settings.set("audio_file", str(file.path))
        self.voice.use_file(file)
        self.state.update_voice(kind="file", file=str(file.path), duration_samples=len(file))

    def voice_overview(self, columns: int) -> tuple[np.ndarray, np.ndarray] | None:
        """(low, high) of the chosen file for a waveform `columns` wide; None without a file."""
        return self._file.overview(columns) if self._file is not None else None

    def choose_speaker(self, name: str = "") -> None:
        self.settings.set("speaker", name)
        self.voice.use_speaker(name)
        self.state.update_voice(speaker=name)

    def set_monitor(self, on: bool) -> None:
        self.settings.set("monitor", on)
        self.voice.monitor(on)
        self.state.update_voice(monitor=on)

    def set_muted(self, muted: bool) -> None:
        self.voice.mute(muted)
        self.state.update_voice(muted=muted)

    def set_gate_db(self, db: float) -> None:
        self.settings.set("gate_db", float(db))
        self.voice.gate(db)
        self.state.update_voice(gate_db=float(db))

    def seek(self, sample: int) -> None:
        """Move in the file, in samples at 48 kHz; while live the mouth follows from there."""
        self.voice.seek(sample)
        self.state.position_changed.emit(sample)
        if self.state.session.live:
            self._change_epoch(lambda done: self.voice.new_epoch(done.epoch, done.first_sample))

    def refresh_devices(self) -> None:
        self.voice.watch.refresh()

    # --- going live -----------------------------------------------------------------------------
    def go_live(self) -> None:
        """Start sending the voice, now or once a loading character is up; `failed` says why not."""
        missing = what_is_missing(self.state, self.talk.is_running)
        self._wants_live = missing is None or self.state.character.busy
        if missing is not None:
            self.failed.emit(missing)
            return
        self._change_epoch(self._live)

    def _live(self, done: pm.Done) -> None:
        if self._wants_live:
            self.voice.go(self.talk.session, done.epoch, done.first_sample)
            self.state.update_session(live=True)
            self.state.update_voice(playing=True)

    def stop(self) -> None:
        """End speaking; the character stays, at rest."""
        was_live, self._wants_live = self._wants_live, False
        self.voice.halt()
        self.state.update_session(live=False, late=False, stalled=False)
        self.state.update_voice(playing=False)
        if was_live and self.talk.is_running:
            self._change_epoch(lambda done: None)

    def interrupt(self) -> None:
        """Drop everything under way; the mouth goes to rest. A microphone goes on from now, a file
        stops where it is."""
        if self.state.voice.kind == "file":
            self.stop()
        elif self.talk.is_running:
            self._change_epoch(lambda done: self.voice.new_epoch(done.epoch, done.first_sample))

    def finished(self) -> None:
        """The file has been heard to its end: the character goes on, at rest."""
        self._wants_live = False
        self.state.update_session(live=False, late=False, stalled=False)
        self.state.update_voice(playing=False)
        self._change_epoch(lambda done: None)

    def session_failed(self, error: EngineError) -> None:
        """The engine gave the session up: say why; loading the character again revives it."""
        self._wants_live = False
        self.voice.halt()
        self.state.update_session(live=False)
        self.state.update_voice(playing=False)
        self.failed.emit(error)

    def resync(self) -> None:
        """Measure sound against picture anew and jump there."""
        self.pace.relearn()
        if self.state.session.live:
            self._change_epoch(lambda done: self.voice.new_epoch(done.epoch, done.first_sample))

    def catch_up(self) -> None:
        """The picture is hopelessly late: leave out what is under way, undisturbed the sound."""
        position = self.voice.position(time.monotonic_ns())
        if position is not None and self.state.session.live and self.talk.is_running:
            self._change_epoch(
                lambda done: self.voice.skip(done.epoch, done.first_sample),
                position + CATCH_UP_SAMPLES if self.voice.is_heard else -1,
            )

    def _change_epoch(self, then: OnDone, at_sample: int = -1) -> None:
        """Frames of the old epoch are dropped from this moment, not from the engine's answer."""
        if self.talk.epoch >= 0:
            self.pace.expect(self.talk.session, self.talk.epoch + 1)

        def answered(done: pm.Done) -> None:
            self.pace.expect(self.talk.session, done.epoch)
            then(done)

        self.talk.begin(answered, at_sample)

    # --- output ---------------------------------------------------------------------------------
    def start_recording(self, path: Path) -> None:
        """Record what is shown and heard; a path that cannot be written is `failed`."""
        try:
            self.recorder.start(path)
        except EngineError as error:
            self.failed.emit(error)
            return
        self.pace.tap = self.recorder.frame
        self.state.update_recording(state="recording", path=str(path), seconds=0.0)

    def pause_recording(self, paused: bool = True) -> None:
        if self.recorder.is_recording:
            self.recorder.pause(paused)
            self.state.update_recording(state="paused" if paused else "recording")

    def stop_recording(self) -> None:
        """The file is complete when state.recording.state is "off"."""
        self.pace.tap = None
        threading.Thread(target=self.recorder.stop, daemon=True).start()

    def save_snapshot(self, path: Path) -> None:
        """PNG of the newest frame, exactly 704x1088, whatever the window's size."""
        frame = self.mailbox.latest
        if frame is None:
            self.failed.emit(EngineError("not_ready", "there is no picture yet", "open one first"))
            return

        def save() -> None:
            try:
                save_snapshot(frame, path)
            except EngineError as error:
                self.calls.post("snapshot", lambda error=error: self.failed.emit(error))

        threading.Thread(target=save, daemon=True).start()

    def run_doctor(self) -> None:
        self.link.request(pm.Doctor(), self.doctor_reported.emit, self.failed.emit, INSPECT_S)

    # --- the engine comes and goes --------------------------------------------------------------
    def _engine_came(self, welcome: pm.Welcome) -> None:
        self.watching.say("info", f"engine {welcome.engine_version} is ready")
        self.talk.engine_came()

    def _engine_left(self, why: str) -> None:
        """The last frame stays up; everything comes back when the engine does."""
        if self.talk.session:
            self.watching.say("warning", why)
        self.state.update_session(live=False, state="NOT_READY")
        self.voice.halt()
        self.talk.engine_left()

    def _engine_refused(self, error: EngineError) -> None:
        self._engine_left(str(error))
        self.failed.emit(error)

    # --- steps of the conversation --------------------------------------------------------------
    def _character_loaded(self, loaded: pm.CharacterLoaded) -> None:
        self.state.update_character(
            loaded=True, busy=False, progress=1.0, what="", face=loaded.face,
            warnings=tuple(loaded.warnings),
        )  # fmt: skip
        self.state.update_session(synthetic=self.talk.synthetic)
        self.character_loaded.emit(loaded)

    def _character_on_stage(self, done: pm.Done) -> None:
        """Pictures of another character or session are never shown again."""
        self.pace.expect(self.talk.session, done.epoch)
        if self._wants_live:
            self.voice.halt()
            self._live(done)

    def _step_failed(self, error: EngineError) -> None:
        if self.state.character.busy:
            self.state.update_character(busy=False, what="")
        self.failed.emit(error)

    # --- from other threads ---------------------------------------------------------------------
    def _send_block(self, block: AudioBlock) -> None:
        """Voice thread."""
        if block.capture_time_ns and block.first_sample % SAMPLES_PER_FRAME < len(block.samples):
            now_ns = time.monotonic_ns()
            self.timings.add("capture", (now_ns - block.capture_time_ns) / 1e6, now_ns)
        self.link.send_block(block)
        self.recorder.block(block)

    def _post_voice_event(self, what: str, value: object) -> None:
        self.calls.post(what, lambda: self.watching.voice_event(what, value))

    def _want_model(self, model: str, noise: bool = False) -> None:
        self.talk.want_model(model, self.settings.number("frames_per_chunk"), noise)

    def _apply_voice_settings(self) -> None:
        self.choose_speaker(self.settings.text("speaker"))
        self.set_monitor(self.settings.flag("monitor"))
        self.set_gate_db(self.settings.number("gate_db"))
        audio_file = self.settings.text("audio_file")
        if self.settings.text("voice") == "file" and audio_file:
            self.choose_file(Path(audio_file))
        else:
            self.choose_microphone(self.settings.text("microphone"))
