"""Builds the studio's objects and is the only place that connects them. Does not run the event loop.

Knows which signal belongs to which slot, and nothing else.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication

from engine.errors import EngineError
from engine.protocol.character import CharacterSpec
from engine.protocol.messages import LogLine
from studio import dialogs, help, output_files, theme, words
from studio.character_files import CharacterFiles
from studio.character_opening import CharacterOpening
from studio.edited_character import EditedCharacter
from studio.focus_keys import FocusKeys
from studio.picture_preview import preview
from studio.session_flow import SessionFlow
from studio.settings import StudioSettings
from studio.stage_window import StageWindow
from studio.state import RecordingView, VoiceView
from studio.widgets.frame_view import Hud
from studio.widgets.waveform import COLUMNS
from studio.window import MainWindow

HUD_MS = 250
STACKS_EVERY = 2  # the history is redrawn at every second refresh: 2 Hz
SAMPLE = Path(__file__).resolve().parents[1] / "assets" / "samples" / "welcome.flac"
THUMBNAIL_PX = 260


class StudioApp:
    """Everything of one running studio; `start()` shows it, `window.close()` ends it."""

    def __init__(
        self, settings: StudioSettings, flow: SessionFlow | None = None, draft: Path | None = None
    ) -> None:
        self.settings = settings
        self.flow = flow or SessionFlow(settings)
        self.state = self.flow.state
        self.files = CharacterFiles(settings, draft)
        self.edited = EditedCharacter()
        self.window = MainWindow(self.flow.mailbox, self.flow.timings.painted)
        self.opening = CharacterOpening(self.flow, self.edited, self.files, self.may_replace)
        self.stage: StageWindow | None = None
        self._refreshes = 0
        self._wave_of = ("", 0)
        self._thumbnails = self.files.library()
        self._focus_keys = FocusKeys()
        self._hud_timer = QTimer(self.window)
        self._hud_timer.timeout.connect(self.refresh)
        self._connect_state()
        self._connect_character()
        self._connect_voice()
        self._connect_output()
        self._connect_view()
        self._connect_help()
        self._restore()

    # --- life ---
    def start(self) -> None:
        """Show the window, then start the engine: the first picture must not wait for it."""
        application = QApplication.instance()
        if application is not None:
            application.installEventFilter(self._focus_keys)
        self.window.show()
        self._hud_timer.start(HUD_MS)
        if self.opening.open_first():
            self.window.toast.say("Unsaved changes of the last run are back", "info")
        QTimer.singleShot(0, self.window, self._next_thumbnail)
        self.flow.start()

    def may_close(self) -> bool:
        """Asks for what would be lost; when it may, everything is put away."""
        if self.state.recording.state != "off" and not dialogs.ask_stop_recording(self.window):
            return False
        if not self.may_replace():
            return False
        self.shut_down()
        return True

    def shut_down(self) -> None:
        self._hud_timer.stop()
        self.settings.set("window", self.window.layout_text())
        if self.stage is not None:
            self.stage.close()
        self.files.drop_draft()
        self.flow.shut_down()
        application = QApplication.instance()
        if application is not None:
            application.removeEventFilter(self._focus_keys)

    def may_replace(self) -> bool:
        """True when the edited character may go: saved, thrown away, or nothing to lose."""
        if not self.edited.unsaved or self.edited.spec is None:
            return True
        answer = dialogs.ask_unsaved(self.window, self.edited.spec.name)
        if answer == "discard":
            self.files.drop_draft()
        return answer == "discard" or (answer == "save" and self.save_character())

    # --- the parts, connected ---
    def _connect_state(self) -> None:
        state = self.state
        state.engine_changed.connect(lambda _: self._show_state())
        state.session_changed.connect(lambda _: self._show_state())
        state.character_changed.connect(lambda _: self._show_state())
        state.voice_changed.connect(self._show_voice)
        state.recording_changed.connect(self._show_recording)
        state.level_changed.connect(self.window.voice.show_level)
        state.position_changed.connect(self.window.voice.show_position)
        self.flow.frame_waiting.connect(self._on_frame)
        self.flow.log_line.connect(self._on_log)
        self.flow.failed.connect(self._on_failed)
        self._show_state()
        self._show_voice(state.voice)

    def _connect_character(self) -> None:
        panel, edited, on = self.window.character, self.edited, self._on
        panel.character_chosen.connect(lambda text: self.opening.open_path(Path(text)))
        panel.name_edited.connect(edited.rename)
        panel.framing_edited.connect(edited.set_framing)
        panel.face_chosen.connect(edited.set_face)
        panel.settings_edited.connect(edited.set_intensity)
        panel.cancel_requested.connect(self.opening.cancel)
        edited.replaced.connect(self._show_character)
        edited.edited.connect(lambda _before, _after: self._show_spec())
        edited.unsaved_changed.connect(lambda _: self._show_spec())
        self.opening.noted.connect(panel.show_note)
        self.opening.busy_changed.connect(lambda busy, what: panel.show_progress(busy, 0.0, what))
        self.opening.faces_found.connect(panel.show_faces)
        self.opening.audio_found.connect(self._use_audio)
        self.window.dropped.connect(self.opening.open_mime)
        self.window.view.open_requested.connect(self._open_picture)
        on("open_picture", self._open_picture)
        on("paste_picture", self._paste)
        on("open_character", self._open_character)
        on("save_character", self.save_character)
        on("save_character_as", self.save_character_as)
        on("reset_framing", lambda: edited.set_framing(None))
        on("reset_motion", edited.reset_motion)
        on("undo", edited.undo_stack.undo)
        on("redo", edited.undo_stack.redo)
        on("next_character", lambda: self._neighbour(1))
        on("previous_character", lambda: self._neighbour(-1))
        edited.undo_stack.canUndoChanged.connect(self.window.action("undo").setEnabled)
        edited.undo_stack.canRedoChanged.connect(self.window.action("redo").setEnabled)
        self.window.action("undo").setEnabled(False)
        self.window.action("redo").setEnabled(False)

    def _connect_voice(self) -> None:
        voice, flow, on = self.window.voice, self.flow, self._on
        voice.source_chosen.connect(self._use_source)
        voice.microphone_chosen.connect(flow.choose_microphone)
        voice.speaker_chosen.connect(flow.choose_speaker)
        voice.gate_edited.connect(flow.set_gate_db)
        voice.sought.connect(flow.seek)
        on("go_live", self._toggle_live)
        on("interrupt", flow.interrupt)
        on("use_microphone", lambda: self._use_source("microphone"))
        on("open_audio", self._open_audio)
        on("play_sample", self._play_sample)
        on("mute", lambda: flow.set_muted(self.window.action("mute").isChecked()))
        on("monitor", lambda: flow.set_monitor(self.window.action("monitor").isChecked()))
        on("resync", flow.resync)
        on("refresh_devices", flow.refresh_devices)

    def _connect_output(self) -> None:
        on = self._on
        on("record", self._toggle_recording)
        on("pause_recording", lambda: self.flow.pause_recording(self._checked("pause_recording")))
        on("snapshot", self._snapshot)
        on("show_recordings", lambda: show_folder(output_files.record_folder(self.settings)))
        on("export_timings", self._export_timings)
        on("save_log", self._save_log)

    def _connect_view(self) -> None:
        view, on = self.window.view, self._on
        on("fit", lambda: self._set_fit(True))
        on("one_to_one", lambda: self._set_fit(False))
        on("hud", lambda: self._set_hud(self._checked("hud")))
        on("stage", self._toggle_stage)
        view.fullscreen_requested.connect(self._toggle_stage)
        self.window.may_close = self.may_close
        self.window.screen_menu.aboutToShow.connect(self._fill_screens)
        self._fill_screens()
        self._fill_recent()

    def _connect_help(self) -> None:
        on = self._on
        on("shortcuts", lambda: help.shortcuts(self.window).open())
        on("about", lambda: help.about(self.window).open())
        on("doctor", self.flow.run_doctor)
        on("restart_engine", self._restart_engine)
        self.flow.doctor_reported.connect(lambda r: help.doctor(r.rows, self.window).open())

    def _on(self, action_id: str, act: object) -> None:
        assert callable(act)
        self.window.action(action_id).triggered.connect(lambda _=False: act())

    def _checked(self, action_id: str) -> bool:
        return self.window.action(action_id).isChecked()

    def _restore(self) -> None:
        self._set_fit(self.settings.text("view") != "1:1")
        self._set_hud(self.settings.flag("hud"))
        self.window.restore_layout(self.settings.text("window"))

    # --- showing state ---
    def _show_state(self) -> None:
        window, state = self.window, self.state
        window.engine_status.say(*words.engine_words(state.engine, state.session))
        window.session_status.say(*words.session_words(state.session, state.engine))
        banner = words.banner(state.engine, state.session, state.character)
        window.view.set_banner(banner)
        if self.stage is not None:
            self.stage.view.set_banner(banner)
        live = state.session.live
        window.action("go_live").setChecked(live)
        window.bar.show_live(live, words.live_word(state.voice))
        character = state.character
        window.character.show_progress(character.busy, character.progress, character.what)
        self.refresh_hud()

    def _show_voice(self, voice: VoiceView) -> None:
        window = self.window
        window.voice.show_voice(voice)
        window.voice_status.say(*words.voice_words(voice))
        window.action("mute").setChecked(voice.muted)
        window.action("monitor").setChecked(voice.monitor)
        window.bar.show_live(self.state.session.live, words.live_word(voice))
        wave_of = (voice.file, voice.duration_samples)
        if voice.kind == "file" and wave_of != self._wave_of:
            overview = self.flow.voice_overview(COLUMNS)
            if overview is not None:
                self._wave_of = wave_of
                window.voice.show_wave(*overview, voice.duration_samples)

    def _show_recording(self, recording: RecordingView) -> None:
        window, on = self.window, recording.state != "off"
        window.action("record").setChecked(on)
        window.action("pause_recording").setEnabled(on)
        window.action("pause_recording").setChecked(recording.state == "paused")
        paused = recording.state == "paused"
        text = words.recording_words(recording.seconds, paused) if on else ""
        window.bar.show_recording(text)
        if not on and recording.path:
            path = Path(recording.path)
            window.toast.say(f"Saved {path.name}", "done", "Show", lambda: show_folder(path.parent))

    def _show_character(self) -> None:
        assert self.edited.spec is not None
        image, size = preview(self.edited.picture)
        self.window.character.show_picture(image, size)
        self.window.view.set_still(image)
        path = self.edited.source.path
        self.window.character.library.select(str(path) if path else "")
        self._show_spec()
        self._fill_recent()

    def _show_spec(self) -> None:
        if self.edited.spec is not None:
            self.window.character.show_spec(self.edited.spec, self.edited.unsaved)
            mark = " •" if self.edited.unsaved else ""
            self.window.setWindowTitle(f"{self.edited.spec.name}{mark} – Avatar Studio")

    def _next_thumbnail(self) -> None:
        """One thumbnail per turn of the event loop: the window stays quick while they appear."""
        if not self._thumbnails:
            return
        path = self._thumbnails.pop(0)
        try:
            opened = self.files.read(path)
            image, _ = preview(opened.picture, THUMBNAIL_PX)
            library = self.window.character.library
            library.add(str(path), opened.spec.name, image, opened.spec.licence)
            if path == self.edited.source.path:
                library.select(str(path))
        except EngineError as error:
            self.window.log.add("warning", "library", str(error))
        QTimer.singleShot(0, self.window, self._next_thumbnail)

    def refresh(self) -> None:
        """A few times a second: figures over the picture and in the timings panel."""
        self._refreshes += 1
        panel = self.window.timings
        if panel.isVisible():
            panel.show_view(self.refresh_hud())
            if self._refreshes % STACKS_EVERY == 0:
                panel.show_stacks(self.flow.timings.stacked(time.monotonic_ns()))
        else:
            self.refresh_hud()

    def refresh_hud(self) -> object:
        view = self.flow.timings.view(time.monotonic_ns())
        latency = view.latency.p50_ms if view.latency else None
        session = self.state.session
        self.window.view.set_hud(Hud(session.live, view.fps, latency, words.hud_note(session)))
        return view
