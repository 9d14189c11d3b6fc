"""What the actions of the table do: one short method each, between window, flow and files.

Knows nothing of menus or keys; `app.py` connects it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication

from engine.errors import EngineError
from studio import dialogs, help, output_files
from studio.character_files import CharacterFiles
from studio.character_opening import PICTURE_CODES, CharacterOpening
from studio.display import Display
from studio.edited_character import EditedCharacter
from studio.session_flow import SessionFlow
from studio.settings import StudioSettings
from studio.stage_window import StageWindow
from studio.state import VoiceView
from studio.window import MainWindow
from studio.words import sentence

SAMPLE = Path(__file__).resolve().parents[1] / "assets" / "samples" / "welcome.flac"
# Usable while the face fills the screen; Esc closes the stage there, so "interrupt" stays out.
STAGE_ACTIONS = ("go_live", "play_sample", "mute", "record", "snapshot", "stage", "next_character",
                 "previous_character", "quit")  # fmt: skip


SNAPSHOT_TRIES = 30  # every 100 ms


class Commands:
    """Made by `app.py`; `opening` is set right after, as both need each other."""

    opening: CharacterOpening

    def __init__(
        self,
        settings: StudioSettings,
        window: MainWindow,
        flow: SessionFlow,
        edited: EditedCharacter,
        files: CharacterFiles,
        display: Display,
    ) -> None:
        self._settings, self._window, self._flow = settings, window, flow
        self._edited, self._files, self._display = edited, files, display
        self.stage: StageWindow | None = None
        self._play_when_read = False

    # --- character ---
    def may_replace(self) -> bool:
        """True when the edited character may go: saved, thrown away, or nothing to lose."""
        if not self._edited.unsaved or self._edited.spec is None:
            return True
        answer = dialogs.ask_unsaved(self._window, self._edited.spec.name)
        if answer == "discard":
            self._files.drop_draft()
        return answer == "discard" or (answer == "save" and self.save_character())

    def open_picture(self) -> None:
        path = dialogs.choose_picture(self._window)
        if path is not None:
            self.opening.open_path(path)

    def open_character(self) -> None:
        path = dialogs.choose_character(self._window)
        if path is not None:
            self.opening.open_path(path)

    def paste(self) -> None:
        if not self.opening.open_mime(QGuiApplication.clipboard().mimeData()):
            self._window.toast.say("There is no picture on the clipboard", "info")

    def neighbour(self, step: int) -> None:
        """The library's next or previous character."""
        path = self._edited.source.path
        chosen = self._window.character.library.neighbour(str(path) if path else "", step)
        if chosen:
            self.opening.open_path(Path(chosen))

    def save_character(self) -> bool:
        """To its own file, or ask for one; True when it is on disk."""
        source = self._edited.source
        if source.path is None or source.starter:
            return self.save_character_as()
        return self._write(source.path)

    def save_character_as(self) -> bool:
        if self._edited.spec is None:
            self._window.toast.say("There is no character to save yet", "info")
            return False
        name = f"{self._edited.spec.name}.avatar".replace("/", " ")
        path = dialogs.choose_save(self._window, "Save character", name, ".avatar")
        return path is not None and self._write(path)

    def _write(self, path: Path) -> bool:
        assert self._edited.spec is not None
        try:
            written = self._files.write(path, self._edited.spec, self._edited.picture)
        except EngineError as error:
            self._window.toast.say(sentence(str(error)), "error")
            return False
        self._edited.saved(written)
        self._files.remember(written)
        self._files.drop_draft()
        self.fill_recent()
        self._display.saved(written)
        return True

    def fill_recent(self) -> None:
        recent = [path for path in self._files.recent() if path.is_file()]
        rows = [(p.stem, str(p), f"Ctrl+Alt+{i}") for i, p in enumerate(recent, 1)]
        menu = self._window.recent_menu
        self._window.fill_menu(menu, rows, lambda index: self.opening.open_path(recent[index]))

    # --- voice ---
    def toggle_live(self) -> None:
        live = self._flow.state.session.live
        self._window.action("go_live").setChecked(live)  # until the flow says that it is so
        voice = self._flow.state.voice
        if live:
            self._flow.stop()
        elif voice.kind == "microphone" and not voice.microphones:
            text = "This machine has no microphone. Plug one in, or hear a sample"
            self._window.toast.say(text, "info", "Play a sample", self.play_sample)
        else:
            self._flow.go_live()

    def use_source(self, kind: str) -> None:
        """ "microphone", or "file": the last one, else ask for one."""
        if kind == "microphone":
            self._flow.choose_microphone(self._settings.text("microphone"))
            return
        last = self._settings.text("audio_file")
        if last and Path(last).is_file():
            self._flow.choose_file(Path(last))
        else:
            self._window.voice.tabs.show_page(1)

    def open_audio(self) -> None:
        path = dialogs.choose_audio(self._window)
        if path is not None:
            self.use_audio(path)

    def use_audio(self, path: Path) -> None:
        self._flow.choose_file(path)

    def play_sample(self) -> None:
        voice = self._flow.state.voice
        if voice.kind == "file" and voice.file == str(SAMPLE):
            self._flow.stop()
            self._flow.seek(0)
            self._flow.go_live()
            return
        self._play_when_read = True  # reading a file is not instant
        self._flow.choose_file(SAMPLE)

    def on_voice(self, voice: VoiceView) -> None:
        """The sample has been read: speak it."""
        read = voice.kind == "file" and voice.file == str(SAMPLE) and voice.duration_samples
        if self._play_when_read and read:
            self._play_when_read = False
            self._flow.go_live()

    def mute(self) -> None:
        self._flow.set_muted(self._window.action("mute").isChecked())

    def monitor(self) -> None:
        self._flow.set_monitor(self._window.action("monitor").isChecked())

    # --- output ---
    def toggle_recording(self) -> None:
        if self._flow.state.recording.state != "off":
            self._flow.stop_recording()
            return
        self._window.action("record").setChecked(False)  # until it really runs
        self._flow.start_recording(self._new_file(output_files.record_folder, ".mp4"))

    def pause_recording(self) -> None:
        self._flow.pause_recording(self._window.action("pause_recording").isChecked())

    def snapshot(self) -> None:
        if self._flow.mailbox.latest is None:
            self._window.toast.say("There is no picture yet", "info")
            return
        path = self._new_file(output_files.snapshot_folder, ".png")
        self._flow.save_snapshot(path)
        self._say_when_there(path, SNAPSHOT_TRIES)

    def _say_when_there(self, path: Path, tries: int) -> None:
        """A snapshot is written on a thread of its own; a failure is told by the flow."""
        if path.is_file():
            self._display.saved(path)
        elif tries:
            QTimer.singleShot(100, self._window, lambda: self._say_when_there(path, tries - 1))

    def _new_file(self, folder_of: output_files.FolderOf, suffix: str) -> Path:
        folder = folder_of(self._settings)
        folder.mkdir(parents=True, exist_ok=True)
        name = self._edited.spec.name if self._edited.spec else "Avatar"
        return output_files.new_path(folder, name, suffix, datetime.now())

    def show_recordings(self) -> None:
        output_files.show_folder(output_files.record_folder(self._settings))

    def export_timings(self) -> None:
        path = dialogs.choose_save(self._window, "Export timings", "timings.csv", ".csv")
        if path is not None:
            self._flow.timings.export_csv(path)
            self._display.saved(path)

    def save_log(self) -> None:
        path = dialogs.choose_save(self._window, "Save log", "avatar-studio.log", ".log")
        if path is not None:
            self._window.log.save(path)
            self._display.saved(path)

    # --- view ---
    def set_fit(self, fit: bool) -> None:
        self._window.view.set_fit(fit)
        self._window.action("fit").setChecked(fit)
        self._window.action("one_to_one").setChecked(not fit)
        self._settings.set("view", "fit" if fit else "1:1")

    def set_hud(self, visible: bool) -> None:
        self._window.view.set_hud_visible(visible)
        self._window.action("hud").setChecked(visible)
        self._settings.set("hud", visible)

    def toggle_hud(self) -> None:
        self.set_hud(self._window.action("hud").isChecked())

    def toggle_stage(self) -> None:
        if self.stage is not None:
            self.stage.close()
        else:
            self.open_stage(-1)

    def open_stage(self, screen_index: int) -> None:
        """Full screen on that screen; -1 is another one than the window's, if there is one."""
        screens = QGuiApplication.screens()
        if screen_index < 0:
            others = [screen for screen in screens if screen is not self._window.screen()]
            screen = (others or screens)[0]
        else:
            screen = screens[screen_index]
        if self.stage is None:
            actions = [self._window.action(action_id) for action_id in STAGE_ACTIONS]
            self.stage = StageWindow(self._flow.mailbox, actions)
            self.stage.closed.connect(self._on_stage_closed)
            self.stage.moved_home.connect(
                lambda: self._window.toast.say("The output screen is gone: moved here", "error")
            )
        self.stage.open_on(screen)
        self._window.action("stage").setChecked(True)

    def _on_stage_closed(self) -> None:
        self._window.action("stage").setChecked(False)
        if self.stage is not None:
            self.stage.deleteLater()
            self.stage = None

    def fill_screens(self) -> None:
        screens = QGuiApplication.screens()
        rows = []
        for index, screen in enumerate(screens, 1):
            size = screen.size()
            text = f"{screen.name() or f'Screen {index}'} ({size.width()} × {size.height()})"
            rows.append((text, "Show the face on this screen", f"Ctrl+Shift+{index}"))
        self._window.fill_menu(self._window.screen_menu, rows[:9], self.open_stage)

    def on_frame(self) -> None:
        """A frame waits: both windows look; a hidden one only empties the slot."""
        self._window.view.wake()
        if self.stage is not None:
            self.stage.view.update()

    # --- messages ---
    def tell(self, error: EngineError) -> None:
        """One line in place, and the same in the log."""
        self._play_when_read = False
        if error.code not in PICTURE_CODES:  # those are told where the picture was chosen
            self._window.toast.say(sentence(str(error)), "error")
        self._window.log.add("error", "studio", str(error))

    def shortcuts(self) -> None:
        help.shortcuts(self._window).open()

    def about(self) -> None:
        help.about(self._window).open()
