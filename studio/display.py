"""Shows the state in the window: every view of StudioState, the edited character, the timings.

Reads and paints; decides nothing and asks the engine for nothing but the file's waveform.
"""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QTimer

from engine.errors import EngineError
from studio import words
from studio.character_files import CharacterFiles
from studio.edited_character import EditedCharacter
from studio.output_files import show_folder
from studio.picture_preview import preview
from studio.session_flow import SessionFlow
from studio.state import RecordingView, VoiceView
from studio.timings import TimingsView
from studio.widgets.frame_view import Hud
from studio.widgets.waveform import COLUMNS
from studio.window import MainWindow

STACKS_EVERY = 2  # the history is drawn at every second refresh of the figures
THUMBNAIL_PX = 260


class Display:
    """One method per thing that can change; `app.py` says when."""

    def __init__(
        self,
        window: MainWindow,
        flow: SessionFlow,
        edited: EditedCharacter,
        files: CharacterFiles,
    ) -> None:
        self._window, self._flow, self._edited, self._files = window, flow, edited, files
        self._thumbnails = files.library()
        self._wave_of = ("", 0)
        self._looking = ""
        self._trouble = ""
        self._refreshes = 0

    def state(self) -> None:
        """Engine, session and character: banner, status bar, live button, progress."""
        window, state = self._window, self._flow.state
        window.engine_status.say(*words.engine_words(state.engine, state.session))
        window.session_status.say(*words.session_words(state.session, state.engine))
        banner = words.banner(state.engine, state.session, state.character, self._trouble)
        window.view.set_banner(banner)
        self._live()
        self._progress()

    def trouble(self, error: EngineError) -> None:
        """Why there is no character on stage, for as long as there is none."""
        character = self._flow.state.character
        self._trouble = "" if character.loaded or character.spec is None else str(error)
        self.state()

    def looking(self, busy: bool, what: str) -> None:
        """A new picture is being looked at, before it becomes the character."""
        self._looking = what if busy else ""
        self._progress()

    def _progress(self) -> None:
        panel, character = self._window.character, self._flow.state.character
        if self._looking:
            panel.show_progress(True, 0.0, self._looking)
        else:
            panel.show_progress(character.busy, character.progress, words.sentence(character.what))

    def voice(self, voice: VoiceView) -> None:
        window = self._window
        window.voice.show_voice(voice)
        window.voice_status.say(*words.voice_words(voice))
        window.action("mute").setChecked(voice.muted)
        window.action("monitor").setChecked(voice.monitor)
        self._live()
        self._wave(voice)

    def _live(self) -> None:
        live = self._flow.state.session.live
        self._window.action("go_live").setChecked(live)
        self._window.voice.show_live(live)
        self._window.bar.show_live(live, words.live_word(self._flow.state.voice))

    def _wave(self, voice: VoiceView) -> None:
        """The file's waveform, once it has been read."""
        wave_of = (voice.file, voice.duration_samples)
        if voice.kind != "file" or wave_of == self._wave_of or not voice.duration_samples:
            return
        overview = self._flow.voice_overview(COLUMNS)
        if overview is not None:
            self._wave_of = wave_of
            self._window.voice.show_wave(*overview, voice.duration_samples)

    def recording(self, recording: RecordingView) -> None:
        window = self._window
        on, paused = recording.state != "off", recording.state == "paused"
        was_on = window.action("record").isChecked() or bool(window.bar.recording.text())
        window.action("record").setChecked(on)
        window.action("pause_recording").setEnabled(on)
        window.action("pause_recording").setChecked(paused)
        window.bar.show_recording(words.recording_words(recording.seconds, paused) if on else "")
        if was_on and not on and recording.path:
            self.saved(Path(recording.path))

    def saved(self, path: Path) -> None:
        """Say where a file went, and offer to show it."""
        folder = path.parent
        self._window.toast.say(f"Saved {path.name}", "done", "Show", lambda: show_folder(folder))

    def character(self) -> None:
        """Another character: picture, faces forgotten, library mark, title."""
        image, size = preview(self._edited.picture)
        self._window.character.show_picture(image, size)
        self._window.view.set_still(image)
        path = self._edited.source.path
        self._window.character.library.select(str(path) if path else "")
        self.spec()

    def spec(self) -> None:
        spec = self._edited.spec
        if spec is not None:
            status = words.saved_words(self._edited.source, spec.licence, self._edited.unsaved)
            self._window.character.show_spec(spec, status)
            mark = " •" if self._edited.unsaved else ""
            self._window.setWindowTitle(f"{spec.name}{mark} – Avatar Studio")

    def thumbnails(self) -> None:
        """One per turn of the event loop: the window stays quick while they appear."""
        if not self._thumbnails:
            return
        path = self._thumbnails.pop(0)
        try:
            opened = self._files.read(path)
        except EngineError as error:
            self._window.log.add("warning", "library", str(error))
        else:
            image, _ = preview(opened.picture, THUMBNAIL_PX)
            library = self._window.character.library
            library.add(str(path), opened.spec.name, image, opened.spec.licence)
            if path == self._edited.source.path:
                library.select(str(path))
        QTimer.singleShot(0, self._window, self.thumbnails)

    def timings(self) -> None:
        """A few times a second: figures over the picture and in the timings panel."""
        self._refreshes += 1
        now_ns = time.monotonic_ns()
        view = self._flow.timings.view(now_ns)
        self._hud(view)
        panel = self._window.timings
        if panel.isVisible():
            panel.show_view(view)
            if self._refreshes % STACKS_EVERY == 0:
                panel.show_stacks(self._flow.timings.stacked(now_ns))

    def _hud(self, view: TimingsView) -> None:
        session = self._flow.state.session
        latency = view.latency.p50_ms if view.latency and session.live else None
        self._window.view.set_hud(Hud(session.live, view.fps, latency, words.hud_note(session)))
