"""Builds the studio's objects and is the only place that connects them. Runs no event loop.

Knows which signal belongs to which slot, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from engine.protocol.messages import DoctorReport, LogLine
from studio import dialogs, help
from studio.character_files import CharacterFiles
from studio.character_opening import CharacterOpening
from studio.commands import Commands
from studio.display import Display
from studio.edited_character import EditedCharacter
from studio.focus_keys import FocusKeys
from studio.installed_models import InstalledModels
from studio.model_page import ModelPage
from studio.qa_opening import QualityOpening
from studio.session_flow import SessionFlow
from studio.settings import StudioSettings
from studio.window import MainWindow

REFRESH_MS = 250


class StudioApp(QObject):
    """Everything of one running studio; `start()` shows it, closing the window ends it."""

    def __init__(
        self, settings: StudioSettings, flow: SessionFlow | None = None, draft: Path | None = None
    ) -> None:
        super().__init__()
        self.settings = settings
        self.flow = flow or SessionFlow(settings)
        self.files = CharacterFiles(settings, draft)
        self.edited = EditedCharacter()
        self.window = MainWindow(self.flow.mailbox, self.flow.timings.painted)
        self.display = Display(self.window, self.flow, self.edited, self.files)
        self.commands = Commands(
            settings, self.window, self.flow, self.edited, self.files, self.display
        )
        self.opening = CharacterOpening(
            self.flow, self.edited, self.files, self.commands.may_replace
        )
        self.commands.opening = self.opening
        self.models = InstalledModels(self.flow, self)
        self.model_page = ModelPage(self.window.models, self.models, self.window.toast, self.window)
        self.quality = QualityOpening(settings, self.flow.state, self._show_clip, self.models)
        self._focus_keys = FocusKeys()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.display.timings)
        self._closed = False
        self._connect_state()
        self._connect_character()
        self._connect_voice()
        self._connect_output()
        self._connect_view()
        self._connect_help()
        self._restore()

    # --- life ---
    def start(self) -> None:
        """Show the window first, then start the engine: nobody looks at a blank screen."""
        application = QApplication.instance()
        assert application is not None
        application.installEventFilter(self._focus_keys)
        self.window.show()
        self._timer.start(REFRESH_MS)
        if self.opening.open_first():
            self.window.toast.say("Unsaved changes of the last run are back", "info")
        QTimer.singleShot(0, self.window, self.display.thumbnails)
        self.flow.start()

    def may_close(self) -> bool:
        """Asks for what would be lost; when it may, everything is put away."""
        if self._closed:
            return True
        recording = self.flow.state.recording.state != "off"
        if recording and not dialogs.ask_stop_recording(self.window):
            return False
        if not self.commands.may_replace():
            return False
        self.shut_down()
        return True

    def leave(self) -> None:
        """Told to go by the system: nothing is asked, unsaved changes wait in the draft."""
        self.opening.save_draft()
        self.shut_down(keep_draft=True)
        QApplication.quit()

    def shut_down(self, keep_draft: bool = False) -> None:
        """Idempotent: window state saved, timers, second window, engine and audio put away."""
        if self._closed:
            return
        self._closed = True
        self._timer.stop()
        for signal in (
            self.edited.undo_stack.undoTextChanged,
            self.edited.undo_stack.redoTextChanged,
        ):
            signal.disconnect()  # the stack may outlive the window
        self.settings.set("window", self.window.layout_text())
        if self.commands.stage is not None:
            self.commands.stage.close()
        self.quality.shut_down()
        if not keep_draft:
            self.files.drop_draft()
        self.flow.shut_down()
        application = QApplication.instance()
        if application is not None:
            application.removeEventFilter(self._focus_keys)

    # --- connections ---
    def _on(self, action_id: str, act: Callable[[], object]) -> None:
        self.window.action(action_id).triggered.connect(lambda _=False: act())

    def _connect_state(self) -> None:
        flow, state, display = self.flow, self.flow.state, self.display
        state.engine_changed.connect(lambda _: display.state())
        state.session_changed.connect(lambda _: display.state())
        state.character_changed.connect(lambda _: display.state())
        state.voice_changed.connect(display.voice)
        state.recording_changed.connect(display.recording)
        state.level_changed.connect(self.window.voice.show_level)
        state.position_changed.connect(self.window.voice.show_position)
        flow.frame_waiting.connect(self.commands.on_frame)
        flow.log_line.connect(self._on_log)
        flow.failed.connect(self.commands.tell)
        flow.failed.connect(display.trouble)
        flow.doctor_reported.connect(self._on_doctor)
        display.state()
        display.voice(state.voice)
        display.recording(state.recording)

    def _connect_character(self) -> None:
        panel, edited, opening = self.window.character, self.edited, self.opening
        panel.character_chosen.connect(lambda text: opening.open_path(Path(text)))
        panel.name_edited.connect(edited.rename)
        panel.framing_edited.connect(edited.set_framing)
        panel.face_chosen.connect(edited.set_face)
        panel.settings_edited.connect(edited.set_intensity)
        panel.cancel_requested.connect(self.models.cancel_use)
        panel.cancel_requested.connect(opening.cancel)
        edited.replaced.connect(self.display.character)
        edited.replaced.connect(self.commands.fill_recent)
        edited.edited.connect(lambda _before, _after: self.display.spec())
        edited.unsaved_changed.connect(lambda _: self.display.spec())
        opening.noted.connect(panel.show_note)
        opening.busy_changed.connect(self.display.looking)
        opening.faces_found.connect(panel.show_faces)
        opening.audio_found.connect(self.commands.use_audio)
        self.window.dropped.connect(opening.open_mime)
        self.window.view.open_requested.connect(self.commands.open_picture)

    def _connect_voice(self) -> None:
        voice, flow, on = self.window.voice, self.flow, self._on
        voice.source_chosen.connect(self.commands.use_source)
        voice.microphone_chosen.connect(flow.choose_microphone)
        voice.speaker_chosen.connect(flow.choose_speaker)
        voice.gate_edited.connect(flow.set_gate_db)
        voice.sought.connect(flow.seek)
        on("go_live", self.commands.toggle_live)
        flow.state.voice_changed.connect(self.commands.on_voice)
        on("interrupt", flow.interrupt)
        on("use_microphone", lambda: self.commands.use_source("microphone"))
        on("open_audio", self.commands.open_audio)
        on("play_sample", self.commands.play_sample)
        on("mute", self.commands.mute)
        on("monitor", self.commands.monitor)
        on("resync", flow.resync)
        on("refresh_devices", flow.refresh_devices)

    def _connect_output(self) -> None:
        on, commands = self._on, self.commands
        on("open_picture", commands.open_picture)
        on("paste_picture", commands.paste)
        on("open_character", commands.open_character)
        on("save_character", commands.save_character)
        on("save_character_as", commands.save_character_as)
        on("record", commands.toggle_recording)
        on("pause_recording", commands.pause_recording)
        on("snapshot", commands.snapshot)
        on("show_recordings", commands.show_recordings)
        on("export_timings", commands.export_timings)
        on("refresh_models", self.models.refresh)
        on("add_models_folder", self.model_page.add_folder)
        on("save_log", commands.save_log)

    def _connect_view(self) -> None:
        on, commands, stack = self._on, self.commands, self.edited.undo_stack
        on("undo", stack.undo)
        on("redo", stack.redo)
        on("reset_framing", lambda: self.edited.set_framing(None))
        on("reset_motion", self.edited.reset_motion)
        on("next_character", lambda: commands.neighbour(1))
        on("previous_character", lambda: commands.neighbour(-1))
        for action_id, changed in (("undo", stack.canUndoChanged), ("redo", stack.canRedoChanged)):
            self.window.action(action_id).setEnabled(False)
            changed.connect(self.window.action(action_id).setEnabled)
        stack.undoTextChanged.connect(lambda what: self._name_step("undo", what))
        stack.redoTextChanged.connect(lambda what: self._name_step("redo", what))
        on("fit", lambda: commands.set_fit(True))
        on("one_to_one", lambda: commands.set_fit(False))
        on("hud", commands.toggle_hud)
        on("stage", commands.toggle_stage)
        self.window.view.fullscreen_requested.connect(commands.toggle_stage)
        self.window.screen_menu.aboutToShow.connect(commands.fill_screens)
        self.window.may_close = self.may_close

    def _name_step(self, action_id: str, what: str) -> None:
        words = f"{action_id.capitalize()} {what.lower()}".strip()
        self.window.action(action_id).setText(words)

    def _connect_help(self) -> None:
        self._on("shortcuts", self.commands.shortcuts)
        self._on("about", self.commands.about)
        self._on("doctor", self.flow.run_doctor)
        self._on("quality", self.quality.show)
        self._on("restart_engine", self.flow.restart_engine)

    def _restore(self) -> None:
        self.commands.set_fit(self.settings.text("view") != "1:1")
        self.commands.set_hud(self.settings.flag("hud"))
        self.commands.fill_screens()
        self.commands.fill_recent()
        self.window.restore_layout(self.settings.text("window"))

    def _on_log(self, line: LogLine) -> None:
        self.window.log.add(line.level, line.source, line.text)

    def _show_clip(self, character: Path, audio: Path) -> None:
        """A clip of a lip-sync run in our own viewer: who speaks, and what is said."""
        self.opening.open_path(character)
        self.commands.use_audio(audio)
        self.window.raise_()
        self.window.activateWindow()

    def _on_doctor(self, report: DoctorReport) -> None:
        help.doctor(report.rows, self.window).open()
